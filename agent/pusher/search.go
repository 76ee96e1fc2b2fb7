package pusher

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/mlflow"
)

// A searchResult is what a search for the run of a recording found.
type searchResult struct {
	run    *mlflow.Run // nil if there is none yet
	jobRun *mlflow.Run // the job's own, if run is ours and the two are still to be linked

	otherNode   bool              // run is another node's: our own job may still create one
	experiments map[string]string // IDs by name of those that were searched
}

// search looks for the run that a recording belongs to, by tags.
func (id identity) search(ctx context.Context, c *mlflow.Client, d Destination) (searchResult, error) {
	experiments, err := newExperiments(ctx, c, d)
	if err != nil {
		return searchResult{}, err
	}
	filter, ok := id.relatives()

	// Otherwise it is a hash of the recordings, which are tags as well.
	if d.Invocation != "" || !ok {
		runs, err := experiments.findRuns(ctx, tagIs(TagInvocation, id.invocation), maxOfInvocation)
		if found := pick(runs); err != nil || found.run != nil {
			return found, err
		}
	}
	if !ok {
		return searchResult{experiments: experiments.byName}, nil
	}

	runs, err := experiments.findRuns(ctx, filter, maxOfRunID)
	if err != nil {
		return searchResult{}, err
	}
	found := pick(slices.DeleteFunc(runs, func(r mlflow.Run) bool { return !id.fits(r) }))
	found.otherNode = found.run != nil && !id.recordedIn(*found.run)
	found.experiments = experiments.byName
	return found, nil
}

// JobRuns returns, by invocation, the IDs of the runs that the jobs created, or that were created
// for them. An invocation without a run is left out.
func JobRuns(ctx context.Context, c *mlflow.Client, d Destination, invocations []string) (map[string]string, error) {
	experiments, err := newExperiments(ctx, c, d)
	if err != nil {
		return nil, err
	}

	out := make(map[string]string)
	for _, invocation := range invocations {
		if !plain(invocation) {
			continue
		}
		runs, err := experiments.findRuns(ctx, tagIs(TagInvocation, invocation), maxOfInvocation)
		if err != nil {
			return nil, err
		}
		if found := pick(runs); found.run != nil {
			out[invocation] = found.run.ID
		}
	}
	return out, nil
}

// pick chooses a run of our own if there is one. Otherwise it takes the earliest, and of those that
// began at the same time the outermost.
func pick(runs []mlflow.Run) searchResult {
	var own, jobs []mlflow.Run
	for _, r := range runs {
		if r.Tags[tagCreatedBy] == createdBy {
			own = append(own, r)
		} else {
			jobs = append(jobs, r)
		}
	}
	slices.SortFunc(own, compareStart)
	slices.SortFunc(jobs, compareStart)

	var found searchResult
	switch {
	case len(own) > 0:
		found.run = &own[0]
		if len(jobs) > 0 && own[0].Tags[tagJobRun] == "" {
			found.jobRun = &jobs[0]
		}
	case len(jobs) > 0:
		found.run = &jobs[0]
	}
	return found
}

// compareStart orders runs by their start. A parent comes before its children.
func compareStart(a, b mlflow.Run) int {
	const parent = "mlflow.parentRunId"
	return cmp.Or(a.StartTime.Compare(b.StartTime), strings.Compare(a.Tags[parent], b.Tags[parent]),
		strings.Compare(a.ID, b.ID))
}

// How many runs a search reads, the earliest first. A job may create thousands, with hundreds of
// metrics each.
const (
	maxOfInvocation = 10  // the earliest is wanted
	maxOfRunID      = 100 // recordings of other nodes and other times are among them
)

// maxSearched is how many experiments one search for runs names.
const maxSearched = 1000

// experiments are those in which runs are searched.
type experiments struct {
	client *mlflow.Client
	ids    [][]string        // in lists for one search each
	byName map[string]string // IDs
}

// newExperiments asks the server for the experiments of a destination.
func newExperiments(ctx context.Context, c *mlflow.Client, d Destination) (experiments, error) {
	all, err := d.searched(ctx, c)
	if err != nil {
		return experiments{}, err
	}

	e := experiments{client: c, byName: make(map[string]string)}
	for some := range slices.Chunk(all, maxSearched) {
		var ids []string
		for _, experiment := range some {
			ids = append(ids, experiment.ID)
			e.byName[experiment.Name] = experiment.ID
		}
		e.ids = append(e.ids, ids)
	}
	return e, nil
}

// findRuns searches for runs, the earliest first.
func (e experiments) findRuns(ctx context.Context, filter string, limit int) ([]mlflow.Run, error) {
	var out []mlflow.Run
	for _, ids := range e.ids {
		runs, err := e.client.SearchRuns(ctx, mlflow.RunQuery{
			ExperimentIDs: ids,
			Filter:        filter,
			OrderBy:       []string{"attributes.start_time ASC"},
			Limit:         limit,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, runs...)
	}
	return out, nil
}
