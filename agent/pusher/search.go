package pusher

import (
	"cmp"
	"context"
	"crypto/rand"
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

// A runIdentity holds the properties by which the run of a recording is recognized.
type runIdentity struct {
	runID      string
	invocation string // of the wrapped command, or a hash of the recordings
	start, end time.Time
	nodes      []string          // names of the nodes in MLflow
	createsRun bool              // this recording's push creates the run if it is missing
	recordings map[string]string // IDs of the recordings by node
	perfpy     bool
}

// newRunIdentity returns the identity of r. The IDs of the recordings derive from base or, if that is "", from the run
// ID.
func newRunIdentity(r *reporter.Report, d Destination, base string) runIdentity {
	id := runIdentity{
		runID:      r.Run.ID,
		invocation: d.Invocation,
		start:      r.Run.Start.Time,
		end:        r.Run.End.Time,
		createsRun: len(r.Nodes) == 0,
		recordings: make(map[string]string),
	}
	for _, key := range r.NodeNames() {
		n := r.Nodes[key]
		name := nodeName(key, n)
		id.nodes = append(id.nodes, name)
		id.createsRun = id.createsRun || nodeStep(key, n) == 0
		id.recordings[name] = recordingID(cmp.Or(base, r.Run.ID), name, newNodeSeries(name, n).start)
		id.perfpy = id.perfpy || n.Origin == reporter.OriginPerfPy
	}
	if !isFilterSafe(id.invocation) {
		id.invocation = id.hash()
	}
	return id
}

// recordingID returns the ID of node's recording in the run runID. start is the start of the recording, in ms since
// 1970.
func recordingID(runID, node string, start int64) string {
	return shortHash(fmt.Sprintf("%q %s %d", runID, node, start))
}

// shortHash returns a hash of 16 digits.
func shortHash(words string) string {
	sum := sha256.Sum256([]byte(words))
	return hex.EncodeToString(sum[:8])
}

// hash returns a common ID of all recordings.
func (id runIdentity) hash() string {
	words := ""
	for _, name := range id.nodes {
		words += id.recordings[name] + " "
	}
	return shortHash(words)
}

// NewInvocation returns a new value of TagInvocation for one start of perfagent on node. It marks the runs that the job
// creates.
func NewInvocation(node string) string {
	return shortHash(rand.Text()) + "." + node
}

// SharedInvocation returns the value of TagInvocation for all ranks of a launch on node, so that each of them
// recognizes a run created by the job of any of these ranks. common is shared by exactly these ranks.
func SharedInvocation(common, node string) string {
	return shortHash(common) + "." + node
}

// relatedRunsFilter returns the filter for runs of other nodes, and of other reports of the same recordings. ok is
// false if there is no such filter.
func (id runIdentity) relatedRunsFilter() (filter string, ok bool) {
	if id.perfpy && len(id.nodes) > 0 { // perf.py's file has no shared run ID
		return tagFilter(tagRecording(id.nodes[0]), id.recordings[id.nodes[0]]), true
	}
	// A perfagent on another node may have created the run a little earlier.
	since := id.start.Add(-time.Hour).UnixMilli()
	return fmt.Sprintf("%s and attributes.start_time >= %d", tagFilter(TagRunID, id.runID), max(0, since)),
		isFilterSafe(id.runID)
}

// hasRecording reports whether r has one of the recordings of id.
func (id runIdentity) hasRecording(r mlflow.Run) bool {
	return slices.ContainsFunc(id.nodes, func(name string) bool {
		tag := r.Tags[tagRecording(name)]
		return tag != "" && tag == id.recordings[name]
	})
}

// fits reports whether r, a run with our run ID, belongs to our recordings. It does if it has one of our recordings, if
// another node's job created it between our start and end, or if perfagent created it for other nodes at the same time.
// The run ID alone proves nothing, because it may be used twice, even by several commands on one node.
func (id runIdentity) fits(r mlflow.Run) bool {
	switch {
	case id.hasRecording(r):
		return true
	case id.perfpy || id.collides(r) || r.StartTime.After(id.end):
		return false
	case r.Tags[tagCreatedBy] != createdBy:
		return !r.StartTime.Before(id.start.Truncate(time.Millisecond))
	}
	return r.EndTime.IsZero() || !r.EndTime.Before(id.start)
}

// collides reports whether r belongs to another command on one of our nodes, because r has a recording of that node, or
// that node or its job created r.
func (id runIdentity) collides(r mlflow.Run) bool {
	_, creator, _ := strings.Cut(r.Tags[TagInvocation], ".")
	return slices.ContainsFunc(id.nodes, func(name string) bool {
		return r.Tags[tagRecording(name)] != "" || creator == name
	})
}

// ownTags returns the initial tags of a run that perfagent creates.
func (id runIdentity) ownTags() []mlflow.Tag {
	tags := []mlflow.Tag{
		{Key: tagCreatedBy, Value: createdBy},
		{Key: TagInvocation, Value: id.invocation},
		{Key: TagRunID, Value: id.runID},
	}
	for _, name := range id.nodes[:min(len(id.nodes), 50)] { // the tags of other nodes are sent later, with the metrics
		tags = append(tags, mlflow.Tag{Key: tagRecording(name), Value: id.recordings[name]})
	}
	return tags
}

// tagFilter returns the filter for runs with the given tag. value must be filter-safe.
func tagFilter(key, value string) string { return "tags.`" + key + "` = '" + value + "'" }

// isFilterSafe reports whether a filter may contain value.
func isFilterSafe(value string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return value != "" && strings.Trim(value, letters) == ""
}

// A searchResult is the result of a search for the run of a recording.
type searchResult struct {
	run    *mlflow.Run // nil if there is none yet
	jobRun *mlflow.Run // the job's run, if run is ours and the two runs must be linked

	otherNode   bool                // run is from another node, and our job may still create a run
	experiments []mlflow.Experiment // the experiments searched
}

// search looks for the run of a recording by its tags.
func (id runIdentity) search(ctx context.Context, c *mlflow.Client, d Destination) (searchResult, error) {
	experiments, err := d.experiments(ctx, c)
	if err != nil {
		return searchResult{}, err
	}
	filter, ok := id.relatedRunsFilter()

	// Without d.Invocation, id.invocation is a hash of the recordings, and filter finds these by their own tags.
	if d.Invocation != "" || !ok {
		runs, err := findRuns(ctx, c, experiments, tagFilter(TagInvocation, id.invocation), maxOfInvocation)
		if found := pick(runs); err != nil || found.run != nil {
			return found, err
		}
	}
	if !ok {
		return searchResult{experiments: experiments}, nil
	}

	runs, err := findRuns(ctx, c, experiments, filter, maxOfRunID)
	if err != nil {
		return searchResult{}, err
	}
	found := pick(slices.DeleteFunc(runs, func(r mlflow.Run) bool { return !id.fits(r) }))
	found.otherNode = found.run != nil && !id.hasRecording(*found.run)
	found.experiments = experiments
	return found, nil
}

// jobRuns returns, by invocation, the IDs of the runs that the jobs created, or that perfagent created for them.
// Invocations without a run are left out.
func jobRuns(ctx context.Context, c *mlflow.Client, d Destination, invocations []string) (map[string]string, error) {
	experiments, err := d.experiments(ctx, c)
	if err != nil {
		return nil, err
	}

	out := make(map[string]string)
	for _, invocation := range invocations {
		if !isFilterSafe(invocation) {
			continue
		}
		runs, err := findRuns(ctx, c, experiments, tagFilter(TagInvocation, invocation), maxOfInvocation)
		if err != nil {
			return nil, err
		}
		if found := pick(runs); found.run != nil {
			out[invocation] = found.run.ID
		}
	}
	return out, nil
}

// pick chooses one of runs. It prefers runs that perfagent created, then the earliest, and among runs with the same
// start the outermost. It sorts runs.
func pick(runs []mlflow.Run) (found searchResult) {
	slices.SortFunc(runs, compareStart)
	first := func(own bool) *mlflow.Run {
		i := slices.IndexFunc(runs, func(r mlflow.Run) bool { return own == (r.Tags[tagCreatedBy] == createdBy) })
		if i < 0 {
			return nil
		}
		return &runs[i]
	}

	found.run = cmp.Or(first(true), first(false))
	if own := first(true); own != nil && own.Tags[tagJobRun] == "" {
		found.jobRun = first(false)
	}
	return found
}

// compareStart orders runs by their start. A parent precedes its children.
func compareStart(a, b mlflow.Run) int {
	const parent = "mlflow.parentRunId"
	return cmp.Or(a.StartTime.Compare(b.StartTime), strings.Compare(a.Tags[parent], b.Tags[parent]),
		strings.Compare(a.ID, b.ID))
}

// Limits on the number of runs in a search that returns the earliest first. A job may create thousands of runs, with
// hundreds of metrics each.
const (
	maxOfInvocation = 10  // only the earliest matter
	maxOfRunID      = 100 // includes runs of other nodes and from other times
)

// maxSearched is the maximum number of experiments in one search for runs.
const maxSearched = 1000

// experiments returns the experiments in which d may have a run.
func (d Destination) experiments(ctx context.Context, c *mlflow.Client) ([]mlflow.Experiment, error) {
	if !d.ExperimentOnly {
		return c.SearchExperiments(ctx)
	}
	one, err := c.ExperimentByName(ctx, d.ExperimentName)
	switch {
	case mlflow.NotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []mlflow.Experiment{*one}, nil
}

// findRuns searches experiments for runs, the earliest first. limit applies to each group of maxSearched experiments.
func findRuns(
	ctx context.Context, c *mlflow.Client, experiments []mlflow.Experiment, filter string, limit int,
) ([]mlflow.Run, error) {
	var out []mlflow.Run
	for some := range slices.Chunk(experiments, maxSearched) {
		var ids []string
		for _, e := range some {
			ids = append(ids, e.ID)
		}
		runs, err := c.SearchRuns(ctx, mlflow.RunQuery{
			ExperimentIDs: ids, Filter: filter, OrderBy: []string{"attributes.start_time ASC"}, Limit: limit,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, runs...)
	}
	return out, nil
}

// ClientConfig returns the configuration of a client for the server at uri, from the MLFLOW_… variables, for a
// perfagent of the given version.
func ClientConfig(uri, version string, lookup func(key string) (value string, ok bool)) (mlflow.Config, error) {
	cfg, err := mlflow.NewConfig(uri, lookup)
	cfg.UserAgent = "perfagent/" + version
	return cfg, err
}

// A Destination is where a push sends its numbers.
type Destination struct {
	// RunID is the ID of a given run, or of a run that already has some of the numbers.
	RunID string

	// Given means that the user named RunID. A push never ends such a run.
	Given bool

	// OtherServer means that RunID was recorded on another server. The push uses it if this server has it, and
	// otherwise searches for the run.
	OtherServer bool

	// ExperimentName, or else ExperimentID, is the experiment for a run that perfagent creates. If both are empty, the
	// experiment is Default.
	ExperimentName, ExperimentID string

	// ExperimentOnly restricts the search for a run to the experiment called ExperimentName.
	ExperimentOnly bool

	// NoCreate means that a missing experiment must not be created, as in a dry run.
	NoCreate bool

	// LimitsNames means that the server limits the names of metrics of a run. The live push then leaves room for the
	// names that are sent at the end.
	LimitsNames bool

	// Invocation is the tag of the runs that the job creates, or "" if it has none.
	Invocation string
}

// NewDestination returns the destination of the push with the given state.
func NewDestination(s reporter.PushState) Destination {
	return Destination{
		RunID: s.RunID, Given: s.Given, Invocation: s.Invocation,
		ExperimentName: s.ExperimentName, ExperimentID: s.ExperimentID,
	}
}

// create creates a run called name. known are the experiments that have been read from the server.
func (id runIdentity) create(
	ctx context.Context, c *mlflow.Client, d Destination, known []mlflow.Experiment, name string,
) (*mlflow.Run, error) {
	experiment, err := d.experiment(ctx, c, known)
	if err != nil {
		return nil, err
	}
	run := mlflow.NewRun{ExperimentID: experiment, Name: name, StartTime: id.start, Tags: id.ownTags()}
	return c.CreateRun(ctx, run)
}

var errTwoExperiments = errors.New("MLFLOW_EXPERIMENT_NAME and MLFLOW_EXPERIMENT_ID name different experiments:" +
	" unset one of them")

// experiment returns the ID of the experiment for a new run: the one called ExperimentName, which is created if it is
// unknown, or otherwise ExperimentID, which must exist. If both are given, they must agree. With NoCreate, an unknown
// experiment is not created, and its ID is "".
func (d Destination) experiment(
	ctx context.Context, c *mlflow.Client, known []mlflow.Experiment,
) (string, error) {
	id := d.ExperimentID
	if id != "" {
		e, err := c.Experiment(ctx, id)
		if err == nil && e.LifecycleStage == "deleted" {
			err = fmt.Errorf("experiment %s (%s) is deleted: restore it with"+
				" \"mlflow experiments restore --experiment-id %s\", or name another one", e.Name, id, id)
		}
		if err != nil {
			return "", err
		}
		if d.ExperimentName == "" {
			return id, nil
		}
	}

	name := cmp.Or(d.ExperimentName, "Default")
	named := ""
	i := slices.IndexFunc(known, func(e mlflow.Experiment) bool { return e.Name == name })
	ok := i >= 0
	if ok {
		named = known[i].ID
	}
	if !ok && (d.NoCreate || id != "") {
		_, err := c.ExperimentByName(ctx, name)
		ok = mlflow.NotFound(err) // do not create it
	}
	if !ok {
		e, err := c.EnsureExperiment(ctx, name)
		if err != nil {
			return "", err
		}
		named = e.ID
	}
	if id != "" && id != named {
		return "", errTwoExperiments
	}
	return named, nil
}
