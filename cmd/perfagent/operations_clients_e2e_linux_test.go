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

	"github.com/perfagent/perfagent/internal/check"
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
	l := clitest.StartProcess(t, with(cmd, "PERFAGENT_NO_PAGE=0",
		"PATH="+filepath.Dir(clitest.Binary(t))+":"+filepath.Dir(python)+":"+os.Getenv("PATH"),
		"GUNICORN_CMD_ARGS=--bind 127.0.0.1:"+port+" --workers 2 --log-level warning "+
			"--access-logfile access.log --access-logformat '%(s)s %(D)s'"))
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
		check.Must(t, ask(path))
	}
	l.Signal(syscall.SIGTERM)
	o := mustEnd(l, 0)
	r, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "perfagent-out"))
	n := r.Nodes["0"]

	logged := map[string]float64{}
	var times []float64
	sum := 0.0
	for line := range strings.Lines(clitest.Read(t, filepath.Join(cmd.Dir, "access.log"))) {
		var status string
		var us float64
		if _, err := fmt.Sscan(line, &status, &us); err != nil {
			t.Fatalf("line %q of the access log: %v, want a status and a time", line, err)
		}
		logged["gunicorn.requests"]++
		logged["gunicorn.request.status."+status]++
		times, sum = append(times, us/1000), sum+us/1000
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
	if !ok || took.Avg == nil || took.Min == nil || took.Max == nil || took.P90 == nil {
		t.Fatalf("operations %+v lack the duration of requests", n.Operations)
	}
	slices.Sort(times)
	count := float64(len(times))
	mean, p90, low, high := sum/count, times[int(math.Ceil(0.9*count))-1], times[0], times[len(times)-1]
	if took.Count != count || math.Abs(*took.Avg-mean) > 1e-9*mean || *took.Min != low || *took.Max != high {
		t.Errorf("%v durations, avg %v, %v to %v; want %v, avg %v, %v to %v",
			took.Count, *took.Avg, *took.Min, *took.Max, count, mean, low, high)
	}
	if math.Abs(*took.P90-p90) > 0.0101*p90 {
		t.Errorf("P90 of the durations %v, want %v within 1.01 %%", *took.P90, p90)
	}

	// The page shows the requests and the CPU usage.
	page := clitest.Read(t, strings.TrimSuffix(path, ".json")+".html")
	for _, part := range []string{`chart="cpu"`, `chart="counters"`, `chart="operations"`, "gunicorn.requests"} {
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
