package mlflow

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/need"
)

// A flood is the body of an answer: a head, one text over and over, and a tail. It records the peak
// of memory in use while it is read, and how much of it is read.
type flood struct {
	head, item, tail string
	items            int

	text string
	read int64
	peak uint64
	asks int
}

func (f *flood) Read(p []byte) (int, error) {
	if f.asks++; f.asks%64 == 1 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		f.peak = max(f.peak, m.HeapAlloc)
	}
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

// flooded returns a client that gets such an answer, each time from its beginning.
func flooded(t *testing.T, f *flood) *Client {
	t.Helper()
	c := client(t, Config{URI: "http://h"})
	from := *f
	c.transport = roundTrip(func(*http.Request) (*http.Response, error) {
		again := from
		again.read, again.peak = f.read, f.peak
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

func searchAll(c *Client) error {
	_, err := c.SearchRuns(context.Background(), RunQuery{})
	return err
}

// Not parallel: it looks at the memory of the whole process.
func TestAnswer_BombsTakeLittleMemory(t *testing.T) {
	const lists, points = 64 << 20, 256 << 20 // with the garbage of decoding
	long := strings.Repeat("x", 1<<20)
	blank := strings.Repeat(" ", 1<<10)
	for name, tt := range map[string]struct {
		flood     flood
		maxAnswer int64
		call      func(*Client) error
		want      string
		max       uint64 // bytes of memory
	}{
		"runs": {
			flood: flood{head: `{"runs":[{}`, item: ",{}", items: 20 << 20},
			call:  search, want: "more than 1000 runs", max: lists,
		},
		"runs without a limit": {
			flood: flood{head: `{"runs":[{}`, item: ",{}", items: 20 << 20},
			call:  searchAll, want: "256 MiB", max: points,
		},
		"lists of runs": {
			flood: flood{head: `{`, item: `"runs":[{}],`, items: 5 << 20},
			call:  search, want: "more than 1000 runs", max: lists,
		},
		"experiments": {
			flood: flood{head: `{"experiments":[{}`, item: ",{}", items: 20 << 20},
			call:  experiments, want: "more than 100000 experiments", max: lists,
		},
		"names": {
			flood: flood{head: `{"experiments":[{}`, item: `,{"name":"` + long + `"}`, items: 60},
			call:  experiments, want: "32 MiB", max: lists,
		},
		"metrics": {
			flood: flood{head: `{"run":{"data":{"metrics":[{}`, item: ",{}", items: 20 << 20},
			call:  getRun, want: "more than 200000", max: lists,
		},
		"tags": {
			flood: flood{head: `{"runs":[{"data":{"tags":[{}`, item: ",{}", items: 20 << 20},
			call:  search, want: "more than 200000", max: lists,
		},
		"values": {
			flood: flood{head: `{"runs":[{"data":{"tags":[{}`, item: `,{"value":"` + long + `"}`, items: 60},
			call:  search, want: "32 MiB", max: lists,
		},
		"one value": {
			flood: flood{head: `{"run":{"info":{"run_name":"`, item: long, items: 60},
			call:  getRun, want: "single value", max: lists,
		},
		"one key": {
			flood: flood{head: `{"`, item: long, items: 60},
			call:  getRun, want: "single value", max: lists,
		},
		"another member": {
			flood: flood{head: `{"x":"`, item: long, items: 60},
			call:  search, want: "single value of more than 24 MiB", max: lists,
		},
		"another member of many values": {
			flood: flood{head: `{"x":[{}`, item: `,{"":null,"a":""}`, items: 5 << 20}, maxAnswer: 8 << 20,
			call: search, want: "longer than 8388608 bytes", max: 16 << 20,
		},
		"nothing that ends": {
			flood: flood{head: `{"x":[{}`, item: `,"` + blank + blank + blank + blank + `"`, items: 80 << 10},
			call:  search, want: "longer than 67108864 bytes", max: 16 << 20,
		},
		"depth": {
			flood: flood{head: `{"x":`, item: "[", items: 12 << 20},
			call:  search, want: "not understood", max: lists,
		},
		"blanks between values": {
			flood: flood{head: `{"x":1`, item: blank, items: 80 << 10},
			call:  search, want: "single value", max: lists,
		},
		"space before": {
			flood: flood{item: blank, items: 80 << 10},
			call:  search, want: "not MLflow's", max: lists,
		},
		"HTML": {
			flood: flood{head: `<title>Sign in</title>`, item: strings.Repeat("y", 1<<10), items: 80 << 10},
			call:  search, want: "Sign in", max: lists,
		},
		"points, on the second page": {
			flood: flood{head: `{"metrics":[{}`, item: ",{}", items: 11e5, tail: `],"next_page_token":"x"}`},
			call:  history, want: "more than 2000000 points", max: points,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.max > lists {
				need.Time(t, "a quarter of a gigabyte")
			}
			c := flooded(t, &tt.flood)
			c.config.MaxAnswer = tt.maxAnswer
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tt.call(c)
			if wantText(t, err, tt.want); Temporary(err) {
				t.Errorf("%v is temporary", err)
			}
			took := tt.flood.peak - min(before.HeapAlloc, tt.flood.peak)
			t.Logf("%d MiB of memory, %d MiB read", took>>20, tt.flood.read>>20)
			if took > tt.max {
				t.Errorf("%d MiB of memory, want at most %d", took>>20, tt.max>>20)
			}
			if strings.Contains(tt.want, "Sign in") && tt.flood.read > maxAnswerText+8<<10 {
				t.Errorf("%d bytes read of what is not JSON", tt.flood.read)
			}
		})
	}
}

// An answer may be large for good reasons.
func TestAnswer_ReadsLargeRuns(t *testing.T) {
	t.Parallel()
	var metrics strings.Builder
	for i := range 21_000 {
		fmt.Fprintf(&metrics,
			`{"key":"node-%04d/gpu/0/utilization","value":%d,"timestamp":1700000000000,"step":1,"run_id":"r"},`, i,
			i)
	}
	run := `{"info":{"run_id":"r1"},"inputs":{"dataset_inputs":[{"profile":"` + strings.Repeat("x",
		5<<20) + `\"]"}]},"data":{"metrics":[` +
		strings.TrimSuffix(metrics.String(), ",") + `]}}`
	r, err := answering(t, 200, `{"run":`+run+`}`).Run(context.Background(), "r1")
	if err != nil || len(r.Metrics) != 21_000 || r.Metrics["node-0007/gpu/0/utilization"].Value != 7 {
		t.Error(err)
	}
	runs, err := answering(t, 200, `{"runs":[`+run+`,`+run+`,null,{"data":null}]}`).SearchRuns(context.Background(),
		RunQuery{Limit: 10})
	if err != nil || len(runs) != 4 || len(runs[1].Metrics) != 21_000 || runs[3].Tags == nil {
		t.Error(len(runs), err)
	}
	points := strings.Repeat(`{"key":"k","value":1,"timestamp":1,"step":0},`, 20_000)
	all, err := answering(t, 200, `{"metrics":[`+points[:len(points)-1]+`]}`).MetricHistory(context.Background(),
		"r", "k")
	if err != nil || len(all) != 20_000 {
		t.Error(len(all), err)
	}
}

func TestAnswer_ObeysMaxAnswer(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"run":{"info":{"run_id":"r1"}},"x":"` + strings.Repeat("x", 2000) + `"}`,
		strings.Repeat(" ", 2000), "{" + strings.Repeat(" ", 2000)} {
		c := answering(t, 200, body)
		c.config.MaxAnswer = 1000
		if err := getRun(c); err == nil || Temporary(err) ||
			body[0] == '{' && !strings.Contains(err.Error(), "longer than 1000 bytes") {
			t.Errorf("%.10q: %v", body, err)
		}
	}
	c := answering(t, 200, goodRun)
	for most, want := range map[int64]bool{int64(len(goodRun)): true, int64(len(goodRun)) - 1: false, 1 << 40: true,
		-1: true} {
		c.config.MaxAnswer = most
		if err := getRun(c); (err == nil) != want {
			t.Errorf("%d: %v", most, err)
		}
	}
	c = answering(t, 400, "abcdefghij")
	c.config.MaxAnswer = 3
	if e := wantText(t, getRun(c)); e.Message != "abc" {
		t.Errorf("%q", e.Message)
	}
}

func TestAnswer_ExplainsBadJSON(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"runs":[{},]}`, `{"runs":[{}}`, `{"runs":{}}`, `{"runs" []}`, `{runs:[]}`,
		`{"runs":[]]}`, `{"runs":[]} x`, `{"runs":nil}`, `{"runs":[5]}`,
		`{"runs":[]"x":1}`, `{"runs":,}`, `{,}`, `{"next_page_token":[1}}`} {
		c := answering(t, 200, body)
		if err := search(c); err == nil || Temporary(err) || !strings.Contains(err.Error(), "not understood") {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{`{`, `{"runs"`, `{"runs":`, `{"runs":[`, `{"runs":[{"info":{"a`, `{"runs":[]`,
		`{"x":12`, `{"x":"\"}`} {
		if err := search(answering(t, 200, body)); !Temporary(err) ||
			!strings.Contains(err.Error(), "ends in its middle") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestList_Ends(t *testing.T) {
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
			t.Errorf("%s: %d pages, %v", name, asked, err)
		}
		if err != nil {
			wantText(t, err, "pages do not end", tt.want)
		}
	}
}

// No more runs are requested than are wanted.
func TestSearchRuns_AsksForNoMore(t *testing.T) {
	t.Parallel()
	var asked []float64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, bodyOf(t, r)["max_results"].(float64))
		fmt.Fprintf(w, `{"runs":[{},{},{}],"next_page_token":"%d"}`, len(asked))
	})
	runs, err := c.SearchRuns(context.Background(), RunQuery{Limit: 9})
	if err != nil || len(runs) != 9 || fmt.Sprint(asked) != "[9 6 3]" {
		t.Errorf("%d runs, asked for %v, %v", len(runs), asked, err)
	}
	asked = nil
	_, err = c.SearchRuns(context.Background(), RunQuery{Limit: 2})
	if wantText(t, err, "more than 2 runs"); fmt.Sprint(asked) != "[2]" {
		t.Errorf("asked for %v", asked)
	}
}
