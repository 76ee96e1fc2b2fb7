package mlflow

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// A flood is the body of a response: a head, a repeated item, and a tail. It counts the bytes read.
type flood struct {
	head, item, tail string
	items            int

	text string
	read int64
}

func (f *flood) Read(p []byte) (int, error) {
	if f.text == "" {
		switch {
		case f.head != "":
			f.text, f.head = f.head, ""
		case f.items > 0:
			n := min(f.items, 1+(16<<10)/len(f.item))
			f.text, f.items = strings.Repeat(f.item, n), f.items-n
		case f.tail != "":
			f.text, f.tail = f.tail, ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, f.text)
	f.text = f.text[n:]
	f.read += int64(n)
	return n, nil
}

// flooded returns a client that gets f as the response to each request.
func flooded(t *testing.T, f *flood) *Client {
	t.Helper()
	c := client(t, Config{URI: "http://h"})
	from := *f
	c.transport = roundTrip(func(*http.Request) (*http.Response, error) {
		again := from
		again.read = f.read
		*f = again
		r := response(200, "")
		r.Body = io.NopCloser(f)
		return r, nil
	})
	return c
}

func search(c *Client) error {
	_, err := c.SearchRuns(context.Background(), RunQuery{Limit: 1000})
	return err
}

func experiments(c *Client) error {
	_, err := c.SearchExperiments(context.Background())
	return err
}

func history(c *Client) error {
	_, err := c.MetricHistory(context.Background(), "r", "k")
	return err
}

// This test is not parallel, because it measures the memory of the whole process. The low GC percentage limits the
// garbage: by default there may be as much garbage as used memory, and more on a busy machine.
func TestClient_ResponseBombsTakeLittleMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	const text = 8 << 20 // MaxResponse of the client, in bytes
	for name, tt := range map[string]struct {
		flood flood
		call  func(*Client) error
		want  string
	}{
		"runs":                    {flood{head: `{"runs":[{}`, item: ",{}", items: 2 << 20, tail: "]}"}, search, "32 MiB"},
		"null runs":               {flood{head: `{"runs":[null`, item: ",null", items: 1 << 20, tail: "]}"}, search, "32 MiB"},
		"numbers instead of runs": {flood{head: `{"runs":[1`, item: ",1", items: 3 << 20, tail: "]}"}, search, "malformed"},
		"metrics": {flood{head: `{"run":{"data":{"metrics":[{}`, item: ",{}", items: 2 << 20, tail: "]}}}"},
			getRun, "32 MiB"},
		"more runs than requested": {flood{head: `{"runs":[{}`, item: ",{}", items: 1000, tail: "]}"}, search,
			"more than 1000 runs"},
		"endless string":      {flood{head: `{"x":"`, item: "xxxx", items: 4 << 20}, search, "longer than 8388608 bytes"},
		"deep nesting":        {flood{head: `{"x":`, item: "[", items: 6 << 20}, search, "malformed"},
		"leading white space": {flood{item: " ", items: 10 << 20}, search, "not from MLflow"},
		"HTML":                {flood{head: `<title>Sign in</title>`, item: "y", items: 80 << 20}, search, "Sign in"},
		"too many points on two pages": {flood{head: `{"metrics":[{}`, item: ",{}", items: 11e5,
			tail: `],"next_page_token":"x"}`}, history, "more than 2000000 points"},
	} {
		t.Run(name, func(t *testing.T) {
			c := flooded(t, &tt.flood)
			c.config.MaxResponse = text
			debug.FreeOSMemory() // return the garbage of other tests to the system
			wantFinal(t, tt.call(c), tt.want)
			var after runtime.MemStats
			runtime.ReadMemStats(&after)
			if took := after.HeapSys - after.HeapReleased; took > 2*maxListMemory {
				t.Errorf("%d MiB of memory, want at most %d", took>>20, 2*maxListMemory>>20)
			}
			if strings.Contains(tt.want, "Sign in") && tt.flood.read > maxTextResponse+8<<10 {
				t.Errorf("%d bytes read of a response that is not JSON, want at most %d", tt.flood.read, maxTextResponse+8<<10)
			}
		})
	}
}

// A valid response may be large.
func TestClient_ReadsLargeRuns(t *testing.T) {
	t.Parallel()
	var metrics strings.Builder
	for i := range 21_000 {
		fmt.Fprintf(&metrics,
			`{"key":"node-%04d/gpu/0/utilization","value":%d,"timestamp":1700000000000,"step":1,"run_id":"r"},`, i, i)
	}
	run := `{"info":{"run_id":"r1"},"inputs":{"dataset_inputs":[{"profile":"` + strings.Repeat("x",
		5<<20) + `\"]"}]},"data":{"metrics":[` + strings.TrimSuffix(metrics.String(), ",") + `]}}`
	r, err := answering(t, 200, `{"run":`+run+`}`).Run(context.Background(), "r1")
	if err != nil || len(r.Metrics) != 21_000 || r.Metrics["node-0007/gpu/0/utilization"].Value != 7 {
		t.Errorf("Run: error %v, want 21000 metrics, node-0007/gpu/0/utilization = 7", err)
	}
	runs, err := answering(t, 200, `{"runs":[`+run+`,`+run+`,null,{"data":null}]}`).SearchRuns(context.Background(),
		RunQuery{Limit: 10})
	if err != nil || len(runs) != 4 || len(runs[1].Metrics) != 21_000 || runs[3].Tags == nil {
		t.Errorf("SearchRuns: %d runs, error %v; want 4, the second with 21000 metrics", len(runs), err)
	}
	points := strings.Repeat(`{"key":"k","value":1,"timestamp":1,"step":0},`, 20_000)
	all, err := answering(t, 200, `{"metrics":[`+points[:len(points)-1]+`]}`).MetricHistory(context.Background(), "r", "k")
	if err != nil || len(all) != 20_000 {
		t.Errorf("MetricHistory: %d points, error %v; want 20000", len(all), err)
	}
}

func TestClient_ObeysMaxResponse(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"run":{"info":{"run_id":"r1"}},"x":"` + strings.Repeat("x", 2000) + `"}`,
		strings.Repeat(" ", 2000), "{" + strings.Repeat(" ", 2000)} {
		c := answering(t, 200, body)
		c.config.MaxResponse = 1000
		if err := getRun(c); err == nil || Temporary(err) ||
			body[0] == '{' && !strings.Contains(err.Error(), "longer than 1000 bytes") {
			t.Errorf("MaxResponse 1000, response %.10q…: %v, want a permanent error", body, err)
		}
	}
	c := answering(t, 200, goodRun)
	for most, want := range map[int64]bool{int64(len(goodRun)): true, int64(len(goodRun)) - 1: false, 1 << 40: true,
		-1: true} {
		c.config.MaxResponse = most
		if err := getRun(c); (err == nil) != want {
			t.Errorf("MaxResponse %d: %v, want success: %v", most, err, want)
		}
	}
	c = answering(t, 400, "abcdefghij")
	c.config.MaxResponse = 3
	if e := wantText(t, getRun(c)); e.Message != "abc" {
		t.Errorf("message %q, want abc", e.Message)
	}
}

func TestClient_ExplainsBadJSON(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"runs":[{},]}`, `{"runs":[{}}`, `{"runs":{}}`, `{"runs" []}`, `{runs:[]}`,
		`{"runs":[]]}`, `{"runs":[]} x`, `{"runs":nil}`, `{"runs":[5]}`,
		`{"runs":[]"x":1}`, `{"runs":,}`, `{,}`, `{"next_page_token":[1}}`} {
		if err := search(answering(t, 200, body)); err == nil || Temporary(err) || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("response %s: %v, want a permanent error with \"malformed\"", body, err)
		}
	}
	for _, body := range []string{`{`, `{"runs"`, `{"runs":`, `{"runs":[`, `{"runs":[{"info":{"a`, `{"runs":[]`,
		`{"x":12`, `{"x":"\"}`} {
		if err := search(answering(t, 200, body)); !Temporary(err) || !strings.Contains(err.Error(), "is cut off") {
			t.Errorf("response %s: %v, want a temporary error with \"is cut off\"", body, err)
		}
	}
}

func TestClient_StopsReadingEndlessLists(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string // of page %d
		call func(*Client) error
		want string
		asks int
	}{
		"empty runs":        {`{"next_page_token":"%d"}`, search, "100 of them are empty", 100},
		"empty history":     {`{"metrics":[],"next_page_token":"%d"}`, history, "100 of them are empty", 100},
		"empty experiments": {`{"next_page_token":"%d"}`, experiments, "100 of them are empty", 100},
		"runs":              {`{"runs":[{}],"next_page_token":"%d"}`, search, "", 1000},
		"experiments":       {`{"experiments":[{}],"next_page_token":"%d"}`, experiments, "more than 100", 100},
		"history":           {`{"metrics":[{}],"next_page_token":"%d"}`, history, "more than 10000", 10_000},
	} {
		asked := 0
		c := client(t, Config{URI: "http://h"})
		c.transport = roundTrip(func(*http.Request) (*http.Response, error) {
			asked++
			return response(200, fmt.Sprintf(tt.body, asked)), nil
		})
		err := tt.call(c)
		if (err == nil) != (tt.want == "") || Temporary(err) || asked != tt.asks {
			t.Errorf("%s: %d pages, want %d; %v, want a permanent error with %q, or none if that is empty", name, asked, tt.asks, err, tt.want)
		}
		if err != nil {
			wantText(t, err, "list of pages does not end", tt.want)
		}
	}
}

// SearchRuns never requests more runs than the limit.
func TestSearchRuns_RequestsNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	var asked []float64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, bodyOf(t, r)["max_results"].(float64))
		fmt.Fprintf(w, `{"runs":[{},{},{}],"next_page_token":"%d"}`, len(asked))
	})
	runs, err := c.SearchRuns(context.Background(), RunQuery{Limit: 9})
	if err != nil || len(runs) != 9 || fmt.Sprint(asked) != "[9 6 3]" {
		t.Errorf("%d runs, requests for %v, error %v; want 9, [9 6 3]", len(runs), asked, err)
	}
	asked = nil
	_, err = c.SearchRuns(context.Background(), RunQuery{Limit: 2})
	if wantText(t, err, "more than 2 runs"); fmt.Sprint(asked) != "[2]" {
		t.Errorf("requests for %v, want [2]", asked)
	}
}

// The memory for all pages of a list together is limited.
func TestSearchRuns_LimitsMemoryOfAllPages(t *testing.T) {
	t.Parallel()
	asked := 0
	c := client(t, Config{URI: "http://h"})
	c.transport = roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		name := strings.Repeat("x", 5<<20)
		return response(200, fmt.Sprintf(`{"runs":[{"info":{"run_name":%q}}],"next_page_token":"%d"}`, name, asked)), nil
	})
	if wantFinal(t, search(c), "more than 32 MiB in it"); asked != 7 {
		t.Errorf("%d pages, want 7", asked)
	}
}
