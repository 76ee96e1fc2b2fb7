package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
)

// opsServer is a server that uses prometheus_client. It has vLLM's seven NIXL metrics, with vLLM's buckets, and one
// more counter. It executes the lines of stdin and acknowledges each:
//
//	feed N     count the next N transfers of transfers.json, continuing where an earlier server stopped
//	scraped N  print "waiting", and wait for scrapes by N programs
//	exit
//
// It ignores TERM and INT.
const opsServer = `
import json, os, signal, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Counter, Histogram, generate_latest

port, state = int(sys.argv[1]), 'state'
labels = ['model_name', 'engine']
seconds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0]
names = {'transfer_duration': ('xfer_time_seconds', seconds),
         'post_duration': ('post_time_seconds', [0.001] + seconds),
         'bytes_transferred': ('bytes_transferred', [2.0**i for i in range(11, 34, 2)]),
         'num_descriptors': ('num_descriptors',
                             [10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000])}
histograms = {list_: Histogram('vllm:nixl_' + name, 'x', labels, buckets=buckets).labels('m', '0')
              for list_, (name, buckets) in names.items()}
failures = [Counter('vllm:nixl_num_' + name, 'x', labels).labels('m', '0')
            for name in ('failed_transfers', 'failed_notifications', 'kv_expired_reqs')]
rows = Counter('rows', 'x')

changed, round, seen = threading.Condition(), 0, set()

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with changed: body, began = generate_latest(), round
        self.send_response(200)
        self.send_header('Content-Type', CONTENT_TYPE_PLAIN_0_0_4)
        self.end_headers()
        self.wfile.write(body)
        with changed:
            if began == round: seen.add(self.headers['User-Agent'].split('/')[0])
            changed.notify_all()
    def log_message(self, *args): pass

for sig in signal.SIGTERM, signal.SIGINT: signal.signal(sig, signal.SIG_IGN)
server = ThreadingHTTPServer(('127.0.0.1', port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print('ready', flush=True)
while words := sys.stdin.readline().split():
    if words[0] == 'exit': os._exit(0)
    if words[0] == 'feed':
        done = int(open(state).read()) if os.path.exists(state) else 0
        n = int(words[1])
        with changed:
            with open('transfers.json') as f: lists = json.load(f)
            for list_, histogram in histograms.items():
                for v in lists[list_][done:done + n]: histogram.observe(v)
            for i, counter in enumerate(failures): counter.inc(i + 1)
            rows.inc(n)
        with open(state, 'w') as f: f.write(str(done + n))
    if words[0] == 'scraped':
        with changed:
            round += 1
            seen.clear()
            print('waiting', flush=True)
            if not changed.wait_for(lambda: len(seen) >= int(words[1]), 300): raise SystemExit('nobody asks')
    print(words[0], flush=True)
while True: signal.pause()
`

// opsTransfers returns n random transfers as lists, one for each quantity, named as in vLLM.
func opsTransfers(n int) map[string][]float64 {
	r := rand.New(rand.NewPCG(3, 4))
	lists := make(map[string][]float64)
	for range n {
		lists["transfer_duration"] = append(lists["transfer_duration"], math.Round(r.ExpFloat64()*30_000)/1e6)
		lists["post_duration"] = append(lists["post_duration"], math.Round(r.ExpFloat64()*3_000)/1e6)
		lists["bytes_transferred"] = append(lists["bytes_transferred"], float64(r.IntN(1<<28)))
		lists["num_descriptors"] = append(lists["num_descriptors"], float64(1+r.IntN(3000)))
	}
	return lists
}

// An opsServed is a process that runs opsServer and passes on its output.
type opsServed struct {
	*clitest.Process
	stdin io.Writer
}

// opsServe starts cmd, which runs opsServer once or several times on the given transfers.
func opsServe(t *testing.T, cmd *exec.Cmd, transfers map[string][]float64) *opsServed {
	t.Helper()
	lists, err := json.Marshal(transfers)
	check.Must(t, err)
	clitest.Write(t, filepath.Join(cmd.Dir, "transfers.json"), string(lists), 0o600)
	clitest.Write(t, filepath.Join(cmd.Dir, "server.py"), opsServer, 0o600)
	stdin, w := clitest.Pipe(t)
	cmd.Stdin = stdin
	s := &opsServed{clitest.StartProcess(t, cmd), w}
	s.Expect("ready")

	return s
}

// feed makes the server count n more transfers.
func (s *opsServed) feed(n int) {
	s.T.Helper()
	s.tell(fmt.Sprintf("feed %d", n))
	s.Expect("feed")
}

// scraped waits until n programs have scraped the server. what triggers the scrapes, unless it is nil.
func (s *opsServed) scraped(n int, what func()) {
	s.T.Helper()
	s.tell(fmt.Sprintf("scraped %d", n))
	s.Expect("waiting")
	if what != nil {
		what()
	}
	s.Expect("scraped")
}

// tell sends a line to the server.
func (s *opsServed) tell(line string) {
	s.T.Helper()
	_, err := fmt.Fprintln(s.stdin, line)
	check.Must(s.T, err)
}

// A promSeries is a series in the result of a query.
type promSeries struct {
	Value  [2]any
	Values [][2]any
}

// ask sends a query and returns the series in the result.
func (p *prometheus) ask(parameters url.Values) []promSeries {
	p.t.Helper()
	answer, err := listenClient().Get(p.url + "/api/v1/query?" + parameters.Encode())
	check.Must(p.t, err)
	defer answer.Body.Close()
	var a struct {
		Data struct{ Result []promSeries }
	}
	err = json.NewDecoder(answer.Body).Decode(&a)
	if err != nil || answer.StatusCode != http.StatusOK || len(a.Data.Result) == 0 {
		p.t.Fatalf("query %v: status %s, %v; want 200 and JSON with a result: %+v", parameters, answer.Status, err, a)
	}
	return a.Data.Result
}

// increase returns the growth of a counter from its first to its last sample. Prometheus does not extrapolate in
// queries over this range.
func (p *prometheus) increase(name string) float64 { return p.ofGrowth("%s", name) }

// quantile90 returns the P90 of the growth of a histogram.
func (p *prometheus) quantile90(name string) float64 {
	return p.ofGrowth("histogram_quantile(0.9, %s)", name)
}

// ofGrowth returns the value of a query with the growth of all series of the given name.
func (p *prometheus) ofGrowth(query, name string) float64 {
	p.t.Helper()
	samples := p.ask(url.Values{"query": {name + "[10m]"}})[0].Values
	if len(samples) < 2 {
		p.t.Fatalf("%d samples of %s, want at least 2", len(samples), name)
	}
	first, last := samples[0][0].(float64), samples[len(samples)-1][0].(float64)
	growth := fmt.Sprintf("increase(%s[%.0fms])", name, (last-first)*1000)
	result := p.ask(url.Values{"query": {fmt.Sprintf(query, growth)}, "time": {fmt.Sprintf("%.3f", last)}})
	if len(result) != 1 {
		p.t.Fatalf("result %+v, want one series", result)
	}
	v, err := strconv.ParseFloat(result[0].Value[1].(string), 64)
	check.Must(p.t, err)
	return v
}

// When TERM or INT is passed on, the server is scraped once more.
func TestOperations_ScrapesOnceMoreAtSignal(t *testing.T) {
	t.Parallel()
	python, port := opsPython(t), freePort(t)
	s := opsServe(t, clitest.Perfagent(t, "run", "--interval", "50ms", "--scrape", "http://127.0.0.1:"+port+"/metrics",
		"--scrape-interval", "1h", "--", python, "server.py", port), opsTransfers(70))
	s.feed(70)
	s.scraped(1, func() { s.Signal(syscall.SIGTERM) })
	s.scraped(1, func() { s.Signal(syscall.SIGINT) }) // scrapes are sequential
	s.tell("exit")
	n := mustEnd(s.Process, 0).Report(t).Nodes["0"]
	if got := n.Operations.Counters["rows_total"]; got != 70 {
		t.Errorf("the counter grew by %v, want 70; %+v", got, n.Operations.Sources)
	}
	if before := n.Operations.Sources[0].SecondsBeforeEnd; before == nil || *before > 600 {
		t.Errorf("source %+v, want a scrape at most 600 s before the end", n.Operations.Sources[0])
	}
}
