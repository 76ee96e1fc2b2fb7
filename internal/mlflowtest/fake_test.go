package mlflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// newFake starts a Fake and returns a client and a run.
func newFake(t *testing.T, f *Fake) (*client, string) {
	t.Helper()
	c := newClient(t, Serve(t, f).URL)
	c.send(`POST experiments/create {"name":"one"}`, "")
	return c, c.newRun()
}

const onePoint = `"metrics":[{"key":"m","value":2,"timestamp":20,"step":2},{"key":"m","value":1,"timestamp":10,` +
	`"step":1},{"key":"m","value":1,"timestamp":10,"step":1}]}`

func TestFake_RecordsRunsAndRequests(t *testing.T) {
	f := NewFake()
	c, run := newFake(t, f)
	c.send(`POST runs/log-batch {"run_id":"`+run+`",`+onePoint, "")
	c.send("PUT "+cAPI+"/1/"+run+"/artifacts/a/b.json {}", "")
	got := f.Runs()[0]
	if m := got.Metrics["m"]; len(m) != 2 || m[0] != (Point{10, 1, 1}) || got.Latest["m"] != 2 {
		t.Errorf("history %v, want 2 points in order of time; latest %v, want 2", m, got.Latest)
	}
	if len(got.Artifacts) != 1 || got.Artifacts[0].Path != "a/b.json" || got.Artifacts[0].Size != 2 ||
		got.Artifacts[0].SHA256 == "" {
		t.Errorf("artifacts %+v, want a/b.json of 2 bytes with a hash", got.Artifacts)
	}
	requests := f.Requests()
	last := requests[len(requests)-1]
	if last.Method != "PUT" || !strings.HasSuffix(last.Path, "/a/b.json") || string(last.Body) != "{}" ||
		last.Header.Get("Content-Type") == "" || last.Time.IsZero() {
		t.Errorf("the last request is %+v, want PUT of {} to a/b.json, with a content type and a time", last)
	}
	f.DeleteRun(run)
	if code, body := c.send(`POST runs/log-batch {"run_id":"`+run+`",`+onePoint, ""); code != 400 ||
		!strings.Contains(string(body), "must be in the 'active' state") {
		t.Errorf("log-batch to a deleted run: %d %s, want 400 and \"must be in the 'active' state\"", code, body)
	}
	f.DeleteExperiment("one")
	if code, _ := c.send(`POST runs/create {"experiment_id":"1"}`, ""); code != 400 {
		t.Errorf("creating a run in a deleted experiment: status %d, want 400", code)
	}
}

func TestFake_FileStoreKeepsRepeatedPoints(t *testing.T) {
	f := NewFake()
	f.FileStore = true
	c, run := newFake(t, f)
	c.send(`POST runs/log-batch {"run_id":"`+run+`",`+onePoint, "")
	if m := f.Runs()[0].Metrics["m"]; len(m) != 3 || m[0].Step != 2 {
		t.Errorf("history %v, want 3 points, the first with step 2", m)
	}
}

func TestFake_IsSafeForConcurrentUse(t *testing.T) {
	f := NewFake()
	c, run := newFake(t, f)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				c.send(`POST runs/log-batch {"run_id":"`+run+`",`+onePoint, "")
				f.Runs()
				f.Requests()
				f.SetBefore(nil)
			}
		})
	}
	wg.Wait()
	if m := f.Runs()[0].Metrics["m"]; len(m) != 2 {
		t.Errorf("history %v, want 2 points", m)
	}
}

func TestHooks_SimulateTheirFaults(t *testing.T) {
	f := NewFake()
	url := Serve(t, f).URL
	try := func(wait time.Duration) (int, http.Header, string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			url+"/api/2.0/mlflow/experiments/get?experiment_id=0", nil)
		check.Must(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, nil, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, response.Header, string(body), err
	}
	f.SetBefore(RetryAfter(7))
	if code, header, _, _ := try(time.Minute); code != 429 || header.Get("Retry-After") != "7" {
		t.Errorf("RetryAfter(7): status %d, header %v; want 429, Retry-After 7", code, header)
	}
	f.SetBefore(HTML502())
	if code, header, _, _ := try(time.Minute); code != 502 || header.Get("Content-Type") != "text/html" {
		t.Errorf("HTML502: status %d, header %v; want 502, text/html", code, header)
	}
	f.SetBefore(HalfJSON())
	if code, _, body, err := try(time.Minute); code != 200 || err != nil || json.Valid([]byte(body)) {
		t.Errorf("HalfJSON: status %d, body %q, error %v; want 200 and half of a JSON text", code, body, err)
	}
	for name, h := range map[string]Hook{"Hang": Hang(), "Slow": Slow()} {
		f.SetBefore(h)
		if _, _, _, err := try(50 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want context.DeadlineExceeded", name, err)
		}
	}
	f.SetBefore(Drop())
	if _, _, _, err := try(time.Minute); err == nil || os.IsTimeout(err) {
		t.Errorf("Drop: %v, want an error other than a timeout", err)
	}
	f.SetBefore(First(1, On("experiments/", Status(500, "text/plain", "no"))))
	first, _, _, _ := try(time.Minute)
	if second, _, _, _ := try(time.Minute); first != 500 || second != 200 {
		t.Errorf("First: status %d, then %d; want 500, then 200", first, second)
	}
}

func TestApplied_ExecutesTheRequestBeforeTheFault(t *testing.T) {
	f := NewFake()
	c, run := newFake(t, f)
	f.SetBefore(f.Applied(HTML502()))
	code, _ := c.send(`POST runs/log-batch {"run_id":"`+run+`",`+onePoint, "")
	if code != 502 || len(f.Runs()[0].Metrics) != 1 {
		t.Errorf("Applied: status %d, metrics %v; want 502 and one metric", code, f.Runs()[0].Metrics)
	}
}

func TestListener_ClosesAndReopensItsPort(t *testing.T) {
	l := Serve(t, NewFake())
	for range 2 {
		if code := status(t, http.DefaultClient, l.URL+"/health"); code != http.StatusOK {
			t.Errorf("open port: status %d, want %d", code, http.StatusOK)
		}
		l.Close()
		if _, err := http.Get(l.URL + "/health"); err == nil {
			t.Error("GET from a closed port succeeded, want an error")
		}
		l.Reopen()
	}
}
