package mlflow

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

func TestCheckKey_AcceptsKeysThatEveryServerAccepts(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "system/node-03/cpu_utilization_percentage", "é ü/1.2-3_4", "a.b",
		"...a/..b"[3:], "日本/½", strings.Repeat("é", 250)} {
		if err := CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q): %v, want nil", key, err)
		}
	}
	for _, key := range []string{"", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "a/./b", "../x", "a/../b",
		"..a", "a:b", "a%", "a(b)", "a,b", "a@b", "a[0]",
		"a\n", "a\tb", "a\x00", "a\xff", "a\u0301", strings.Repeat("x", 251)} {
		if err := CheckKey(key); err == nil {
			t.Errorf("CheckKey(%q) = nil, want an error", key)
		}
	}
}

func TestLogBatch_SendsOneRequest(t *testing.T) {
	t.Parallel()
	var got map[string]any
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.URL.Path != "/api/2.0/mlflow/runs/log-batch" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("request %s %s with %s, want a POST of JSON to /api/2.0/mlflow/runs/log-batch", r.Method, r.URL, r.Header)
		}
		got = bodyOf(t, r)
		io.WriteString(w, "{}")
	})
	b := Batch{Metrics: []Metric{{"a/b", 1.5, 1700000000000, -3}}, Tags: []Tag{{"k", "<v>"}}}
	check.Must(t, c.LogBatch(context.Background(), "r1", b))
	want := map[string]any{"run_id": "r1",
		"metrics": []any{map[string]any{"key": "a/b", "value": 1.5, "timestamp": 1700000000000.0, "step": -3.0}},
		"tags":    []any{map[string]any{"key": "k", "value": "<v>"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the body is %v, want %v", got, want)
	}
}

func TestLogBatch_RefusesBeforeSending(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was requested, want no request", r.URL) })
	ctx := context.Background()
	if err := c.LogBatch(ctx, "r", Batch{}); err != nil {
		t.Error("LogBatch of an empty batch, want no error:", err)
	}
	for name, b := range map[string]Batch{
		"metrics": {Metrics: points(1001)},
		"tags":    {Tags: tags(101, 1)},
		"items":   {Metrics: points(950), Tags: tags(51, 1)},
		"bytes":   {Tags: tags(100, 9000)},
	} {
		if err := c.LogBatch(ctx, "r", b); !errors.Is(err, errTooLarge) || Temporary(err) {
			t.Errorf("LogBatch with %s: %v, want a permanent errTooLarge", name, err)
		}
	}
	for name, m := range map[string]Metric{"NaN": {Key: "a", Value: math.NaN()},
		"Inf":                {Key: "a", Value: math.Inf(-1)},
		"negative timestamp": {Key: "a", Timestamp: -1}, "invalid key": {Key: "a//b"}} {
		if err := c.LogBatch(ctx, "r", Batch{Metrics: []Metric{m}}); err == nil || errors.Is(err, errTooLarge) {
			t.Errorf("LogBatch with an invalid metric (%s): %v, want an error other than errTooLarge", name, err)
		}
	}
	wantText(t, c.LogBatch(ctx, "r", Batch{Tags: []Tag{{"a:b", ""}}}), "tag 0", `"a:b"`)
	wantText(t, c.SetTag(ctx, "r", Tag{"", "x"}), "empty")
}

// points returns n metrics. tags returns n tags with values of size bytes.
func points(n int) []Metric {
	all := make([]Metric, n)
	for i := range all {
		all[i] = Metric{Key: "k", Step: int64(i)}
	}
	return all
}

func tags(n, size int) []Tag {
	all := make([]Tag, n)
	for i := range all {
		all[i] = Tag{"k", strings.Repeat("v", size)}
	}
	return all
}

func TestSplit_StaysWithinTheLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ metrics, tags, want int }{
		{0, 0, 0}, {1, 0, 1}, {0, 1, 1}, {999, 0, 1}, {1000, 0, 1}, {1001, 0, 2}, {0, 100, 1}, {0, 101, 2},
		{900, 100, 1}, {901, 100, 2}, {950, 51, 2}, {2500, 250, 5},
	} {
		got := Split(Batch{points(tt.metrics), tags(tt.tags, 1)})
		if len(got) != tt.want {
			t.Errorf("%d metrics and %d tags: %d batches, want %d", tt.metrics, tt.tags, len(got), tt.want)
		}
	}
	if got := Split(Batch{Tags: append(tags(1, 1_000_000), tags(1, 1)...)}); len(got) != 2 {
		t.Errorf("one tag too large for any batch, and another: %d batches, want 2", len(got))
	}
}

// FuzzSplit checks the contract of Split with the limits of LogBatch.
func FuzzSplit(f *testing.F) {
	f.Add(uint64(1), uint16(2500), uint16(250), uint16(8000))
	f.Add(uint64(2), uint16(5), uint16(1000), uint16(60000))
	f.Fuzz(func(t *testing.T, seed uint64, metrics, tagCount, size uint16) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		letters := []string{"v", "<", "é", "\x00", "\u2028", "\xff"} // 1 to 6 bytes as JSON
		in := Batch{Tags: make([]Tag, int(tagCount)%400)}
		for i := range int(metrics) % 2600 {
			key := strings.Repeat("é", 1+rnd.IntN(250))
			in.Metrics = append(in.Metrics, Metric{key, math.Float64frombits(rnd.Uint64() &^ (1 << 62)), rnd.Int64(), int64(i)})
		}
		for i := range in.Tags {
			in.Tags[i] = Tag{"k", strings.Repeat(letters[rnd.IntN(len(letters))], rnd.IntN(int(size)%12000+1))}
		}
		c := check.Value(New(Config{URI: "http://h"}))(t)
		c.transport = roundTrip(func(*http.Request) (*http.Response, error) { return response(200, "{}"), nil })
		var out Batch
		for i, b := range Split(in) {
			if len(b.Metrics)+len(b.Tags) == 0 {
				t.Errorf("batch %d is empty", i)
			}
			if err := c.LogBatch(context.Background(), strings.Repeat("r", 256), b); err != nil {
				t.Errorf("LogBatch of batch %d: %v", i, err)
			}
			out.Metrics, out.Tags = append(out.Metrics, b.Metrics...), append(out.Tags, b.Tags...)
		}
		if len(in.Tags) == 0 {
			in.Tags = nil
		}
		if !reflect.DeepEqual(in, out) {
			t.Error("the items in the batches differ from the input, or are in a different order")
		}
	})
}
