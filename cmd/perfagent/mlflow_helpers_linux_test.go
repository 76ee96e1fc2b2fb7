package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// serverCases are tests that share a server.
type serverCases map[string]func(t *testing.T, s *mlflowtest.Server)

// onServer runs tests in parallel against one server.
func onServer(t *testing.T, o mlflowtest.Options, cases serverCases) {
	t.Helper()
	clitest.Binary(t)
	s := mlflowServers.Get(t, o)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// newInvocation returns a unique name.
func newInvocation() string { return strings.TrimSuffix(pusher.NewInvocation("0"), ".0") }

func study(t testing.TB) string { return t.Name() + "-" + newInvocation() }

// clientOf makes cmd a client of a server. The runs that it creates are in the given experiment.
func clientOf(cmd *exec.Cmd, s *mlflowtest.Server, experiment string) *exec.Cmd {
	inherited := os.Environ()
	for _, kv := range s.Env() {
		if !slices.Contains(inherited, kv) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "PERFAGENT_SUMMARY=never") // only messages about the push
	if experiment != "" {
		cmd.Env = append(cmd.Env, "MLFLOW_EXPERIMENT_NAME="+experiment)
	}
	return cmd
}

// tracked prepares perfagent as a client of a server.
func tracked(t testing.TB, s *mlflowtest.Server, experiment string, args ...string) *exec.Cmd {
	t.Helper()
	return clientOf(clitest.Perfagent(t, args...), s, experiment)
}

// wrapped prepares "perfagent run" of a job, as a client of a server. If experiment is "", only the job creates runs.
func wrapped(t testing.TB, s *mlflowtest.Server, experiment string, job ...string) *exec.Cmd {
	t.Helper()
	args := []string{"run", "--interval", "100ms"}
	if experiment == "" {
		args = append(args, "--mlflow", creatingNoRun(t, s).URL)
	}
	return tracked(t, s, experiment, append(append(args, "--"), job...)...)
}

// pushProgress matches the progress of a push that takes longer than a second.
var pushProgress = regexp.MustCompile(`(?m)^perfagent: \d+ of \d+ values sent \(.*\n`)

// pushNow runs "perfagent push", which must succeed and print nothing on stderr except its progress.
func pushNow(t testing.TB, s *mlflowtest.Server, experiment string, args ...string) clitest.Outcome {
	t.Helper()
	o := mustExit(t, 0, tracked(t, s, experiment, append([]string{"push"}, args...)...))
	if said := pushProgress.ReplaceAllString(o.Err, ""); said != "" {
		t.Errorf("perfagent push %q: stderr %q, want none", args, said)
	}
	return o
}

// clientFor returns a client of package mlflow, to prepare tests.
func clientFor(t testing.TB, cfg mlflow.Config) *mlflow.Client {
	t.Helper()
	c, err := mlflow.New(cfg)
	check.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// createdRun creates a run that begins now, and returns its ID.
func createdRun(t testing.TB, c *mlflow.Client, r mlflow.NewRun) (id string) {
	t.Helper()
	r.StartTime = time.Now()
	run, err := c.CreateRun(t.Context(), r)
	check.Must(t, err)
	return run.ID
}

// createdExperiment creates an experiment unless it exists, and returns its ID.
func createdExperiment(t testing.TB, c *mlflow.Client, name string) (id string) {
	t.Helper()
	e, err := c.EnsureExperiment(t.Context(), name)
	check.Must(t, err)
	return e.ID
}

// givenRun creates a run that no job uses.
func givenRun(t testing.TB, s *mlflowtest.Server, experiment string) string {
	t.Helper()
	c := clientFor(t, mlflow.Config{URI: s.URL, Username: s.User, Password: s.Password})
	return createdRun(t, c, mlflow.NewRun{ExperimentID: createdExperiment(t, c, experiment), Name: "given"})
}

// onlyRun reads the only run of an experiment.
func onlyRun(t testing.TB, s *mlflowtest.Server, experiment string) mlflowtest.RunData {
	t.Helper()
	return single(t, s.Runs(t, experiment))
}

// single returns the only run in a list.
func single(t testing.TB, runs []mlflowtest.RunData) mlflowtest.RunData {
	t.Helper()
	if len(runs) != 1 {
		t.Fatalf("%d runs, want one: %s", len(runs), runList(runs))
	}
	return runs[0]
}

// runNamed returns the run with the given name or ID.
func runNamed(t testing.TB, runs []mlflowtest.RunData, name string) mlflowtest.RunData {
	t.Helper()
	i := slices.IndexFunc(runs, func(r mlflowtest.RunData) bool { return r.Info.RunName == name || r.Info.RunID == name })
	if i < 0 {
		t.Fatalf("the server has no run %q, only %s", name, runList(runs))
	}
	return runs[i]
}

func runList(runs []mlflowtest.RunData) string {
	var out []string
	for _, r := range runs {
		out = append(out, fmt.Sprintf("%q (%s)", r.Info.RunName, r.Info.Status))
	}
	return strings.Join(out, ", ")
}

// theReport returns the path of the only report below a process's working directory.
func theReport(t testing.TB, o clitest.Outcome) string {
	t.Helper()
	_, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
	return path
}

// pushState returns the push state of a node in a report file.
func pushState(t testing.TB, path, node string) reporter.PushState {
	t.Helper()
	n := reportertest.ReadFile(t, path).Nodes[node]
	if n == nil || n.Push == nil {
		t.Fatalf("%s records no push of node %s", path, node)
	}
	return n.Push.MLflow
}

// wantDone checks that a report records a complete push to a run.
func wantDone(t testing.TB, path, runID string) {
	t.Helper()
	for node := range reportertest.ReadFile(t, path).Nodes {
		if s := pushState(t, path, node); s.State != reporter.PushDone || s.RunID != runID || s.Error != "" {
			t.Errorf("node %s of %s: push state %+v, want done in run %s", node, path, s, runID)
		}
	}
}

// artifact downloads a file of a run, as the server's web page does.
func artifact(t testing.TB, s *mlflowtest.Server, runID, path string) []byte {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.URL+"/get-artifact?"+url.Values{"run_uuid": {runID}, "path": {path}}.Encode(), nil)
	check.Must(t, err)
	if s.User != "" {
		req.SetBasicAuth(s.User, s.Password)
	}
	resp, err := http.DefaultClient.Do(req)
	check.Must(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET of artifact %s: %v, %s, want 200: %s", path, err, resp.Status, data)
	}
	return data
}

// wantArtifact checks that an artifact of a run has the current content of a report file.
func wantArtifact(t testing.TB, s *mlflowtest.Server, runID, name, file string) {
	t.Helper()
	got := artifact(t, s, runID, name)
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("artifact %s differs from %s (%v):\n%.600s\nwant\n%.600s", name, file, err, got, want)
	}
	if filepath.Ext(file) == ".json" {
		wantDone(t, clitest.Write(t, filepath.Join(t.TempDir(), "artifact.json"), string(got), 0o600), runID)
	}
}

// wantPushedRun checks that an experiment has only one run, with all points of the only report of a process, and with
// the report itself. It returns the run and the report.
func wantPushedRun(
	t testing.TB, s *mlflowtest.Server, experiment string, o clitest.Outcome,
) (mlflowtest.RunData, *reporter.Report) {
	t.Helper()
	run, path := onlyRun(t, s, experiment), theReport(t, o)
	wantHistories(t, run, path)
	wantArtifact(t, s, run.Info.RunID, "perfagent/"+filepath.Base(path), path)
	return run, reportertest.ReadFile(t, path)
}

// wantTags checks the tags of a run that describe a report.
func wantTags(t testing.TB, run mlflowtest.RunData, r *reporter.Report, command string) {
	t.Helper()
	want := map[string]string{"perfagent.run_id": r.Run.ID, "perfagent.command": command}
	maps.Copy(want, r.Run.Tags)
	if r.Run.ExitCode != nil {
		want["perfagent.exit_code"] = strconv.Itoa(*r.Run.ExitCode)
	}
	for node, n := range r.Nodes {
		want["perfagent.node."+node+".host"] = n.Host.Hostname
		want["perfagent.version"] = n.Agent.Version
	}
	for key, value := range want {
		if got, there := run.Tags[key]; got != value || !there {
			t.Errorf("tag %s is %q (present: %v), want %q", key, got, there, value)
		}
	}
}

// front is a proxy for a server. It reports the answered requests.
type front struct {
	URL      string
	answered chan string // method and path
	lose     atomic.Bool // lose the next response to a batch
}

// newFront returns a front for the server at target. A request that a hook handles does not reach the server.
func newFront(t testing.TB, target string, hooks ...mlflowtest.Hook) *front {
	t.Helper()
	to, err := url.Parse(target)
	check.Must(t, err)
	f := &front{answered: make(chan string, 10_000)}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			f.answered <- r.Request.Method + " " + r.Request.URL.Path
			if strings.HasSuffix(r.Request.URL.Path, "/log-batch") && f.lose.CompareAndSwap(true, false) {
				return errors.New("lost")
			}
			return nil
		}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.ContainsFunc(hooks, func(h mlflowtest.Hook) bool { return h(w, r) }) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// creatingNoRun returns a front through which no run is created. With it, perfagent waits for the job's run, however
// long the job takes to create it.
func creatingNoRun(t testing.TB, s *mlflowtest.Server) *front {
	t.Helper()
	return newFront(t, s.URL, mlflowtest.On("runs/create", mlflowtest.HTML502()))
}

// rest returns the answered requests since the last call.
func (f *front) rest() (since []string) {
	for range len(f.answered) {
		since = append(since, <-f.answered)
	}
	return since
}

// synthetic describes a report of generated samples.
type synthetic struct {
	run       string
	node      int
	after     time.Duration // start, since origin
	origin    time.Time     // zero = two hours ago
	seconds   int           // duration, with one sample per second
	maxLength int
	code      int
	jobMB     float64 // added to the job's memory in each sample
}

// writeSynthetic writes the report that y describes into a new directory, and returns its path.
func writeSynthetic(t testing.TB, y synthetic) string {
	t.Helper()
	if y.origin.IsZero() {
		y.origin = time.Now().Add(-2 * time.Hour)
	}
	start := y.origin.Add(y.after).Truncate(time.Second).Add(123456 * time.Microsecond)
	length := time.Duration(y.seconds) * time.Second
	end := start.Add(length + 3*time.Millisecond)
	rec := collector.NewRecording(host.Instant{Wall: start}, time.Second, cmp.Or(y.maxLength, 1000))
	rec.Host = host.Info{Hostname: fmt.Sprintf("host-%d", y.node), CPUs: 8, MemoryMB: 32000}
	rec.BootMB = []float64{1000, 2000, 5, 100, 5, 300}
	rec.Disks, rec.NICs = []string{"sda"}, []string{"lo", "eth0"}
	for i := range y.seconds {
		s := syntheticSample(i, y.node, start)
		s.Values[collector.JobMemory] += y.jobMB
		rec.Add(&s)
	}
	rec.End = host.Instant{Wall: start.Add(length), Mono: length, Boot: length}
	run := reporter.Run{ID: y.run, Command: []string{"./simulate", "--quick"}, Start: reporter.Time{Time: start}, End: reporter.Time{Time: end},
		WallSeconds: length.Seconds(), ExitCode: &y.code}
	r := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: run, Node: y.node, Recording: rec, Agent: reporter.Agent{Version: "test"},
		Job: &reporter.Job{PID: 1, Start: run.Start, End: run.End, ExitCode: new(y.code), UserSeconds: 1, MaxRSSMB: 10}}})
	return clitest.Write(t, filepath.Join(t.TempDir(), fmt.Sprintf("node-%d.json", y.node)), string(encoded(t, r)), 0o644)
}

// syntheticSample returns the i-th sample of a node. No two samples are equal.
func syntheticSample(i, node int, start time.Time) collector.Sample {
	var s collector.Sample
	at := start.Add(time.Duration(i+1) * time.Second)
	for c := range s.Values {
		s.Weights[c] = 1
		switch col := collector.Column(c); {
		case col == collector.Timestamp:
			s.Values[c] = float64(at.UnixMicro()) / 1e6
		case col.IsPercent():
			s.Values[c] = float64((i*7+c*13+node)%1000) / 10
		default:
			s.Values[c] = float64((i+1)*(c+1)+node) / 8
		}
	}
	return s
}

// rawReport is a report as other programs parse it.
type rawReport struct {
	Nodes map[string]struct {
		Sampling struct{ Start time.Time }
		Job      struct{ End time.Time }
		Metrics  map[string]float64
		Envelope map[string]struct{ Min, Mean, Max []*float64 }
	}
}

// documentedSeries has "NAME KEYS" for each series, with its keys in the report. With +max there is also NAME_max. A
// series of two keys is a total.
const documentedSeries = `
cpu_utilization_percentage cpu_pct_per_cpu_avg +max, cpu_utilization_percentage_least_busy cpu_pct_per_cpu_min
cpu_utilization_percentage_most_busy cpu_pct_per_cpu_max, system_memory_usage_megabytes mem_used_mb
system_memory_usage_percentage mem_percent +max, disk_usage_percentage disk_usage_percent
disk_usage_megabytes disk_used_mb, disk_available_megabytes disk_free_mb
network_receive_megabytes net_io_ext_recv_mb net_io_lo_recv_mb
network_transmit_megabytes net_io_ext_sent_mb net_io_lo_sent_mb
network_ext_receive_megabytes_per_second net_io_ext_recv_mb_per_second +max
network_ext_transmit_megabytes_per_second net_io_ext_sent_mb_per_second +max
network_lo_transmit_megabytes_per_second net_io_lo_sent_mb_per_second
disk_read_megabytes_per_second disk_io_read_mb_per_second +max
disk_write_megabytes_per_second disk_io_write_mb_per_second +max
job_cpu_cores job_cpu_cores +max, job_memory_megabytes job_memory_mb +max
job_memory_limit_percentage limit_memory_pct +max, job_throttled_percentage job_throttled_pct
job_processes job_processes, job_threads job_threads
job_read_megabytes_per_second job_io_read_mb_per_second, job_write_megabytes_per_second job_io_write_mb_per_second
job_pressure_cpu_percentage job_psi_cpu_some_pct, job_pressure_memory_percentage job_psi_memory_full_pct
job_pressure_io_percentage job_psi_io_full_pct, pressure_cpu_percentage psi_cpu_some_pct
pressure_memory_percentage psi_memory_full_pct, pressure_io_percentage psi_io_full_pct
cpu_iowait_percentage cpu_iowait_pct, cpu_steal_percentage cpu_steal_pct, load_average_1m load_1m
swap_in_megabytes_per_second swap_in_mb_per_second, swap_out_megabytes_per_second swap_out_mb_per_second
major_page_faults_per_second major_page_faults_per_second
job_read_calls_per_second job_read_calls_per_second, job_write_calls_per_second job_write_calls_per_second
infiniband_receive_megabytes_per_second net_ib_recv_mb_per_second +max
infiniband_transmit_megabytes_per_second net_ib_sent_mb_per_second +max
cpu_temperature_celsius cpu_temperature_celsius, node_power_usage_watts node_power_watts +max
nfs_read_megabytes_per_second nfs_read_mb_per_second +max, nfs_write_megabytes_per_second nfs_write_mb_per_second +max
lustre_read_megabytes_per_second lustre_read_mb_per_second +max
lustre_write_megabytes_per_second lustre_write_mb_per_second +max`

// systemSeries has the keys of each documented series.
var systemSeries = func() map[string][]string {
	all := make(map[string][]string)
	for _, row := range strings.FieldsFunc(documentedSeries, func(r rune) bool { return r == ',' || r == '\n' }) {
		words, also := strings.CutSuffix(row, " +max")
		names := strings.Fields(words)
		if all[names[0]] = names[1:]; also {
			all[names[0]+"_max"] = names[1:]
		}
	}
	return all
}()

// histories returns the points that a run has for the given reports according to the documentation, by metric.
func histories(t testing.TB, paths ...string) map[string][]mlflowtest.Point {
	t.Helper()
	all := make(map[string][]mlflowtest.Point)
	for _, path := range paths {
		var f rawReport
		check.Must(t, json.Unmarshal([]byte(clitest.Read(t, path)), &f))
		for node, n := range f.Nodes {
			step, _ := strconv.ParseInt(node, 10, 64) // 0 for a bad name would fail the comparison
			for key, value := range n.Metrics {
				all[key] = append(all[key], mlflowtest.Point{Timestamp: n.Job.End.UnixMilli(), Step: step, Value: value})
			}
			f.addSeries(all, node)
		}
	}
	return all
}

// addSeries cuts a node's series into windows of 10 s, or into two windows for a run of 1 s to 10 s. A kept sample
// covers the time since the previous one.
func (f rawReport) addSeries(to map[string][]mlflowtest.Point, node string) {
	n := f.Nodes[node]
	times := n.Envelope["timestamp"].Max
	start := n.Sampling.Start.UnixMilli()
	ends := []int64{start} // the start, then the end of each kept sample
	for _, at := range times {
		ends = append(ends, int64(math.Round(*at*1000)))
	}
	length := ends[len(ends)-1] - start
	step := func(i int) int64 {
		switch begin, end := ends[i]-start, ends[i+1]-start; {
		case length < 1000 || length >= 10_000:
			return end / 10_000
		case begin+end <= length:
			return 0
		}
		return 1
	}
	for i := 0; i < len(times); {
		j := i + 1
		for j < len(times) && step(j) == step(i) {
			j++
		}
		for name := range systemSeries {
			if v := f.window(node, name, ends, i, j); !math.IsNaN(v) {
				key := "system/" + node + "/" + name
				to[key] = append(to[key], mlflowtest.Point{Timestamp: ends[j], Step: step(i), Value: v})
			}
		}
		i = j
	}
}

// window returns the value of a series over the kept samples i…j−1, or NaN if it was not measured.
func (f rawReport) window(node, name string, ends []int64, i, j int) float64 {
	keys, sum := systemSeries[name], 0.0
	for _, key := range keys {
		band := f.Nodes[node].Envelope[key]
		if band.Mean == nil { // never measured
			return math.NaN()
		}
		weighted, time, most, last := 0.0, 0.0, math.Inf(-1), math.NaN()
		for k := i; k < j; k++ {
			if band.Mean[k] == nil {
				continue
			}
			w := math.Max(1, float64(ends[k+1]-ends[k]))
			weighted, time = weighted+w**band.Mean[k], time+w
			most, last = math.Max(most, *band.Max[k]), *band.Max[k]
		}
		switch {
		case time == 0:
			return math.NaN()
		case len(keys) > 1:
			sum += last
		case strings.HasSuffix(name, "_max"):
			sum += most
		default:
			sum += weighted / time
		}
	}
	if strings.Contains(name, "megabytes") {
		sum *= 1.048576 // the report has MiB
	}
	return sum
}

// wantHistories checks that a run has all points of the given reports once, and no other system metrics.
func wantHistories(t testing.TB, run mlflowtest.RunData, reports ...string) {
	t.Helper()
	want := histories(t, reports...)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		got, want := byTime(run.Metrics[key]), slices.Compact(byTime(want[key])) // recordings may share points
		if !slices.EqualFunc(got, want, func(a, b mlflowtest.Point) bool {
			return a.Timestamp == b.Timestamp && a.Step == b.Step && math.Abs(a.Value-b.Value) <= 2e-6+1e-12*math.Abs(b.Value)
		}) {
			t.Errorf("points of %s are\n%v, want\n%v", key, got, want)
		}
	}
	for key := range run.Metrics {
		if _, known := want[key]; !known && strings.HasPrefix(key, "system/") {
			t.Errorf("the run has the series %s, which is not in the report", key)
		}
	}
}

func byTime(points []mlflowtest.Point) []mlflowtest.Point {
	return slices.SortedFunc(slices.Values(points), func(a, b mlflowtest.Point) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Value, b.Value))
	})
}

// steps returns the steps of a node's memory usage, sorted by time.
func steps(run mlflowtest.RunData, node int) (out []int64) {
	for _, p := range byTime(run.Metrics[fmt.Sprintf("system/%d/system_memory_usage_percentage", node)]) {
		out = append(out, p.Step)
	}
	return out
}
