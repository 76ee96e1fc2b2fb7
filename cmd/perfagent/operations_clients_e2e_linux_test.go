//go:build e2e

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// The operations of gunicorn, started as documented, match its access log in number, status and time.
func TestE2E_Operations_GunicornMatchesItsAccessLog(t *testing.T) {
	t.Parallel()
	python, port := opsPython(t), freePort(t)
	recipe := fenced(t, operationsDoc, "sh gunicorn")[0].text
	cmd := clitest.Command(t, "sh", "-c", "exec "+recipe)
	clitest.Write(t, filepath.Join(cmd.Dir, "app.py"), opsApp, 0o600)
	cmd.Env = append(cmd.Env, "PERFAGENT_NO_PAGE=0",
		"PATH="+filepath.Dir(clitest.Binary(t))+":"+filepath.Dir(python)+":"+os.Getenv("PATH"),
		"GUNICORN_CMD_ARGS=--bind 127.0.0.1:"+port+" --workers 2 --log-level warning "+
			"--access-logfile access.log --access-logformat '%(s)s %(D)s'")
	l := clitest.StartProcess(t, cmd)
	client := listenClient()
	ask := func(path string) error {
		answer, err := client.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	clitest.WaitUntil(t, "gunicorn answers", func() bool { return ask("/first") == nil })
	for i := range 300 {
		path := "/"
		if i%10 == 0 {
			path = "/none"
		}
		if err := ask(path); err != nil {
			t.Fatal(err)
		}
	}
	l.Signal(syscall.SIGTERM)
	o, _ := l.End()
	o.Want(t, 0)
	r, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
	n := r.Nodes["0"]

	logged := map[string]float64{}
	var times []float64
	for line := range strings.Lines(clitest.Read(t, filepath.Join(cmd.Dir, "access.log"))) {
		var status string
		var us float64
		if _, err := fmt.Sscan(line, &status, &us); err != nil {
			t.Fatalf("line %q of the access log: %v, want a status and a time", line, err)
		}
		logged["gunicorn.requests"]++
		logged["gunicorn.request.status."+status]++
		times = append(times, us/1000)
	}
	for name, want := range logged {
		if got := n.Operations.Counters[name]; got != want {
			t.Errorf("counter %s is %v, want %v as in the access log", name, got, want)
		}
	}
	if len(times) < 301 || logged["gunicorn.request.status.404"] != 30 {
		t.Errorf("%d requests in the access log, want at least 301 and 30 of status 404: %v", len(times), logged)
	}
	took, ok := n.Operations.Times["gunicorn.request.duration"]
	if !ok {
		t.Fatalf("operations %+v lack the duration of requests", n.Operations)
	}
	last := &times[len(times)-1] // two workers write the log, so the last line may be of another request
	wantNumbers(t, "gunicorn.request.duration", times, took.Count, took.Avg, took.Min, took.Max, last, took.P90)

	// The page shows the requests and the CPU usage.
	page := clitest.Read(t, strings.TrimSuffix(path, ".json")+".html")
	for _, part := range []string{
		`data-chart="cpu"`, `data-chart="counters"`, `data-chart="operations"`, "gunicorn.requests",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
}

// opsApp is an application for gunicorn.
const opsApp = `
import time
def app(environ, start_response):
    time.sleep(0.002)
    found = environ['PATH_INFO'] != '/none'
    start_response('200 OK' if found else '404 Not Found', [('Content-Length', '1')])
    return [b'x']
`

// wantNumbers compares the statistics of a series with the values that were sent. The P90 may differ by 1 %.
func wantNumbers(t *testing.T, name string, sent []float64, count float64, avg, low, high, last, p90 *float64) {
	t.Helper()
	if avg == nil || low == nil || high == nil || last == nil || p90 == nil {
		t.Errorf("%s lacks the average, minimum, maximum, last or P90 of %v values sent", name, len(sent))
		return
	}
	sum := 0.0
	for _, v := range sent {
		sum += v
	}
	want := sum / float64(len(sent))
	if count != float64(len(sent)) || math.Abs(*avg-want) > 1e-9*math.Abs(want) ||
		*low != slices.Min(sent) || *high != slices.Max(sent) || *last != sent[len(sent)-1] {
		t.Errorf("%s: count %v, avg %v, %v to %v, last %v; want %d, avg %v, %v to %v, last %v",
			name, count, *avg, *low, *high, *last, len(sent), want, slices.Min(sent), slices.Max(sent),
			sent[len(sent)-1])
	}
	slices.Sort(sent)
	exact := sent[int(math.Ceil(0.9*float64(len(sent))))-1]
	if math.Abs(*p90-exact) > 0.0101*math.Abs(exact) {
		t.Errorf("%s: P90 %v, want %v within 1.01 %%", name, *p90, exact)
	}
}
