package pusher

import (
	"maps"
	"math"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// hostileNames returns series names that are not valid MLflow keys, that map to the same key, or that would be folders
// of other keys.
func hostileNames() []string {
	return []string{"a:b", "a_b", `a{b="c"}`, "a/b", "a", "a/count", "a/time_ms/x", "a/per_second", "..", "/", "a//b", "a/",
		"ünï 1", strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("é", 150), "\xff\x00", "</script>",
		"throughput_mb_per_second"}
}

// wantKeys checks that all servers accept the keys, that they are unique, and that none is the folder of another.
func wantKeys(t *testing.T, keys []string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, key := range keys {
		if err := mlflow.CheckKey(key); err != nil {
			t.Errorf("key %s: %v", key, err)
		}
		if seen[key] {
			t.Errorf("duplicate key %s", key)
		}
		seen[key] = true
		for part := range strings.SplitSeq(key, "/") {
			if len(part) > 255 {
				t.Errorf("key %s has a part of %d bytes, want at most 255", key, len(part))
			}
		}
	}
	for _, key := range keys {
		for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				t.Errorf("key %s is a folder of %s", dir, key)
			}
		}
	}
}

// valuesUnder returns the values of metrics whose keys begin with one of the folders.
func valuesUnder(list []mlflow.Metric, folders ...string) map[string]float64 {
	out := make(map[string]float64)
	for _, m := range list {
		if slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(m.Key, f) }) {
			out[m.Key] = m.Value
		}
	}
	return out
}

func TestMetrics_HaveOperationsAndTransfers(t *testing.T) {
	list, dropped := metrics(reportertest.AddOperations(reportertest.ThreeNodes()))
	if dropped != 0 {
		t.Errorf("%d values were dropped, want none", dropped)
	}
	own := slices.DeleteFunc(list, func(m mlflow.Metric) bool { return m.Step != 1 })
	collectortest.Same(t, "metrics of operations and transfers", valuesUnder(own, "op/", "transfer/"), map[string]float64{
		"op/store.get/count": 1234, "op/store.get/avg_time_ms": 1.24, "op/store.get/p90_time_ms": 2.2, "op/store.get/max_time_ms": 12,
		"op/GET /_script_alert_1__/script__code__200__/count":       10,
		"op/GET /_script_alert_1__/script__code__200__/avg_time_ms": 900,
		"op/GET /_script_alert_1__/script__code__200__/p90_time_ms": 1100,
		"op/GET /_script_alert_1__/script__code__200__/max_time_ms": 1200,
		"op/vllm_time_to_first_token_seconds/count":                 40, "op/vllm_time_to_first_token_seconds/avg_time_ms": 55,
		"op/vllm_time_to_first_token_seconds/p90_time_ms": 80, "op/only.failed/count": 0,
		"transfer/nixl/num_successful_transfers": 120, "transfer/nixl/avg_xfer_time_ms": 9.9, "transfer/nixl/p90_xfer_time_ms": 15,
		"transfer/nixl/avg_post_time_ms": 1.2, "transfer/nixl/p90_post_time_ms": 2.5, "transfer/nixl/avg_mb_per_transfer": 70,
		"transfer/nixl/throughput_mb_per_second": 7070.707, "transfer/nixl/avg_number_of_descriptors": 56, "transfer/nixl/failed": 2,
	})
}

// Every server accepts the keys of a job's series, and the keys do not depend on which series are pushed.
func TestMetrics_KeysOfHostileNamesAreValidAndStable(t *testing.T) {
	n := &reporter.Node{Operations: &aggregate.Operations{Times: make(map[string]aggregate.Timing)}, Transfers: make(map[string]aggregate.Transfer)}
	for i, name := range hostileNames() {
		n.Operations.Times[name] = aggregate.Timing{Count: float64(i), Total: float64(i), Avg: new(1.0), P90: new(1.0), Max: new(1.0)}
		n.Transfers[name] = aggregate.Transfer{}
	}
	list := operationMetrics(n)
	wantKeys(t, keysOf(list))
	if got, want := len(list), maxOperations*pushed(reporter.OpKind)+len(hostileNames())*pushed(reporter.TransferKind); got != want {
		t.Errorf("%d values, want %d", got, want)
	}

	counts := valuesUnder(list, "op/")
	for key, want := range map[string]string{"a/b": "a/b", "a_b": "a_b_2", "a/count": "a_count", "..": "__"} {
		i := float64(slices.Index(hostileNames(), key))
		if got, ok := counts["op/"+want+"/count"]; i >= 3 && (!ok || got != i) {
			t.Errorf("op/%s/count is %v, want %v; keys %q", want, got, i, slices.Sorted(maps.Keys(counts)))
		}
	}
}

// pushed returns how many values are pushed for a series of the given kind.
func pushed(kind reporter.OperationKind) int {
	return len(reporter.OperationNumbers(kind, reporter.OutputPush))
}

func TestOperationMetrics_LeavesOutValuesThatAreNotFinite(t *testing.T) {
	nan := reportertest.AddOperations(reportertest.ThreeNodes()).Nodes["0"].Transfers["nixl"]
	nan.Summary.Throughput, nan.Summary.P90Xfer = math.NaN(), math.Inf(1)
	got := operationMetrics(&reporter.Node{Transfers: map[string]aggregate.Transfer{"nixl": nan}})
	if len(got) != pushed(reporter.TransferKind)-2 {
		t.Errorf("metrics of a transfer with NaN and Inf: %v, want all but 2", got)
	}
	if got := operationMetrics(&reporter.Node{}); got != nil {
		t.Errorf("metrics of a node without operations: %v, want none", got)
	}
}

// A chatter is a job that starts one series after another.
type chatter struct {
	keys  []string // in the order in which they start
	begun int
	now   int // number of series that start with the next sample
}

func (c *chatter) say(rnd *rand.Rand, rec *collector.Recording) {
	if rec.Operations == nil {
		rec.Operations = &collector.Operations{Aggregator: aggregate.New(aggregate.Options{}, rec.Start.Wall)}
	}
	if c.now == 0 && c.begun < len(c.keys) {
		c.begun += min(1+rnd.IntN(3), len(c.keys)-c.begun)
		c.now = rnd.IntN(20)
	}
	c.now = max(0, c.now-1)

	var sample []series.Stat
	for _, key := range c.keys[:c.begun] {
		s := series.Stat{Min: math.NaN(), Max: math.NaN()}
		if rate := strings.HasSuffix(key, "per_second"); rate || rnd.IntN(3) > 0 {
			s.Add(math.Round(rnd.Float64()*1000)/10, 1+rnd.Float64())
		}
		sample = append(sample, s)
	}
	rec.Operations.AddSample(rec, c.keys[:c.begun], sample)
}

// timelineKeys returns the keys of the timelines of all names in each kind, in random order.
func timelineKeys(rnd *rand.Rand) []string {
	var all []reporter.OperationTimeline
	for _, kind := range []reporter.OperationKind{reporter.OpKind, reporter.CounterKind, reporter.GaugeKind, reporter.TransferKind} {
		for _, name := range hostileNames()[:7] {
			all = append(all, reporter.OperationTimeline{Kind: kind, Series: name})
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	var keys []string
	for _, s := range all {
		for _, row := range reporter.TimelineKinds() {
			if row.Kind == s.Kind {
				keys = append(keys, reporter.OperationTimeline{Kind: s.Kind, Series: s.Series, Number: row.Number}.Key())
			}
		}
	}
	return keys
}

// Points pushed while series are still starting equal the report's points, and have the same names.
func TestNewLiveSeries_OperationPointsMatchTheReport(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(20)) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		h := newHost(rnd, time.Second, 1000)
		h.job = &chatter{keys: timelineKeys(rnd)}
		var live []window
		sent := int64(0)
		for range 200 + rnd.IntN(300) {
			h.tick()
			if rnd.IntN(5) > 0 {
				continue
			}
			for _, w := range newLiveSeries(h.rec, "0", sent).windows() {
				sent = w.end
				live = append(live, w)
			}
		}

		all := h.series().windows()
		if !reflect.DeepEqual(all[:len(live)], live) {
			t.Fatalf("seed %d: windows differ (-report +live):\n%s", seed, cmp.Diff(all[:len(live)], live, cmp.AllowUnexported(window{})))
		}
		wantKeys(t, keysOf(all[len(all)-2].points))
		if len(valuesUnder(all[len(all)-2].points, "system/0/op/", "system/0/gauge/", "system/0/transfer/")) == 0 {
			t.Fatalf("seed %d: the second-to-last window has no points of the job", seed)
		}
	}
}

// A duration's point is the mean over all operations in the window: samples are weighted by their number of operations.
func TestWindows_WeighTimesByOperations(t *testing.T) {
	nan := math.NaN()
	n := &reporter.Node{Envelope: reporter.Envelope{}}
	n.Samples.Keys = []string{collector.Timestamp.Key()}
	band := func(key string, values ...float64) {
		n.Envelope[key] = reporter.Band{Min: values, Mean: values, Max: values}
	}
	band(collector.Timestamp.Key(), 1001, 1002, 1003, 1004)
	n.Samples.Columns = [][]float64{{1001, 1002, 1003, 1004}}
	n.Sampling = &reporter.Sampling{Samples: 4, Start: reporter.Time{Time: time.Unix(1000, 0)}}
	n.Sampling.Start.Time = time.Unix(900, 0) // so that all samples are in one window
	band("op:get:time_ms", nan, 1, 100, nan)
	band("op:get:per_second", nan, 1000, 1, 0)
	band("gauge:rate", 1e-7, 1e-7, 1e-7, 4e-7)
	band("transfer:t:time_ms", nan, 1, 2)
	band("op:short:time_ms", 1, 2, 3, 4)
	band("op:short:per_second", 1)
	band("op::time_ms", 1, 1, 1, 1)
	band("op:get:unknown", 1, 1, 1, 1)

	var all []mlflow.Metric
	for _, w := range newNodeSeries("3", n).windows() {
		all = append(all, w.points...)
	}
	points := valuesUnder(all, "system/3/op/", "system/3/gauge/", "system/3/transfer/")
	collectortest.Same(t, "points of op/get", valuesUnder(all, "system/3/op/get/"), map[string]float64{
		"system/3/op/get/time_ms": 1.098901, "system/3/op/get/per_second": 333.666667,
	})
	if got := points["system/3/gauge/rate"]; got < 1e-7 || got > 4e-7 {
		t.Errorf("the small gauge is %v, want 1e-7 to 4e-7", got)
	}
	for key := range points {
		if strings.Contains(key, "unknown") || strings.Contains(key, "//") {
			t.Errorf("there is a point for %s, want only series with valid names", key)
		}
	}
}

// However many timelines a report has, no window is too large for a request.
func TestWindows_ManyTimelinesFitABatch(t *testing.T) {
	n := hostAfter(25).report().Nodes["0"]
	for i := range 2000 {
		n.Envelope["gauge:g"+strconv.Itoa(i)] = n.Envelope[collector.MemPercent.Key()]
	}
	wantFitting(t, newNodeSeries("0", n).windows())
}

// wantFitting checks that no batch of windows has too many points.
func wantFitting(t *testing.T, windows []window) {
	t.Helper()
	for _, b := range pack(nil, nil, windows) {
		if len(b.Metrics) > maxItems {
			t.Errorf("a batch has %d points, want at most %d", len(b.Metrics), maxItems)
		}
	}
}

// Every server accepts the keys of phases, and each key is used once.
func TestMetrics_KeysOfPhasesAreValidAndUnique(t *testing.T) {
	r := reportertest.AddMarks(reportertest.ThreeNodes())
	n := r.Nodes["1"]
	for _, name := range []string{"a/b", "a:b", "a_b", "..", "/", "a//b", "ünï 1", strings.Repeat("x", 200)} {
		n.Phases = append(n.Phases, reporter.Phase{Name: name, Seconds: 3, Count: 1})
	}

	list, dropped := metrics(r)
	if dropped != 0 {
		t.Errorf("%d values were dropped, want none", dropped)
	}
	list = slices.DeleteFunc(list, func(m mlflow.Metric) bool { return !strings.HasPrefix(m.Key, "phase/") || m.Step != 1 })
	wantKeys(t, keysOf(list))
	for _, m := range list {
		if m.Timestamp != n.Job.End.UnixMilli() {
			t.Errorf("%s has the timestamp %d, want %d, the node's end", m.Key, m.Timestamp, n.Job.End.UnixMilli())
		}
	}
	values := valuesUnder(list, "phase/")
	for key, want := range map[string]float64{
		"phase/load/seconds": 10, "phase/load/job_avg_cpu_cores": 0.25, "phase/load/job_peak_memory_mb": 100,
		"phase/train _b____31m/seconds": 40, "phase/save/seconds": 5, "phase/a/b/seconds": 3, "phase/a_b/seconds": 3,
		"phase/a_b_2/seconds": 3, "phase/__/seconds": 3, "phase/_/seconds": 3, "phase/a__b/seconds": 3,
	} {
		if got, ok := values[key]; !ok || got != want {
			t.Errorf("%s is %v, want %v; keys %q", key, got, want, slices.Sorted(maps.Keys(values)))
		}
	}
}
