package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/agent/exporter"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// burner is a helper that waits for a line, uses 2 s of CPU time, prints the exact amount, and waits for the end of its
// stdin.
func burner() {
	clitest.LimitLifetime()
	in := bufio.NewReader(os.Stdin)
	clitest.Println(os.Stdout, "ready", os.Getpid())
	_, _ = in.ReadString('\n')
	burnt := 0.0
	for burnt < 2 {
		for range 1_000_000 {
		}
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		burnt = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	clitest.Println(os.Stdout, "burnt", burnt)
	_, _ = io.ReadAll(in)
}

// listened is a perfagent with a live page on a random port, which runs until finish is called.
type listened struct {
	*clitest.Process
	url  string        // with a final slash
	said <-chan string // stderr after the line with the URL
	hold io.Closer     // stdin of the job

	inside *insideProcess // nil if perfagent is a separate process
}

// holdOpen is a job that prints ready and its process ID, and exits with 7 when its stdin ends.
var holdOpen = []string{"--", "sh", "-c", "echo ready $$; read x; exit 7"}

// listenRun starts perfagent run with a live page on a random port. It waits for the server and, if the job is
// holdOpen, for the job.
func listenRun(t testing.TB, args ...string) *listened {
	t.Helper()
	l := listenStart(t, clitest.Perfagent(t, append([]string{"run", "--listen", "127.0.0.1:0"}, args...)...))
	if strings.HasSuffix(strings.Join(args, " "), strings.Join(holdOpen, " ")) {
		l.PID("ready")
	}
	return l
}

// listenStart starts a prepared perfagent that listens on a random port.
func listenStart(t testing.TB, cmd *exec.Cmd) *listened {
	t.Helper()
	in, hold := clitest.Pipe(t)
	cmd.Stdin = in
	r, w := clitest.Pipe(t)
	cmd.Stderr = w
	l := &listened{Process: clitest.StartProcess(t, cmd), hold: hold}
	w.Close()
	in.Close()
	l.said = clitest.Scan(r)
	l.waitForURL()

	return l
}

// listenInside starts "perfagent run --listen" in the test's process and waits for its server.
func listenInside(t testing.TB, address string, args ...string) *listened {
	t.Helper()
	dir := t.TempDir()
	args = append([]string{"run", "--listen", address, "--out", filepath.Join(dir, "perfagent-out")}, args...)
	p := startInside(t, args...)
	l := &listened{said: p.said, hold: p.stdin, inside: p}
	l.Process = &clitest.Process{T: t, Cmd: &exec.Cmd{Args: args, Dir: dir}, Lines: p.lines}
	l.waitForURL()

	return l
}

// waitForURL reads the URL from stderr.
func (l *listened) waitForURL() {
	l.T.Helper()
	select {
	case line := <-l.said:
		m := regexp.MustCompile(`^perfagent: listening on (http://\S+:[1-9]\d*/)$`).FindStringSubmatch(line)
		if m == nil {
			l.T.Fatalf("first line on stderr = %q, want the URL of the live page", line)
		}
		l.url = m[1]
	case <-time.After(clitest.Longest):
		l.T.Fatalf("no line on stderr within %v", clitest.Longest)
	}
}

// finish ends the job, and returns the outcome with the rest of stderr.
func (l *listened) finish() clitest.Outcome {
	l.T.Helper()
	l.hold.Close()
	var o clitest.Outcome
	if l.inside == nil {
		o, _ = l.End()
	} else {
		var rest []string
		for line := range l.Lines {
			rest = append(rest, line)
		}
		o = clitest.Outcome{Out: strings.Join(rest, "\n"), Code: <-l.inside.ended, Dir: l.Cmd.Dir}
	}
	for line := range l.said {
		o.Err += line + "\n"
	}
	return o
}

// freePort returns an unused port.
func freePort(t testing.TB) string {
	t.Helper()
	return strconv.Itoa(testenv.FreePort(t))
}

// listenClient returns a client with a timeout that keeps no connections.
func listenClient() *http.Client {
	return &http.Client{Timeout: clitest.Longest, Transport: &http.Transport{DisableKeepAlives: true}}
}

// get sends a GET request.
func (l *listened) get(path string) (code int, header http.Header, body string) {
	l.T.Helper()
	answer, err := listenClient().Get(l.url + strings.TrimPrefix(path, "/"))
	check.Must(l.T, err)
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	check.Must(l.T, err)
	return answer.StatusCode, answer.Header, string(data)
}

// series reads a series of /metrics, "name" or "name{mode=user}". ok reports whether it exists.
func (l *listened) series(name string) (v float64, ok bool) {
	l.T.Helper()
	_, _, text := l.get("/metrics")
	return seriesIn(l.T, text, name)
}

// seriesIn is like series, for a response of /metrics.
func seriesIn(t testing.TB, text, name string) (v float64, ok bool) {
	t.Helper()
	name, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	key, value, _ := strings.Cut(label, "=")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"{") && (key == "" || strings.Contains(line, key+`="`+value+`"`)) {
			v, err := strconv.ParseFloat(lastWord(line), 64)
			check.Must(t, err)
			return v, true
		}
	}
	return 0, false
}

// untilSampled waits for n samples.
func (l *listened) untilSampled(n float64) {
	l.T.Helper()
	clitest.WaitUntil(l.T, fmt.Sprint(n, " samples are taken"), func() bool { v, _ := l.series("perfagent_samples_total"); return v >= n })
}

// port returns the server's port.
func (l *listened) port() string {
	u, err := url.Parse(l.url)
	check.Must(l.T, err)
	return u.Port()
}

// untilRefused waits until the port is closed.
func (l *listened) untilRefused() {
	l.T.Helper()
	clitest.WaitUntil(l.T, "the port is closed", func() bool {
		c, err := net.Dial("tcp", l.address())
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

// address returns HOST:PORT of the server.
func (l *listened) address() string { return "127.0.0.1:" + l.port() }

func TestListen_ServesRunInProgress(t *testing.T) {
	t.Parallel()
	l := listenRun(t, append([]string{"--interval", "50ms", "--run-id", "live-1", "--node", "4", "--tag", "a=b"}, holdOpen...)...)
	l.untilSampled(3)
	if code, _, body := l.get("/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("GET /healthz: status %d, %q; want 200, \"ok\\n\"", code, body)
	}
	code, header, page := l.get("/")
	if code != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(strings.ToLower(page), "<!doctype html>") {
		t.Errorf("GET /: status %d, header %v, page %.80q; want 200, UTF-8 HTML", code, header, page)
	}
	_, _, text := l.get("/report.json")
	reportertest.Validate(t, []byte(text))
	first := listenReport(t, text)
	if r := first.Run; r.ID != "live-1" || r.Incomplete != "the job is still running" || r.Command[0] != "sh" || r.Tags["a"] != "b" || r.ExitCode != nil || r.WallSeconds <= 0 {
		t.Errorf("run %+v, want live-1 of sh with the tag a=b, still running", r)
	}
	n := first.Nodes["4"]
	if n == nil || n.Job != nil || n.Sampling.Samples < 3 || n.Metrics["max_t_mem_percent"] <= 0 || n.Agent.CPUSeconds <= 0 {
		t.Fatalf("node %+v, want at least 3 samples, memory, and CPU time of the agent, but no job", n)
	}
	clitest.WaitUntil(t, "the report grows", func() bool {
		_, _, text := l.get("/report.json")
		return listenReport(t, text).Nodes["4"].Sampling.Samples > n.Sampling.Samples
	})
	if code, _, _ := l.get("/..%2f..%2fetc/passwd"); code != 404 {
		t.Errorf("GET of a file: status %d, want 404", code)
	}
	o := l.finish()
	o.Want(t, 7)
	if !strings.HasPrefix(o.Err, "perfagent: Failed (exit 7) after ") || strings.Count(o.Err, "\n") != 1 || o.Out != "" {
		t.Errorf("stderr %q, stdout %q; want only the line for exit code 7", o.Err, o.Out)
	}
	if c, err := net.Dial("tcp", l.address()); err == nil {
		c.Close()
		t.Error("a connection to the port succeeds after perfagent has ended, want it refused")
	}
	if n := o.Report(t).Nodes["4"]; slices.ContainsFunc(n.Missing, reportertest.WentWrong) {
		t.Errorf("report lists failures in missing: %v, want none", n.Missing)
	}
}

func listenReport(t testing.TB, text string) *reporter.Report {
	t.Helper()
	r := new(reporter.Report)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatalf("/report.json is not a report: %v: %.200q", err, text)
	}
	return r
}

// The Prometheus metrics equal the metrics of the report, in other units.
func TestListen_MetricsEqualTheReport(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its samples")
	t.Parallel()
	l := listenInside(t, "0", append([]string{"--interval", "1h"}, holdOpen...)...)
	clitest.WaitUntil(t, "the run has begun", func() bool { _, there := l.series("perfagent_start_time_seconds"); return there })
	// A response that waited for a sample would take an hour.
	if code, _, page := l.get("/"); code != 200 || !strings.Contains(page, "no sample has been taken yet; the first one is taken 1h0m0s after the start") || !strings.Contains(page, "read x; exit 7") {
		t.Errorf("page before the first sample: status %d, want 200, the time of that sample and the command: %.3000q",
			code, page)
	}
	l.finish().Want(t, 7)

	l = listenInside(t, "0", append([]string{"--interval", "600ms", "--run-id", "same", "--node", "2"}, holdOpen...)...)
	l.untilSampled(2)
	var n *reporter.Node
	text := ""
	clitest.WaitUntil(t, "the report and the metrics are from the same sample", func() bool {
		_, _, report := l.get("/report.json")
		_, _, text = l.get("/metrics")
		n = listenReport(t, report).Nodes["2"]
		return strings.Contains(text, fmt.Sprintf("perfagent_samples_total{run_id=\"same\",node=\"2\"} %d\n", n.Sampling.Samples))
	})
	last := n.Samples.Len() - 1
	for name, key := range map[string]string{"memory_used_ratio": "mem_percent", "memory_used_bytes": "mem_used_mb", "filesystem_used_ratio": "disk_usage_percent",
		"disk_read_bytes_total": "disk_io_read_mb", "disk_written_bytes_total": "disk_io_write_mb", "network_receive_bytes_total": "net_io_ext_recv_mb",
		"network_transmit_bytes_total": "net_io_ext_sent_mb", "loopback_receive_bytes_total": "net_io_lo_recv_mb",
		"loopback_transmit_bytes_total": "net_io_lo_sent_mb", "last_sample_timestamp_seconds": "timestamp", "cpu_busy_ratio": "cpu_pct_per_cpu_avg"} {
		want, tolerance := n.Samples.Column(key)[last], 1e-6
		switch {
		case strings.HasSuffix(name, "_used_ratio"): // the sample is rounded to 0.1 %
			want, tolerance = want/100, 0.00051
		case strings.HasSuffix(name, "_ratio"):
			want /= 100
		case strings.Contains(name, "_bytes"):
			want *= 1 << 20
		}
		if got, there := seriesIn(t, text, "perfagent_"+name); !there || got < want-tolerance || got > want+tolerance {
			t.Errorf("%s = %v (present: %v), want %v, as %s in the sample", name, got, there, want, key)
		}
	}
	used, _ := l.series("perfagent_memory_used_bytes")
	if total, ok := l.series("perfagent_memory_total_bytes"); !ok || total <= used {
		t.Errorf("perfagent_memory_total_bytes = %v (present: %v), want more than the %v in use", total, ok, used)
	}
	l.finish().Want(t, 7)
}

// listenTool returns the path of a Prometheus program, which make e2e has unpacked or which is in PATH.
func listenTool(t testing.TB, name string) string {
	t.Helper()
	if path, err := filepath.Abs("../../.tools/prometheus/usr/bin/" + name); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return testenv.NeedsTool(t, name, "make e2e, as root on Debian; or install Prometheus")
}

// promtoolCheck runs promtool on text. Problems appear on stdout and in the exit code.
func promtoolCheck(t testing.TB, text string) (string, error) {
	t.Helper()
	cmd := clitest.Command(t, listenTool(t, "promtool"), "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// prometheus is a real Prometheus server that scrapes every second.
type prometheus struct {
	t   testing.TB
	url string
}

func listenPrometheus(t testing.TB, target string) *prometheus {
	t.Helper()
	program, dir := listenTool(t, "prometheus"), t.TempDir()
	clitest.Write(t, filepath.Join(dir, "p.yml"), fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"+
		"- job_name: perfagent\n  static_configs: [{targets: [%q]}]\n", target), 0o644)
	address := "127.0.0.1:" + freePort(t)
	cmd := clitest.Command(t, program, "--config.file="+filepath.Join(dir, "p.yml"), "--web.listen-address="+address, "--storage.tsdb.path="+filepath.Join(dir, "data"))
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	log, err := os.Create(filepath.Join(dir, "log"))
	check.Must(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	check.Must(t, cmd.Start())
	p := &prometheus{t, "http://" + address}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		clitest.Wait(t, cmd)
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("prometheus:\n%s", text)
		}
	})
	clitest.WaitUntil(t, "Prometheus is ready", func() bool {
		answer, err := listenClient().Get(p.url + "/-/ready")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == 200
	})
	return p
}

// query returns the value of the only series that q selects, and whether there is one.
func (p *prometheus) query(q string) (float64, bool) {
	p.t.Helper()
	answer, err := listenClient().Get(p.url + "/api/v1/query?query=" + url.QueryEscape(q))
	check.Must(p.t, err)
	defer answer.Body.Close()
	var a struct {
		Status, Error string
		Data          struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(answer.Body).Decode(&a); err != nil || a.Status != "success" || len(a.Data.Result) > 1 {
		p.t.Fatalf("query %s: error %v, answer %+v; want success with at most one result", q, err, a)
	}
	if len(a.Data.Result) == 0 {
		return 0, false
	}
	v, err := strconv.ParseFloat(a.Data.Result[0].Value[1].(string), 64)
	check.Must(p.t, err)
	return v, true
}

// listenSpent returns the sum of the given columns of /proc/stat for all CPUs, in seconds.
func listenSpent(t testing.TB, columns ...int) (sum float64) {
	t.Helper()
	first, _, _ := strings.Cut(clitest.Read(t, "/proc/stat"), "\n")
	for _, c := range columns {
		n, err := strconv.ParseFloat(strings.Fields(first)[1+c], 64)
		check.Must(t, err)
		sum += n / 100
	}
	return sum
}

// listenEverywhere reports whether a metric exists on every host without further flags. Metrics of control groups,
// limits, pressure, GPUs, other devices and stores do not.
func listenEverywhere(name string) bool {
	for _, rare := range []string{"nfs", "lustre", "node_energy", "node_power", "cpu_temperature", "cpu_throttle"} {
		if strings.HasPrefix(name, "perfagent_"+rare+"_") {
			return false
		}
	}
	rest, ok := strings.CutPrefix(name, "perfagent_job_")
	somewhere := func(part string) bool { return strings.Contains(name, part) }
	return !ok && !slices.ContainsFunc([]string{"_gpu_", "_infiniband_", "_pressure_", "_oom_", "_operation_", "_transfer_", "_intake_", "_store_"}, somewhere) ||
		ok && slices.Contains([]string{"info", "cpu_seconds_total", "memory_bytes", "processes", "threads", "cpu_limit_cpus"}, rest)
}

func TestListen_ScrapeIsCheap(t *testing.T) {
	t.Parallel()
	l := listenRun(t, append([]string{"--interval", "1s"}, holdOpen...)...)
	l.untilSampled(1)
	client := &http.Client{Timeout: clitest.Longest}
	scrape := func(n int) {
		for range n {
			answer, err := client.Get(l.url + "metrics")
			check.Must(t, err)
			_, err = io.Copy(io.Discard, answer.Body)
			check.Must(t, errors.Join(err, answer.Body.Close()))
		}
	}
	scrape(20) // warm up
	const n = 100
	each := math.Inf(1) // in the least disturbed batch
	for range 5 {
		before, _ := l.series("perfagent_agent_cpu_seconds_total")
		scrape(n)
		after, _ := l.series("perfagent_agent_cpu_seconds_total")
		each = min(each, (after-before)/n*1000)
	}
	t.Logf("%.3f ms of CPU time per scrape", each)
	if each <= 0 || each > 1 {
		t.Errorf("a scrape costs %.3f ms of CPU time, want more than 0 and at most 1", each)
	}
	l.finish().Want(t, 7)
}

// If the port is in use, perfagent prints one line, adds an entry to the report, and runs the job.
func TestListen_PortInUseGivesOneLine(t *testing.T) {
	_, port, _ := net.SplitHostPort(silentServer(t))
	for _, c := range []struct{ address, word string }{
		{port, "address already in use"},
		{"127.0.0.1:" + port, "address already in use"},
		{"192.0.2.1:9100", "cannot assign requested address"},
	} {
		o := wantInside(t, 3, "run", "--summary", "never", "--listen", c.address, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
		line, rest, _ := strings.Cut(o.Err, "\n")
		if o.Out != "out\n" || rest != "err\n" || !strings.HasPrefix(line, "perfagent: cannot listen on ") || !strings.Contains(line, c.word) || !strings.Contains(line, ":"+port) && !strings.Contains(line, ":9100") ||
			strings.Contains(line, "--listen 0") != (c.word == "address already in use") {
			t.Errorf("--listen %s: stdout %q, stderr %q; want a line with %q", c.address, o.Out, o.Err, c.word)
		}
		wantListenMissing(t, o.Report(t), c.word)
	}
	o := insideWith(t, []string{"PERFAGENT_LISTEN=:" + port}, "run", "--summary", "never", "--", "sh", "-c", "exit 3")
	o.Want(t, 3)
	o.WantLine(t, port)
}

func wantListenMissing(t *testing.T, r *reporter.Report, word string) {
	t.Helper()
	n := r.Nodes["0"]
	if len(n.Missing) == 0 || n.Missing[0].What != "listen" || !strings.Contains(n.Missing[0].Why, word) {
		t.Errorf("missing: %v, want an entry for listen first, with the reason %q", n.Missing, word)
	}
}

// If an unprivileged user requests a privileged port, perfagent prints one line.
func TestListen_PrivilegedPortGivesOneLine(t *testing.T) {
	t.Parallel()
	if text, _ := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); strings.TrimSpace(string(text)) != "1024" {
		t.Skip("all users may listen on port 81 here: set net.ipv4.ip_unprivileged_port_start to 1024")
	}
	o := mustExit(t, 3, clitest.AsNobody(t, clitest.Perfagent(t, "run", "--summary", "never", "--listen", "81", "--", "sh", "-c", "exit 3")))
	o.WantLine(t, "permission denied", "127.0.0.1:81", "--listen 0")
	wantListenMissing(t, o.Report(t), "permission denied")
}

// A host name is resolved while the job runs, so a slow name server or an unknown name delays neither the start nor the
// end.
func TestListen_UnknownHostNameDelaysNothing(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, append([]string{"run", "--summary", "never", "--listen", "nowhere.invalid:9100"}, holdOpen...)...)
	o := mustExit(t, 7, cmd)          // the job's stdin is empty
	clitest.WantLines(t, o.Err, 0, 1) // no line if the name server did not respond in time
	if o.Err != "" {
		o.WantLine(t, "nowhere.invalid")
		if strings.Contains(o.Err, "--listen 0") {
			t.Errorf("stderr suggests --listen 0, which does not help with an unknown name: %s", o.Err)
		}
		wantListenMissing(t, o.Report(t), "nowhere.invalid")
	}
}

// --listen accepts the name of this host.
func TestListen_AcceptsNameOfThisHost(t *testing.T) {
	t.Parallel()
	name, err := os.Hostname()
	if addresses, _ := net.LookupHost(name); err != nil || len(addresses) == 0 || !regexp.MustCompile(`^[a-zA-Z0-9._-]*[a-zA-Z][a-zA-Z0-9._-]*$`).MatchString(name) {
		t.Skip("the name of this host cannot be resolved: add it to /etc/hosts")
	}
	l := listenInside(t, name+":0", holdOpen...)
	l.PID("ready")
	if !strings.HasPrefix(l.url, "http://"+name+":") {
		t.Errorf("perfagent listens on %s, want http://%s:", l.url, name)
	}
	if code, _, body := l.get("/healthz"); code != 200 {
		t.Errorf("GET /healthz: status %d, %q; want 200", code, body)
	}
	l.finish().Want(t, 7)
}

// The address is printed on a terminal, if the user requested any free port, and in the log. Otherwise, a redirected
// stderr contains only the job's output.
func TestListen_PrintsAddressOnlyIfRequested(t *testing.T) {
	port := freePort(t)
	if o := inside(t, "run", "--listen", port, "--", "true"); o.Err != "" || o.Code != 0 {
		t.Errorf("fixed port: exit code %d, want 0; stderr %q, want none", o.Code, o.Err)
	}
	if o := inside(t, "run", "--listen", port, "--log-level", "info", "--", "true"); o.Err != "perfagent: info: listening on http://127.0.0.1:"+port+"/\n" {
		t.Errorf("--log-level info: stderr %q, want only the address with port %s", o.Err, port)
	}
	for _, c := range []struct{ flags, env, want string }{
		{"--listen :0", "", `^perfagent: listening on http://127\.0\.0\.1:\d+/\n$`},
		{"--listen localhost.:0", "", `^perfagent: listening on http://127\.0\.0\.1:\d+/\n$`},
		{"--listen localhost:0 --log-level info", "", `^perfagent: info: listening on http://127\.0\.0\.1:\d+/\n$`},
		{"--listen 0.0.0.0:0", "PERFAGENT_LISTEN_TOKEN=x", `^perfagent: listening on http://[^/]+:\d+/\n$`},
		{"", "PERFAGENT_LISTEN=0", `^perfagent: listening on http://127\.0\.0\.1:\d+/\n$`},
		{"", "PERFAGENT_LISTEN=", `^$`},
		{"", "PERFAGENT_LISTEN=off", `^$`},
		{"--listen off", "PERFAGENT_LISTEN=0", `^$`},
		{"--listen off", "PERFAGENT_LISTEN=bad", `^$`},
		{"--listen 0", "PERFAGENT_LISTEN=bad", `^perfagent: listening on .*\n$`},
	} {
		var o clitest.Outcome
		for _, seconds := range []string{"0", "1", "20"} { // a host name is resolved while the job runs
			o = insideWith(t, []string{c.env}, append(append([]string{"run"}, strings.Fields(c.flags)...), "--", "sleep", seconds)...)
			if regexp.MustCompile(c.want).MatchString(o.Err) {
				break
			}
		}
		if o.Want(t, 0); !regexp.MustCompile(c.want).MatchString(o.Err) {
			t.Errorf("flags %q, environment %q: stderr %q, want %s", c.flags, c.env, o.Err, c.want)
		}
	}
}

// In the foreground of a terminal, the address is printed.
func TestListen_PrintsAddressOnTerminalInForeground(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	screen, code := clitest.OnTerminal(t, clitest.Perfagent(t, "run", "--listen", port, "--summary", "never", "--", "echo", "done")).End()
	if want := "perfagent: listening on http://127.0.0.1:" + port + "/\r\ndone\r\n"; code != 0 || screen != want {
		t.Errorf("on a terminal: exit code %d, screen %q; want 0 and %q", code, screen, want)
	}
	// In the background, nothing is printed, because with "stty tostop" the output would stop the job.
	m := clitest.OnTerminal(t, clitest.Script(t, testenv.NeedsTool(t, "bash", "apt-get install bash"), `stty tostop; set -m; "$P" run --listen `+port+` --summary never -- true </dev/null & wait $!; echo "code $?"`))
	m.Expect("code 0")
	screen, _ = m.End()
	if strings.Contains(screen, "listening") {
		t.Errorf("in the background, the screen shows the address, want none: %q", screen)
	}
}

func TestListen_ChecksHostHeader(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]int{"127.0.0.1:0": 403, "0.0.0.0:0": 200} {
		l := listenInside(t, address, append([]string{"--interval", "20ms"}, holdOpen...)...)
		request, err := http.NewRequest("GET", "http://"+l.address()+"/healthz", nil)
		check.Must(t, err)
		request.Host = "evil.example:" + l.port()
		answer, err := listenClient().Do(request)
		check.Must(t, err)
		answer.Body.Close()
		if got := answer.StatusCode; got != want {
			t.Errorf("--listen %s: status %d for a foreign Host header, want %d", address, got, want)
		}
		l.finish().Want(t, 7)
	}
}

// The job never inherits a descriptor of the server, even while a client is connected, and processes that it leaves
// behind do not keep the port in use.
func TestListen_JobDoesNotInheritSocket(t *testing.T) {
	t.Parallel()
	l := listenRun(t, "--interval", "20ms", "--", "sh", "-c", `echo ready $$; read x; sleep 600 </dev/null >/dev/null 2>&1 & echo left $!
ls -l /proc/self/fd /proc/$$/fd /proc/$!/fd; echo end; read x; exit 7`)
	l.PID("ready")
	listenConn(t, l)
	l.untilSampled(1)
	fmt.Fprintln(l.hold.(*os.File))
	left := l.PID("left")
	defer func() { _ = unix.Kill(left, unix.SIGKILL) }()
	for line := l.Next(); line != "end"; line = l.Next() {
		if strings.Contains(line, "socket:") || strings.Contains(line, "anon_inode") {
			t.Errorf("the job inherited %s, want no descriptor of the server", line)
		}
	}
	l.finish().Want(t, 7)
	l.untilRefused() // while a process of the job still runs; to bind the port would depend on timing
}

// listenBesieged returns the effects of misbehaving clients on a run ("" = none), compared with an undisturbed run.
func listenBesieged(t *testing.T) (harm string) {
	t.Helper()
	cmd := clitest.Perfagent(t, append([]string{"run", "--interval", "250ms"}, holdOpen...)...)
	in, hold := clitest.Pipe(t)
	cmd.Stdin = in
	control := clitest.StartProcess(t, cmd)
	control.PID("ready")
	l := listenRun(t, append([]string{"--summary", "never", "--interval", "250ms"}, holdOpen...)...)
	l.untilSampled(1)
	stop := make(chan struct{})
	var all sync.WaitGroup
	listenSlowSenders(t, l, &all, stop)
	for range 50 { // clients that never read the responses
		c := listenConn(t, l)
		_, _ = io.WriteString(c, strings.Repeat("GET /report.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 50))
	}
	for range 5 { // clients that send a header of 1 MiB
		c := listenConn(t, l)
		all.Go(func() { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)) })
	}
	for i := range 50 {
		all.Go(func() { // a client that requests continuously
			client := listenClient()
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
				answer, err := client.Get(l.url + []string{"", "metrics", "report.json", "nothing"}[i%4])
				if err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}
		})
	}
	resets := 0
	for range 12 {
		begin, code := time.Now(), 0
		for code == 0 && time.Since(begin) < 20*time.Second {
			answer, err := listenClient().Get(l.url + "healthz")
			if err != nil { // the server closed the oldest idle connection, because there were too many
				resets++
				continue
			}
			answer.Body.Close()
			code = answer.StatusCode
		}
		if code != 200 || time.Since(begin) > 20*time.Second || resets > 6 {
			harm = fmt.Sprintf("good client: status %d after %v, %d requests without a response; want 200 within 20s and at most 6",
				code, time.Since(begin), resets)
		}
		time.Sleep(250 * time.Millisecond)
	}
	begin := time.Now()
	o := l.finish()
	took := time.Since(begin)
	close(stop)
	begin = time.Now()
	hold.Close()
	c, _ := control.End()
	alone := time.Since(begin)
	all.Wait()
	o.Want(t, 7)
	if o.Err != "" {
		t.Errorf("stderr %q, want none", o.Err)
	}
	s, quiet := o.Report(t).Nodes["0"].Sampling, c.Report(t).Nodes["0"].Sampling
	t.Logf("%d samples, %d missed ticks, longest gap %.3f s, end after %v", s.Samples, s.MissedTicks, s.LongestGapSeconds, took)
	// On a shared machine, one missed tick is noise. Disturbances that the run without clients shows at the same time
	// have other causes.
	if s.Samples < 10 || s.MissedTicks > 1+2*quiet.MissedTicks || s.LongestGapSeconds > 0.75+2*quiet.LongestGapSeconds || took > 2*time.Second+3*alone {
		harm += fmt.Sprintf("the end took %v, sampling %+v; without clients %v, %+v", took, s, alone, quiet)
	}
	return harm
}

// silentServer returns the address of a server that accepts connections and never responds.
func silentServer(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// listenConn opens a connection to the server, which is closed when the test ends.
func listenConn(t testing.TB, l *listened) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.address())
	check.Must(t, err)
	t.Cleanup(func() { c.Close() })
	_ = c.SetWriteDeadline(time.Now().Add(clitest.Longest))
	return c
}

// listenSlowSenders opens 100 connections that each send a byte per second until stop is closed.
func listenSlowSenders(t testing.TB, l *listened, all *sync.WaitGroup, stop <-chan struct{}) {
	t.Helper()
	var slow []net.Conn
	for range 100 {
		slow = append(slow, listenConn(t, l))
	}
	all.Go(func() {
		for {
			for _, c := range slow {
				_, _ = io.WriteString(c, "G")
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
		}
	})
}

// Clients that are idle, or in the middle of a response, do not delay the end of perfagent.
func TestListen_ClientsDoNotDelayExit(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs: with one, the test would measure its own work")
	}
	took := make(map[bool][]float64) // seconds, with and without clients
	for range 5 {
		for _, clients := range []bool{false, true} {
			l := listenRun(t, append([]string{"--interval", "20ms"}, holdOpen...)...)
			l.untilSampled(2)
			if clients {
				for range 10 {
					c := listenConn(t, l)
					_, _ = io.WriteString(c, strings.Repeat("GET /report.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 5000))
					if _, err := c.Read(make([]byte, 1)); err != nil { // in the middle of its responses
						t.Fatal(err)
					}
					listenConn(t, l)
				}
			}
			begin := time.Now()
			l.finish().Want(t, 7)
			took[clients] = append(took[clients], time.Since(begin).Seconds())
		}
	}
	with, without := clitest.Median(took[true]), clitest.Median(took[false])
	t.Logf("the end with clients: %.3f s, without: %.3f s", with, without)
	// A delay caused by clients would occur each time.
	if slices.Min(took[true]) > 5*without+0.25 {
		t.Errorf("perfagent ends after %.3f s with clients, want at most 0.25 s more than five times the %.3f s without",
			with, without)
	}
}

// The server ends with the job, even during a long push to MLflow.
func TestListen_ServerEndsWithTheJob(t *testing.T) {
	t.Parallel()
	flags := []string{"--mlflow", "http://" + silentServer(t), "--interval", "20ms"}
	l := listenRun(t, append(flags, holdOpen...)...)
	l.untilSampled(1)
	l.hold.Close()
	l.untilRefused()
	if state := clitest.ProcessState(l.Cmd.Process.Pid); state == "" || state == "Z" {
		t.Error("perfagent ended before the push was over, so the test proves nothing")
	}
	l.Signal(syscall.SIGTERM) // ends the push
	mustEnd(l.Process, 7)
}

func TestListen_ServesSidecar(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "sidecar", "--listen", ":0", "--interval", "50ms", "--run-id", "side")
	l := listenStart(t, cmd)
	l.untilSampled(3)
	_, _, text := l.get("/report.json")
	reportertest.Validate(t, []byte(text))
	if r := listenReport(t, text); r.Run.Incomplete != "the sidecar is still running" || r.Run.Command != nil || r.Nodes["0"].Sampling.Samples < 3 {
		t.Errorf("run %+v, want a sidecar that is still running, with at least 3 samples and no command", r.Run)
	}
	if code, _, _ := l.get("/"); code != 200 {
		t.Errorf("GET /: status %d, want 200", code)
	}
	listenConn(t, l) // TestListen_ClientsDoNotDelayExit measures the delay that a connection causes
	l.Signal(syscall.SIGTERM)
	o := l.finish()
	o.Want(t, 0)
	if o.Err != "" {
		t.Errorf("stderr %q, want none", o.Err)
	}
	reportertest.ReadSingle(t, filepath.Join(l.Cmd.Dir, "perfagent-out"))

	_, port, _ := net.SplitHostPort(silentServer(t))
	s, path := beside(t, nil, "--listen", port)
	s.Signal(syscall.SIGTERM)
	o = mustEnd(s, 0)
	o.WantLine(t, "127.0.0.1:"+port, "address already in use")
	wantListenMissing(t, reportertest.ReadFile(t, path), "address already in use")
}

// With --compat perf.py, the live report contains perf.py's numbers.
func TestListen_CompatShowsPerfPyNumbers(t *testing.T) {
	t.Parallel()
	l := listenInside(t, "0", append([]string{"--interval", "50ms", "--compat", "perf.py"}, holdOpen...)...)
	l.untilSampled(2)
	if code, _, _ := l.get("/"); code != 200 {
		t.Errorf("GET /: status %d, want 200", code)
	}
	_, _, text := l.get("/report.json")
	if n := listenReport(t, text).Nodes["0"]; n.Origin != reporter.OriginPerfPy || n.Samples.Len() < 1 {
		t.Errorf("node %+v, want perf.py's numbers with at least one sample", n)
	}
	l.finish().Want(t, 7)
}

// The table in docs/listen.md equals exporter.Metrics().
func TestDocs_ListenTableEqualsMetrics(t *testing.T) {
	var want strings.Builder
	want.WriteString("| name | type | meaning |\n|---|---|---|\n")
	for _, m := range exporter.Metrics() {
		name := m.Name
		if m.Label != "" {
			name += "{" + m.Label + "}"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", name, m.Type, strings.TrimSuffix(m.Help, ", since the start of the run"))
	}
	generatedPart(t, "../../docs/listen.md", "metrics", want.String())
}

// patientCurl makes curl retry until the server listens.
const patientCurl = "curl() { command curl --retry 300 --retry-delay 1 --retry-all-errors \"$@\"; }\n"

// An insideProcess is a command line that runs concurrently in the test's process. Parallel tests may start one. Its
// working directory is the test's, so its reports need --out.
type insideProcess struct {
	stdin       io.WriteCloser // of the job
	lines, said <-chan string  // stdout and stderr
	ended       <-chan int     // the exit code
}

// startInside starts the command line in args.
func startInside(t testing.TB, args ...string) *insideProcess {
	t.Helper()
	in, stdin := clitest.Pipe(t)
	outR, outW := clitest.Pipe(t)
	errR, errW := clitest.Pipe(t)
	ended := make(chan int, 1)
	go func() {
		code := execute(args, streams{out: outW, err: errW, embedded: true, in: in})
		outW.Close()
		errW.Close()
		ended <- code
	}()

	return &insideProcess{stdin: stdin, lines: clitest.Scan(outR), said: clitest.Scan(errR), ended: ended}
}
