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
	"strconv"
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
	// CheckFirst looks for the experiment before anything is sent: for a dry run.
	CheckFirst bool
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

// newIdentity tells by what a report's run is known; recorded, where not empty, is what
// the recordings are known by instead of the run id.
func newIdentity(r *reporter.Report, d Destination, recorded string) identity {
	id := identity{runID: r.Run.ID, invocation: d.Invocation, start: r.Run.Start.Time, end: r.Run.End.Time, nodes: r.NodeNames(),
		recordings: make(map[string]string)}
	for name, n := range r.Nodes {
		id.recordings[name] = recording(cmp.Or(recorded, r.Run.ID), name, nodeTrack(name, n).start)
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
	// others tells that run is another node's: our own job may still make one.
	others bool
	// experiments are those that were looked at, by name.
	experiments map[string]string
}

// search looks for the run that a recording belongs to, by tags.
func (id identity) search(ctx context.Context, c *mlflow.Client, d Destination) (found, error) {
	searched, err := d.searched(ctx, c)
	if err != nil {
		return found{}, err
	}
	experiments, names := byID(searched)
	filter, ok := id.relatives()
	if d.Invocation != "" || !ok { // else it is a hash of the recordings, which are tags, too
		runs, err := query(ctx, c, experiments, tagIs(TagInvocation, id.invocation), firstRuns)
		if f := pick(runs); err != nil || f.run != nil {
			return f, err
		}
	}
	if !ok {
		return found{experiments: names}, nil
	}
	runs, err := query(ctx, c, experiments, filter, manyRuns)
	if err != nil {
		return found{}, err
	}
	f := pick(slices.DeleteFunc(runs, func(r mlflow.Run) bool { return !id.fits(r) }))
	f.others, f.experiments = f.run != nil && !id.has(*f.run), names
	return f, nil
}

// maxSearched is how many experiments one search for runs names.
const maxSearched = 1000

// byID returns the ids of experiments, in lists for one search each, and the ids by name.
func byID(experiments []mlflow.Experiment) (ids [][]string, names map[string]string) {
	names = make(map[string]string)
	for some := range slices.Chunk(experiments, maxSearched) {
		var list []string
		for _, e := range some {
			list = append(list, e.ID)
			names[e.Name] = e.ID
		}
		ids = append(ids, list)
	}
	return ids, names
}

// JobRuns finds for invocations the runs that their jobs made, or that were made for
// them; an invocation that has none is left out.
func JobRuns(ctx context.Context, c *mlflow.Client, d Destination, invocations []string) (map[string]string, error) {
	searched, err := d.searched(ctx, c)
	if err != nil {
		return nil, err
	}
	experiments, _ := byID(searched)
	out := make(map[string]string)
	for _, invocation := range invocations {
		if !plain(invocation) {
			continue
		}
		runs, err := query(ctx, c, experiments, tagIs(TagInvocation, invocation), firstRuns)
		if err != nil {
			return nil, err
		}
		if f := pick(runs); f.run != nil {
			out[invocation] = f.run.ID
		}
	}
	return out, nil
}

// relatives is the filter for runs of other nodes and for other reports of the same
// recordings.
func (id identity) relatives() (filter string, ok bool) {
	if id.perfpy && len(id.nodes) > 0 { // a run id that others have is not in the file
		return tagIs(tagRecording(id.nodes[0]), id.recordings[id.nodes[0]]), true
	}
	// A run of our own on another node may have begun a little earlier.
	since := id.start.Add(-time.Hour).UnixMilli()
	return fmt.Sprintf("%s and attributes.start_time >= %d", tagIs(TagRunID, id.runID), max(0, since)), plain(id.runID)
}

// has tells whether a run has one of our very recordings.
func (id identity) has(r mlflow.Run) bool {
	for _, name := range id.nodes {
		if had := r.Tags[tagRecording(name)]; had != "" && had == id.recordings[name] {
			return true
		}
	}
	return false
}

// fits tells whether a run that bears our run id is of the same run: made by another
// node's job since this one began and before it ended, or made by us for other nodes at
// the same time, or with our very recording in it. A run id may be used twice, and by
// several commands of one node.
func (id identity) fits(r mlflow.Run) bool {
	switch {
	case id.has(r):
		return true
	case id.perfpy || id.meets(r) || r.StartTime.After(id.end):
		return false
	case r.Tags[TagCreatedBy] != createdBy:
		return !r.StartTime.Before(id.start.Truncate(time.Millisecond))
	}
	return r.EndTime.IsZero() || !r.EndTime.Before(id.start)
}

// meets tells whether a run is of another command on a node of ours: it has that
// node's numbers, or was made by or for it.
func (id identity) meets(r mlflow.Run) bool {
	_, maker, _ := strings.Cut(r.Tags[TagInvocation], ".")
	for _, name := range id.nodes {
		if r.Tags[tagRecording(name)] != "" || maker == name {
			return true
		}
	}
	return false
}

// NewInvocation is the tag of one start of perfagent on a node, by which the runs that
// the job makes are known as its own.
func NewInvocation(node int) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:]) + "." + strconv.Itoa(node)
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

// How many runs a search reads, the earliest first. A job may make thousands, with
// hundreds of metrics each.
const (
	firstRuns = 10  // of one invocation: the earliest is wanted
	manyRuns  = 100 // of one run id: those of other nodes and other times are among them
)

// query searches runs in lists of experiments.
func query(ctx context.Context, c *mlflow.Client, experiments [][]string, filter string, limit int) ([]mlflow.Run, error) {
	var out []mlflow.Run
	for _, ids := range experiments {
		runs, err := c.SearchRuns(ctx, mlflow.RunQuery{ExperimentIDs: ids, Filter: filter, OrderBy: []string{"attributes.start_time ASC"}, Limit: limit})
		if err != nil {
			return nil, err
		}
		out = append(out, runs...)
	}
	return out, nil
}

// searched returns the experiments in which runs are searched.
func (d Destination) searched(ctx context.Context, c *mlflow.Client) ([]mlflow.Experiment, error) {
	if !d.Within {
		return c.SearchExperiments(ctx)
	}
	e, err := c.ExperimentByName(ctx, d.ExperimentName)
	if mlflow.NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []mlflow.Experiment{*e}, nil
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
func (id identity) create(ctx context.Context, c *mlflow.Client, d Destination, known map[string]string, name string) (*mlflow.Run, error) {
	experiment, err := d.experiment(ctx, c, known)
	if err != nil {
		return nil, err
	}
	return c.CreateRun(ctx, mlflow.NewRun{ExperimentID: experiment, Name: name, StartTime: id.start, Tags: id.ownTags()})
}

// ownTags are what a run of our own bears from its first moment.
func (id identity) ownTags() []mlflow.Tag {
	tags := []mlflow.Tag{{Key: TagCreatedBy, Value: createdBy}, {Key: TagInvocation, Value: id.invocation}, {Key: TagRunID, Value: id.runID}}
	for _, name := range id.nodes[:min(len(id.nodes), 50)] { // the others' follow with the numbers
		tags = append(tags, mlflow.Tag{Key: tagRecording(name), Value: id.recordings[name]})
	}
	return tags
}

var errTwoExperiments = errors.New("MLFLOW_EXPERIMENT_NAME and MLFLOW_EXPERIMENT_ID name different experiments: unset one of them")

// check looks, without making anything, whether a run of our own can be made.
func (d Destination) check(ctx context.Context, c *mlflow.Client) error {
	if d.ExperimentID == "" && !d.CheckFirst {
		return nil
	}
	var byName, byID *mlflow.Experiment
	var err error
	if d.ExperimentID != "" {
		if byID, err = c.Experiment(ctx, d.ExperimentID); err != nil {
			return err
		}
	}
	if d.ExperimentName != "" {
		if byName, err = c.ExperimentByName(ctx, d.ExperimentName); err != nil && !mlflow.NotFound(err) {
			return err
		}
	}
	for _, e := range []*mlflow.Experiment{byID, byName} {
		if e != nil && e.LifecycleStage == "deleted" {
			return fmt.Errorf("experiment %s (%s) is deleted: restore it with \"mlflow experiments restore --experiment-id %s\", or name another one",
				e.Name, e.ID, e.ID)
		}
	}
	if byID != nil && d.ExperimentName != "" && (byName == nil || byName.ID != byID.ID) {
		return errTwoExperiments
	}
	return nil
}

// experiment finds the experiment for a run of our own. The name wins and is made
// where it is not known; the id must exist. Those that a search has seen are known.
func (d Destination) experiment(ctx context.Context, c *mlflow.Client, known map[string]string) (string, error) {
	if d.ExperimentName == "" && d.ExperimentID != "" {
		e, err := c.Experiment(ctx, d.ExperimentID)
		if err != nil {
			return "", err
		}
		return e.ID, nil
	}
	name := cmp.Or(d.ExperimentName, "Default")
	id, ok := known[name]
	if !ok {
		e, err := c.EnsureExperiment(ctx, name)
		if err != nil {
			return "", err
		}
		id = e.ID
	}
	if d.ExperimentID != "" && d.ExperimentID != id {
		return "", errTwoExperiments
	}
	return id, nil
}
