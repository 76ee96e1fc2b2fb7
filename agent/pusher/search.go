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

// A runIdentity holds what the run of a recording is recognized by.
type runIdentity struct {
	runID      string
	invocation string // of the wrapped command, or a hash of the recordings
	start, end time.Time
	nodes      []string          // as MLflow has them
	createsRun bool              // it is up to this recording to create a run of our own
	recordings map[string]string // IDs by node
	perfpy     bool
}

// newRunIdentity returns the identity of a report. The recordings are named after base if it is not
// empty, and otherwise after the run ID.
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

// recordingID identifies what a node recorded in a run from a time on.
func recordingID(runID, node string, start int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %d", runID, node, start))
	return hex.EncodeToString(sum[:8])
}

// hash identifies all recordings of a report together.
func (id runIdentity) hash() string {
	h := sha256.New()
	for _, name := range id.nodes {
		fmt.Fprintf(h, "%s ", id.recordings[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// NewInvocation returns the tag of one start of perfagent on a node. The runs that the job creates
// are recognized by it.
func NewInvocation(node string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:]) + "." + node
}

// SharedInvocation returns the tag of all ranks of a launch on a node, so that a run that the job of any of them
// creates is recognized by each. common is a text that only they have in common.
func SharedInvocation(common, node string) string {
	sum := sha256.Sum256([]byte(common))
	return hex.EncodeToString(sum[:8]) + "." + node
}

// relatedRunsFilter returns the filter for runs of other nodes, and of other reports of the same
// recordings. ok is false if there is none.
func (id runIdentity) relatedRunsFilter() (filter string, ok bool) {
	if id.perfpy && len(id.nodes) > 0 { // perf.py's file has no run ID that others know
		return tagFilter(tagRecording(id.nodes[0]), id.recordings[id.nodes[0]]), true
	}
	// A run of our own on another node may have begun a little earlier.
	since := id.start.Add(-time.Hour).UnixMilli()
	return fmt.Sprintf("%s and attributes.start_time >= %d", tagFilter(TagRunID, id.runID), max(0, since)),
		isFilterSafe(id.runID)
}

// hasRecording reports whether a run has one of these very recordings.
func (id runIdentity) hasRecording(r mlflow.Run) bool {
	return slices.ContainsFunc(id.nodes, func(name string) bool {
		tag := r.Tags[tagRecording(name)]
		return tag != "" && tag == id.recordings[name]
	})
}

// fits reports whether a run with our run ID belongs to the same run. That is so if it has our very
// recording, if another node's job created it since this run began and before it ended, or if we
// created it for other nodes at the same time. A run ID may be used twice, and by several commands
// of one node.
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

// collides reports whether a run belongs to another command on one of our nodes: it has that node's
// numbers, or was created by or for it.
func (id runIdentity) collides(r mlflow.Run) bool {
	_, creator, _ := strings.Cut(r.Tags[TagInvocation], ".")
	return slices.ContainsFunc(id.nodes, func(name string) bool {
		return r.Tags[tagRecording(name)] != "" || creator == name
	})
}

// ownTags returns the tags that a run of our own has from its creation on.
func (id runIdentity) ownTags() []mlflow.Tag {
	tags := []mlflow.Tag{
		{Key: tagCreatedBy, Value: createdBy},
		{Key: TagInvocation, Value: id.invocation},
		{Key: TagRunID, Value: id.runID},
	}
	for _, name := range id.nodes[:min(len(id.nodes), 50)] { // the others follow with the numbers
		tags = append(tags, mlflow.Tag{Key: tagRecording(name), Value: id.recordings[name]})
	}
	return tags
}

// tagFilter returns the filter for a tag. The value must be plain.
func tagFilter(key, value string) string { return "tags.`" + key + "` = '" + value + "'" }

// isFilterSafe reports whether a filter may contain a value.
func isFilterSafe(value string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return value != "" && strings.Trim(value, letters) == ""
}

// A searchResult is what a search for the run of a recording found.
type searchResult struct {
	run    *mlflow.Run // nil if there is none yet
	jobRun *mlflow.Run // the job's own, if run is ours and the two are still to be linked

	otherNode   bool              // run is another node's: our own job may still create one
	experiments map[string]string // IDs by name of those that were searched
}

// search looks for the run that a recording belongs to, by tags.
func (id runIdentity) search(ctx context.Context, c *mlflow.Client, d Destination) (searchResult, error) {
	experiments, err := newExperiments(ctx, c, d)
	if err != nil {
		return searchResult{}, err
	}
	filter, ok := id.relatedRunsFilter()

	// Otherwise it is a hash of the recordings, which are tags as well.
	if d.Invocation != "" || !ok {
		runs, err := experiments.findRuns(ctx, tagFilter(TagInvocation, id.invocation), maxOfInvocation)
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
	found.otherNode = found.run != nil && !id.hasRecording(*found.run)
	found.experiments = experiments.byName
	return found, nil
}

// jobRuns returns, by invocation, the IDs of the runs that the jobs created, or that were created
// for them. An invocation without a run is left out.
func jobRuns(ctx context.Context, c *mlflow.Client, d Destination, invocations []string) (map[string]string, error) {
	experiments, err := newExperiments(ctx, c, d)
	if err != nil {
		return nil, err
	}

	out := make(map[string]string)
	for _, invocation := range invocations {
		if !isFilterSafe(invocation) {
			continue
		}
		runs, err := experiments.findRuns(ctx, tagFilter(TagInvocation, invocation), maxOfInvocation)
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
	var all []mlflow.Experiment
	var err error
	if d.ExperimentOnly {
		var one *mlflow.Experiment
		if one, err = c.ExperimentByName(ctx, d.ExperimentName); err == nil {
			all = append(all, *one)
		}
	} else {
		all, err = c.SearchExperiments(ctx)
	}
	if err != nil && !(d.ExperimentOnly && mlflow.NotFound(err)) {
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

// ClientConfig returns the configuration of a client for the server at uri, from the MLFLOW_…
// variables, for a perfagent of the given version.
func ClientConfig(uri, version string, lookup func(key string) (value string, ok bool)) (mlflow.Config, error) {
	cfg, err := mlflow.NewConfig(uri, lookup)
	cfg.UserAgent = "perfagent/" + version
	return cfg, err
}

// A Destination says where numbers go.
type Destination struct {
	// RunID is a given run, or one that already has some of the numbers.
	RunID string

	// Given is set if a person named RunID. We never end such a run.
	Given bool

	// OtherServer is set if RunID was recorded on another server. If this one has it, it is taken;
	// otherwise the run is searched.
	OtherServer bool

	// ExperimentName says where a run of our own is created. If it is empty, ExperimentID does, and
	// if that is empty, too, it is Default.
	ExperimentName, ExperimentID string

	// ExperimentOnly restricts the search for a run to the experiment called ExperimentName.
	ExperimentOnly bool

	// NoCreate looks for the experiment but does not create it, for a dry run.
	NoCreate bool

	// LimitsNames is set if the server takes few names of metrics a run. The live push then leaves room for those of
	// the end.
	LimitsNames bool

	// Invocation is the tag of the job's own runs, or "" if there was none.
	Invocation string
}

// create creates a run of our own. known has the IDs of experiments by name.
func (id runIdentity) create(
	ctx context.Context, c *mlflow.Client, d Destination, known map[string]string, name string,
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

// experiment returns the ID of the experiment for a run of our own. The name wins and is created if
// it is not known, unless the destination is only checked: then the ID is "". The ID must exist.
func (d Destination) experiment(ctx context.Context, c *mlflow.Client, known map[string]string) (string, error) {
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
	named, ok := known[name]
	if !ok && (d.NoCreate || id != "") {
		_, err := c.ExperimentByName(ctx, name)
		ok = mlflow.NotFound(err) // it is not created here
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
