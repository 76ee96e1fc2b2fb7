package mlflowtest

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// A run is a run of the Fake. Its name is a tag.
type run struct {
	id, user, status string
	experiment       *experiment
	start, end       int64
	deleted          bool
	tags             map[string]string
	metrics          map[string][]Point // histories, in the order of comparePoints
	folders          folders            // of the metrics
}

// nameTag is the tag with a run's name.
const nameTag = "mlflow.runName"

func (f *Fake) run(id string) (*run, *apiError) {
	for _, r := range f.runs {
		if r.id == id {
			return r, nil
		}
	}
	return nil, absent("Run with id=%s not found", id)
}

// active returns the run with the given ID. A deleted run is an error.
func (f *Fake) active(id string) (*run, *apiError) {
	r, err := f.run(id)
	if err == nil && r.deleted {
		return nil, invalid("The run %s must be in the 'active' state. Current state is deleted.", id)
	}
	return r, err
}

func (r *run) info() map[string]any {
	info := map[string]any{
		"run_id":          r.id,
		"run_uuid":        r.id,
		"run_name":        r.tags[nameTag],
		"experiment_id":   r.experiment.id,
		"user_id":         r.user,
		"status":          r.status,
		"start_time":      r.start,
		"artifact_uri":    r.root(),
		"lifecycle_stage": stage(r.deleted),
	}
	if r.end != 0 {
		info["end_time"] = r.end
	}
	return info
}

func (r *run) json() map[string]any {
	data := map[string]any{"tags": pairs(r.tags)}
	var metrics []pointJSON
	for _, k := range slices.Sorted(maps.Keys(r.metrics)) {
		metrics = append(metrics, newPointJSON(k, latest(r.metrics[k])))
	}
	if metrics != nil {
		data["metrics"] = metrics
	}
	return map[string]any{"info": r.info(), "data": data, "inputs": struct{}{}}
}

// A pointJSON is a point in a response. It is a struct, not a map, because a history may have very many points.
type pointJSON struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"`
	Step      int64   `json:"step"`
}

func newPointJSON(key string, p Point) pointJSON {
	return pointJSON{Key: key, Value: p.Value, Timestamp: p.Timestamp, Step: p.Step}
}

func pairs(m map[string]string) []pair {
	var out []pair
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, pair{k, m[k]})
	}
	return out
}

// latest returns the point with the highest step. Points with the same step are compared by time and then by value.
func latest(points []Point) Point {
	return slices.MaxFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Timestamp, b.Timestamp),
			cmp.Compare(a.Value, b.Value))
	})
}

type newRun struct {
	ExperimentID string  `json:"experiment_id"`
	UserID       string  `json:"user_id"`
	RunName      string  `json:"run_name"`
	StartTime    integer `json:"start_time"`
	Tags         []pair  `json:"tags"`
}

func (f *Fake) createRun(in *newRun) (any, *apiError) {
	if in.ExperimentID == "" {
		return nil, &apiError{status: http.StatusBadRequest, code: "BAD_REQUEST", message: "experiment_id is missing"}
	}
	e, err := f.experiment(in.ExperimentID)
	if err != nil {
		return nil, err
	}
	if e.deleted {
		return nil, invalid("The experiment %s must be in the 'active' state. Current state is deleted.", e.id)
	}

	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	r := &run{
		id:         hex.EncodeToString(id),
		user:       in.UserID,
		status:     "RUNNING",
		experiment: e,
		start:      int64(in.StartTime),
		tags:       map[string]string{},
		metrics:    map[string][]Point{},
		folders:    folders{},
	}
	for _, t := range in.Tags {
		if err := r.tag(t); err != nil {
			return nil, err
		}
	}
	if in.RunName != "" {
		r.tags[nameTag] = in.RunName
	}
	if r.tags[nameTag] == "" {
		r.tags[nameTag] = fmt.Sprintf("nameless-run-%d", len(f.runs))
	}
	f.runs = append(f.runs, r)
	return map[string]any{"run": r.json()}, nil
}

// tag checks t and sets it as a tag of the run.
func (r *run) tag(t pair) *apiError {
	if t.Key == "" {
		return missing("key")
	}
	if err := checkKey(t.Key); err != nil {
		return err
	}
	if err := collides(r.tags, t.Key); err != nil {
		return err
	}
	r.tags[t.Key] = cut(t.Value, maxTag)
	return nil
}

type runID struct {
	ID string `json:"run_id" need:"yes"`
}

func (f *Fake) getRun(in *runID) (any, *apiError) {
	r, err := f.run(in.ID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"run": r.json()}, nil
}

type runUpdate struct {
	ID      string   `json:"run_id" need:"yes"`
	Status  string   `json:"status"`
	EndTime *integer `json:"end_time"`
}

func (f *Fake) updateRun(in *runUpdate) (any, *apiError) {
	r, err := f.active(in.ID)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"}, in.Status) {
		return nil, invalid("Invalid value \"%s\" for parameter 'status' supplied", in.Status)
	}
	if in.Status != "" {
		r.status = in.Status
	}
	if in.EndTime != nil {
		r.end = int64(*in.EndTime)
	}
	return map[string]any{"run_info": r.info()}, nil
}

func (f *Fake) deleteRun(in *runID) (any, *apiError) {
	r, err := f.run(in.ID)
	if err != nil {
		return nil, err
	}
	r.deleted = true
	return struct{}{}, nil
}

// DeleteRun deletes the run with the given ID, as a user does in the browser.
func (f *Fake) DeleteRun(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.deleteRun(&runID{id}) // a missing run is ignored
}

// A metric is one point in a request. The pointers distinguish 0 from a missing value.
type metric struct {
	Key       string   `json:"key"`
	Value     *float64 `json:"value"`
	Timestamp *integer `json:"timestamp"`
	Step      integer  `json:"step"`
}

func (m *metric) check() *apiError {
	switch {
	case m.Key == "":
		return missing("key")
	case m.Value == nil:
		return missing("value")
	case m.Timestamp == nil:
		return missing("timestamp")
	case *m.Timestamp < 0:
		return invalid("Invalid value %d for parameter 'timestamp' supplied:"+
			" Timestamp must be a nonnegative long (64-bit integer)", *m.Timestamp)
	}
	return checkKey(m.Key)
}

type batch struct {
	RunID   string   `json:"run_id" need:"yes"`
	Metrics []metric `json:"metrics"`
	Tags    []pair   `json:"tags"`
}

// check returns an error if the batch is invalid for any run.
func (b *batch) check() *apiError {
	for i := range b.Metrics {
		if err := b.Metrics[i].check(); err != nil {
			return err
		}
	}
	for _, t := range b.Tags {
		if t.Key == "" {
			return missing("key")
		}
		if err := checkKey(t.Key); err != nil {
			return err
		}
	}

	m, t := len(b.Metrics), len(b.Tags)
	return cmp.Or(atMost(maxMetrics, "metrics", m), atMost(maxTags, "tags", t),
		atMost(maxItems, "metrics, params, and tags", m+t))
}

// atMost returns an error if n, the number of items of the given kind in a batch, exceeds max.
func atMost(max int, kind string, n int) *apiError {
	if n <= max {
		return nil
	}
	return invalid("A batch logging request can contain at most %d %s. Got %d %s."+
		" Please split up %s across multiple requests and try again.", max, kind, n, kind, kind)
}

// logBatch stores the whole batch, or nothing if a part of it is invalid.
func (f *Fake) logBatch(in *batch) (any, *apiError) {
	if err := in.check(); err != nil {
		return nil, err
	}
	r, err := f.active(in.RunID)
	if err != nil {
		return nil, err
	}
	if err := r.checkMetrics(in.Metrics); err != nil {
		return nil, err
	}
	if !f.FileStore && len(in.Metrics) > maxDeduplicated && r.hasAny(in.Metrics) {
		return nil, r.logKnown(in.Metrics)
	}

	changed := *r
	changed.tags = maps.Clone(r.tags)
	for _, t := range in.Tags {
		if err := changed.tag(t); err != nil {
			return nil, err
		}
	}
	for i := range in.Metrics {
		changed.log(&in.Metrics[i], f.FileStore)
	}
	*r = changed
	return struct{}{}, nil
}

// checkMetrics returns an error if a key of metrics is the folder of another key, or the other way round.
func (r *run) checkMetrics(metrics []metric) *apiError {
	added, needed := map[string]bool{}, folders{}
	known := func(key string) bool { return r.metrics[key] != nil || added[key] }
	for _, m := range metrics {
		if known(m.Key) {
			continue
		}
		if r.folders[m.Key] || needed[m.Key] {
			return isFolder(m.Key)
		}
		for dir := path.Dir(m.Key); dir != "."; dir = path.Dir(dir) {
			if known(dir) {
				return isFolder(m.Key)
			}
		}
		added[m.Key] = true
		needed.add(m.Key)
	}
	return nil
}

// maxDeduplicated is the maximum size of a batch from which a 2.x server with a database removes the points that it
// has.
const maxDeduplicated = 100

// logKnown imitates a 2.x server with a database that already has some points of a batch larger than maxDeduplicated.
// For each hundred points, the server finds the known points among them, and then logs all other points of the batch.
// It stops if one of the other points is also known. Points logged before remain.
func (r *run) logKnown(metrics []metric) *apiError {
	for some := range slices.Chunk(metrics, maxDeduplicated) {
		var others []metric
		for i, m := range metrics {
			asked := slices.ContainsFunc(some, func(s metric) bool { return s.Key == m.Key })
			if !asked || !r.hasAny(metrics[i:i+1]) {
				others = append(others, m)
			}
		}

		if r.hasAny(others) {
			break
		}

		for i := range others {
			r.log(&others[i], false)
		}
	}
	return &apiError{
		status: http.StatusBadRequest,
		code:   "BAD_REQUEST",
		message: "(sqlite3.IntegrityError) UNIQUE constraint failed: metrics.key, metrics.timestamp, metrics.step," +
			" metrics.run_uuid, metrics.value, metrics.is_nan",
	}
}

// hasAny reports whether the run has any of metrics.
func (r *run) hasAny(metrics []metric) bool {
	return slices.ContainsFunc(metrics, func(m metric) bool {
		_, found := slices.BinarySearchFunc(r.metrics[m.Key], m.point(), comparePoints)
		return found
	})
}

func (m *metric) point() Point {
	return Point{Timestamp: int64(*m.Timestamp), Step: int64(m.Step), Value: *m.Value}
}

// log adds m, which checkMetrics has accepted. Unless asFile is set, it skips a point that the run has.
func (r *run) log(m *metric, asFile bool) {
	points, known := r.metrics[m.Key]
	if !known {
		r.folders.add(m.Key)
	}
	p := m.point()
	i, found := slices.BinarySearchFunc(points, p, comparePoints)
	switch {
	case asFile:
		r.metrics[m.Key] = append(points, p)
	case !found:
		r.metrics[m.Key] = slices.Insert(points, i, p)
	}
}

// comparePoints is the order of the points in a history.
func comparePoints(a, b Point) int {
	return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Value, b.Value))
}

type oneTag struct {
	RunID string `json:"run_id" need:"yes"`
	Key   string `json:"key" need:"yes"`
	Value string `json:"value"`
}

func (f *Fake) setTag(in *oneTag) (any, *apiError) {
	return f.logBatch(&batch{RunID: in.RunID, Tags: []pair{{in.Key, in.Value}}})
}

type historyQuery struct {
	RunID      string  `json:"run_id" need:"yes"`
	Key        string  `json:"metric_key" need:"yes"`
	MaxResults integer `json:"max_results"`
	PageToken  string  `json:"page_token"`
}

// history handles a request for a history. Without max_results, it responds like some 3.x servers, with no points and a
// token for the same page. The history of a missing run is empty, as on servers with a database.
func (f *Fake) history(in *historyQuery) (any, *apiError) {
	var all []Point
	if r, err := f.run(in.RunID); err == nil {
		all = r.metrics[in.Key]
	}
	from, err := offset(in.PageToken)
	if err != nil {
		return nil, err
	}
	if in.MaxResults < 0 {
		return nil, invalid("Invalid value %d for parameter 'max_results' supplied. It must be a positive integer.",
			in.MaxResults)
	}

	list, next := cutPage(all, from, in.MaxResults)
	answer := map[string]any{}
	var points []pointJSON
	for _, p := range list {
		points = append(points, newPointJSON(in.Key, p))
	}
	if points != nil {
		answer["metrics"] = points
	}
	return withToken(answer, next), nil
}

// Runs returns all runs, including deleted ones, the earliest first.
func (f *Fake) Runs() []RunData {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []RunData
	for _, r := range f.runs {
		out = append(out, f.data(r))
	}
	slices.SortStableFunc(out, func(a, b RunData) int { return cmp.Compare(a.Info.StartTime, b.Info.StartTime) })
	return out
}

// data returns a copy of all data of r.
func (f *Fake) data(r *run) RunData {
	d := RunData{
		Info: RunInfo{
			RunID:          r.id,
			RunName:        r.tags[nameTag],
			ExperimentID:   r.experiment.id,
			ExperimentName: r.experiment.name,
			UserID:         r.user,
			Status:         r.status,
			LifecycleStage: stage(r.deleted),
			StartTime:      r.start,
			EndTime:        r.end,
			ArtifactURI:    r.root(),
		},
		Tags:    maps.Clone(r.tags),
		Latest:  map[string]Number{},
		Metrics: map[string][]Point{},
	}
	for k, points := range r.metrics {
		d.Metrics[k] = slices.Clone(points)
	}
	for k, points := range r.metrics {
		d.Latest[k] = Number(latest(points).Value)
	}

	prefix := r.folder() + "/"
	for _, p := range slices.Sorted(maps.Keys(f.files)) {
		if rest, ok := strings.CutPrefix(p, prefix); ok {
			d.Artifacts = append(d.Artifacts, newArtifact(rest, f.files[p]))
		}
	}
	return d
}
