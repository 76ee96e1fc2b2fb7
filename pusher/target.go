package pusher

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// Destination says where numbers go.
type Destination struct {
	// RunID is a given run, or one that has some of the numbers already.
	RunID string
	// Given tells that a person named RunID: such a run is never ended by us.
	Given bool
	// Elsewhere tells that RunID was noted on another server: if this one has it,
	// it is taken, else the run is searched.
	Elsewhere bool
	// ExperimentName, else ExperimentID, else Default is where a run of our own is made.
	// Within tells that only runs there are looked at.
	ExperimentName, ExperimentID string
	Within                       bool
	// Invocation is the tag of the job's own runs; "" = it had none.
	Invocation string
}

// identity is what a recording's run is known by.
type identity struct {
	runID      string
	invocation string // of the wrapped command, else a hash of the recording
	start, end time.Time
	nodes      []string
	recordings map[string]string // by node: the same for the same recording
	perfpy     bool
}

// newIdentity tells by what a report's run is known.
func newIdentity(r *reporter.Report, d Destination) identity {
	id := identity{runID: r.Run.ID, invocation: d.Invocation, start: r.Run.Start.Time, end: r.Run.End.Time, nodes: r.NodeNames(),
		recordings: make(map[string]string)}
	for name, n := range r.Nodes {
		id.recordings[name] = recording(r.Run.ID, name, nodeTrack(name, n).start)
		id.perfpy = id.perfpy || n.Origin == reporter.OriginPerfPy
	}
	if !plain(id.invocation) {
		id.invocation = id.hash()
	}
	return id
}

// recording names what a node recorded in a run from a moment on.
func recording(runID, node string, start int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %d", runID, node, start))
	return hex.EncodeToString(sum[:8])
}

// hash names all recordings of a report together.
func (id identity) hash() string {
	h := sha256.New()
	for _, name := range id.nodes {
		fmt.Fprintf(h, "%s ", id.recordings[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// found is what a search brought.
type found struct {
	run  *mlflow.Run // nil = there is none yet
	link *mlflow.Run // the job's own, where run is ours and the two are to be linked
}

// search looks for the run that a recording belongs to, by tags.
func (id identity) search(ctx context.Context, c *mlflow.Client, d Destination) (found, error) {
	experiments, err := d.searched(ctx, c)
	if err != nil {
		return found{}, err
	}
	runs, err := query(ctx, c, experiments, tagIs(TagInvocation, id.invocation))
	if err != nil {
		return found{}, err
	}
	if f := pick(runs); f.run != nil {
		return f, nil
	}
	if !plain(id.runID) {
		return found{}, nil
	}
	// A run of our own on another node may have begun a little earlier.
	since := id.start.Add(-time.Hour).UnixMilli()
	if id.perfpy { // its run id is a hash of the content
		since = 0
	}
	runs, err = query(ctx, c, experiments, fmt.Sprintf("%s and attributes.start_time >= %d", tagIs(TagRunID, id.runID), since))
	if err != nil {
		return found{}, err
	}
	return pick(slices.DeleteFunc(runs, func(r mlflow.Run) bool { return !id.fits(r) })), nil
}

// fits tells whether a run that bears our run id is of the same run: made by another
// node's job since this one began, or made by us at the same time for other nodes, or
// for the same recordings in another report. A run id may be used twice.
func (id identity) fits(r mlflow.Run) bool {
	if r.Tags[TagCreatedBy] != createdBy {
		return !r.StartTime.Before(id.start.Truncate(time.Millisecond))
	}
	if id.perfpy {
		return true
	}
	for _, name := range id.nodes {
		switch had := r.Tags[tagRecording(name)]; had {
		case "":
		case id.recordings[name]:
			return true
		default:
			return false
		}
	}
	return !r.StartTime.After(id.end) && (r.EndTime.IsZero() || !r.EndTime.Before(id.start))
}

// pick takes a run of our own, where there is one, else the earliest, and of those
// that began at once the outermost.
func pick(runs []mlflow.Run) found {
	var own, jobs []mlflow.Run
	for _, r := range runs {
		if r.Tags[TagCreatedBy] == createdBy {
			own = append(own, r)
		} else {
			jobs = append(jobs, r)
		}
	}
	for _, list := range [][]mlflow.Run{own, jobs} {
		slices.SortFunc(list, func(a, b mlflow.Run) int {
			return cmp.Or(a.StartTime.Compare(b.StartTime), strings.Compare(a.Tags["mlflow.parentRunId"], b.Tags["mlflow.parentRunId"]),
				strings.Compare(a.ID, b.ID))
		})
	}
	var f found
	switch {
	case len(own) > 0:
		f.run = &own[0]
		if len(jobs) > 0 && own[0].Tags[TagJobRun] == "" {
			f.link = &jobs[0]
		}
	case len(jobs) > 0:
		f.run = &jobs[0]
	}
	return f
}

// searchLimit bounds what one search reads: more runs of one job are not looked at.
const searchLimit = 1000

// query searches runs in lists of experiments.
func query(ctx context.Context, c *mlflow.Client, experiments [][]string, filter string) ([]mlflow.Run, error) {
	var out []mlflow.Run
	for _, ids := range experiments {
		runs, err := c.SearchRuns(ctx, mlflow.RunQuery{ExperimentIDs: ids, Filter: filter, OrderBy: []string{"attributes.start_time ASC"}, Limit: searchLimit})
		if err != nil {
			return nil, err
		}
		out = append(out, runs...)
	}
	return out, nil
}

// searched lists the experiments in which runs are looked for.
func (d Destination) searched(ctx context.Context, c *mlflow.Client) ([][]string, error) {
	if !d.Within {
		return allExperiments(ctx, c)
	}
	e, err := c.ExperimentByName(ctx, d.ExperimentName)
	if mlflow.NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return [][]string{{e.ID}}, nil
}

// allExperiments lists the ids of all experiments, in the server's pages.
func allExperiments(ctx context.Context, c *mlflow.Client) ([][]string, error) {
	var out [][]string
	for page, err := range c.SearchExperiments(ctx) {
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, e := range page {
			ids = append(ids, e.ID)
		}
		if len(ids) > 0 {
			out = append(out, ids)
		}
	}
	return out, nil
}

// tagIs is the filter for a tag; the value must be plain.
func tagIs(key, value string) string { return "tags.`" + key + "` = '" + value + "'" }

// plain tells whether a value can stand in a filter.
func plain(value string) bool {
	return value != "" && !strings.ContainsFunc(value, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	})
}

// create makes a run of our own.
func (id identity) create(ctx context.Context, c *mlflow.Client, d Destination, name string) (*mlflow.Run, error) {
	experiment, err := d.experiment(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.CreateRun(ctx, mlflow.NewRun{ExperimentID: experiment, Name: name, StartTime: id.start, Tags: id.ownTags()})
}

// ownTags are what a run of our own bears from its first moment.
func (id identity) ownTags() []mlflow.Tag {
	return []mlflow.Tag{{Key: TagCreatedBy, Value: createdBy}, {Key: TagInvocation, Value: id.invocation}, {Key: TagRunID, Value: id.runID}}
}

var errTwoExperiments = errors.New("MLFLOW_EXPERIMENT_NAME and MLFLOW_EXPERIMENT_ID name different experiments: unset one of them")

// experiment finds the experiment for a run of our own. The name wins and is made
// where it is not known; the id must exist.
func (d Destination) experiment(ctx context.Context, c *mlflow.Client) (string, error) {
	if d.ExperimentName == "" && d.ExperimentID != "" {
		e, err := c.Experiment(ctx, d.ExperimentID)
		if err != nil {
			return "", err
		}
		return e.ID, nil
	}
	e, err := c.EnsureExperiment(ctx, cmp.Or(d.ExperimentName, "Default"))
	if err != nil {
		return "", err
	}
	if d.ExperimentID != "" && d.ExperimentID != e.ID {
		return "", errTwoExperiments
	}
	return e.ID, nil
}
