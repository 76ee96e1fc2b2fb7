package exporter

import (
	"flag"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// update rewrites the golden files: go test ./agent/exporter -update.
var update = flag.Bool("update", false, "rewrite the golden files")

// feed is a run that is sampled by hand in a test. The values depend on the number of the sample.
type feed struct {
	*Exporter
	rec     *collector.Recording
	reports int // number of reports made; read it only when no request is active
}

// listenFeed returns a feed with the Exporter of a run without samples.
func listenFeed(interval time.Duration) *feed {
	start := host.Instant{Wall: time.Unix(1_767_225_600, 0), Mono: time.Hour, Boot: time.Hour}
	f := &feed{rec: collector.NewRecording(start, interval, 1000)}
	f.rec.Host = host.Info{CPUs: 4, MemoryMB: 8000}
	f.Exporter = New(Options{RunID: "r-1", Node: 3, Version: "v1.2.3", Interval: interval,
		Agent: func() reporter.Agent { return reporter.Agent{CPUSeconds: 0.0125, MaxRSSMB: 14.5} },
		Report: func(rec *collector.Recording) *reporter.Report {
			f.reports++
			return diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: reporter.Run{ID: "r-1", Incomplete: "still running"}, Node: 3, Recording: rec}})
		}})
	s := f.server // its limits also apply to the clients of a test, however slow the machine is
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout = time.Hour, time.Hour, time.Hour
	return f
}

// sampledFeed returns a feed after n samples.
func sampledFeed(interval time.Duration, n int) *feed {
	f := listenFeed(interval)
	for range n {
		f.sample()
	}
	return f
}

// sample takes the next sample, without the columns in lacks.
func (f *feed) sample(lacks ...collector.Column) {
	s := sampleOf(f.rec.Samples + 1)
	for _, c := range lacks {
		s.Values[c] = math.NaN()
	}
	f.rec.Add(&s)
	passed := time.Duration(f.rec.Samples) * f.rec.Interval
	f.rec.End = host.Instant{Wall: f.rec.Start.Wall.Add(passed), Mono: time.Hour + passed, Boot: time.Hour + passed}
	for m := range f.rec.CPUSeconds {
		f.rec.CPUSeconds[m] = float64(int(f.rec.Samples)*(m+1)) + 0.25
	}
	f.Observe(&s, f.rec)
}

// sampleOf returns the n-th sample, with a different value in each column.
func sampleOf(n int64) (s collector.Sample) {
	for c := range s.Values {
		s.Values[c], s.Weights[c] = float64(n)*10+float64(c)/4, 1
	}
	s.Values[collector.Timestamp] = 1_767_225_600 + float64(n)
	return s
}

// get sends a GET request to the handler, without a network.
func (f *feed) get(path string, header ...string) *httptest.ResponseRecorder {
	return ask(f.Exporter, http.MethodGet, path, header...)
}

// ask sends a request with header lines "Name: value".
func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:9100"+path, nil)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// listenServe serves an Exporter on a real address until the test ends.
func listenServe(t testing.TB, e *Exporter) (address string) {
	t.Helper()
	l := check.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan error, 1)
	go func() { done <- e.Serve(l, "") }()
	t.Cleanup(func() {
		e.Close()
		if err := <-done; err != http.ErrServerClosed {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

var (
	seriesLine = regexp.MustCompile(`^([a-z0-9_]+)\{run_id="((?:[^"\\\n]|\\["\\n])*)",node="(\d+)"((?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*)\} (\S+)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-z0-9_]+) (counter|gauge|summary)$`)
	helpLine   = regexp.MustCompile(`^# HELP ([a-z0-9_]+) (.+)$`)
)

// belongs reports whether a line is part of a metric of the given kind.
func belongs(line, metric, kind string) bool {
	return line == metric || kind == summary && (line == metric+"_sum" || line == metric+"_count")
}

// values returns the current values of all series.
func (f *feed) values(t testing.TB) map[string]float64 {
	t.Helper()
	return parsed(t, string(f.metrics()))
}

// wantValues checks the values of some series.
func wantValues(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, want := range want {
		if v, there := got[name]; !there || math.Abs(v-want) > 1e-9*min(1, math.Abs(want)) {
			t.Errorf("%s is %v (present: %v), want %v", name, v, there, want)
		}
	}
}

// wantNoLines checks that no series has one of the names.
func wantNoLines(t *testing.T, got map[string]float64, names ...string) {
	t.Helper()
	for _, name := range names {
		if v, there := got[name]; there {
			t.Errorf("%s is %v, want no line", name, v)
		}
	}
}

// parsed reads the text format strictly: HELP, TYPE, then the series of a metric, each once, and nothing else. Series
// are named by metric and additional labels: "name{mode=idle}".
func parsed(t testing.TB, text string) map[string]float64 {
	t.Helper()
	out, kinds := make(map[string]float64), make(map[string]string)
	helped, current := "", ""
	if !strings.HasSuffix(text, "\n") {
		t.Errorf("the last line has no newline: %q", text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := helpLine.FindStringSubmatch(line); m != nil {
			helped = m[1]
		} else if m := typeLine.FindStringSubmatch(line); m != nil {
			if current = m[1]; current != helped || kinds[current] != "" || (m[2] == "counter") != strings.HasSuffix(current, "_total") {
				t.Errorf("line %q follows the help of %q, want one type after the help of the same metric, _total for counters", line, helped)
			}
			kinds[current] = m[2]
		} else if m := seriesLine.FindStringSubmatch(line); m == nil || !belongs(m[1], current, kinds[current]) {
			t.Errorf("line %q among the lines of %q, want a series of that metric", line, current)
		} else {
			v, err := strconv.ParseFloat(m[5], 64)
			key := m[1]
			if m[4] != "" {
				key += "{" + strings.ReplaceAll(m[4][1:], `"`, "") + "}"
			}
			if _, twice := out[key]; twice || err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && current != "perfagent_job_value" {
				t.Errorf("line %q: parse error %v, repeated %v; want a finite value, once", line, err, twice)
			}
			out[key] = v
		}
	}
	return out
}
