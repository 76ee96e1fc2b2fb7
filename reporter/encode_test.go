package reporter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/plainjson"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/store"
)

// plain returns a struct as package json writes it without its MarshalJSON.
func plain(t *testing.T, v any) []byte {
	t.Helper()
	from := reflect.ValueOf(v)
	data, err := plainjson.Marshal(from.Convert(reflect.StructOf(reflect.VisibleFields(from.Type()))).Interface())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkEncoding compares the file of a report with what package json makes of it.
func checkEncoding(t *testing.T, r *reporter.Report) {
	t.Helper()
	got, err := reporter.Encode(r)
	if err != nil {
		t.Fatal(err)
	}

	counted := *r
	if counted.Run.Nodes = 0; len(r.Nodes) > 1 {
		counted.Run.Nodes = len(r.Nodes)
	}
	compact, err := plainjson.Marshal(counted)
	if err != nil {
		t.Fatal(err)
	}
	want := plainjson.Writer{Depth: 4}
	want.Raw(compact)
	if d := cmp.Diff(string(want.Out)+"\n", string(got)); d != "" {
		t.Fatal(d)
	}

	var stream bytes.Buffer
	if err := reporter.EncodeTo(&stream, r); err != nil || !bytes.Equal(stream.Bytes(), got) {
		t.Fatalf("EncodeTo does not write what Encode returns (%v)", err)
	}
	for i, line := range strings.Split(string(got), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in a space", i+1)
		}
	}
}

// Whatever a report has, its file is what package json makes of it.
func TestEncode_OfRandomReports(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		var r reporter.Report
		reportertest.Fill(rand.New(rand.NewPCG(seed, 1)), &r)
		checkEncoding(t, &r)
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// What package json writes by a method of ours is its fields all the same.
func TestEncode_OfTypesWithMarshalJSON(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		var (
			job    reporter.Job
			gather reporter.Gather
			state  reporter.StoreState
			ranks  reporter.Ranks
		)
		for _, v := range []any{&job, &gather, &state, &ranks} {
			reportertest.Fill(random, v)
		}
		job.Attached = false
		for _, v := range []struct {
			it   json.Marshaler
			want []byte
		}{{job, plain(t, job)}, {&gather, plain(t, gather)}, {&state, plain(t, state)}} {
			if got, err := v.it.MarshalJSON(); err != nil || !bytes.Equal(got, v.want) {
				t.Fatalf("seed %d: %T is %s, want %s (%v)", seed, v.it, got, v.want, err)
			}
		}
		want, err := plainjson.Marshal(map[string]*reporter.Rank(ranks))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ranks.MarshalJSON(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("seed %d: ranks are %s, want %s (%v)", seed, got, want, err)
		}
	}
}

// Of a job that perfagent was attached to, nothing is written that only wait4(2) knows.
func TestEncode_OfAnAttachedJob(t *testing.T) {
	t.Parallel()
	var job reporter.Job
	reportertest.Fill(rand.New(rand.NewPCG(1, 3)), &job)
	job.Attached = true
	var got, want map[string]any
	data, err := job.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for into, text := range map[*map[string]any][]byte{&got: data, &want: plain(t, job)} {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"user_seconds", "system_seconds", "max_rss_mb", "block_read_mb", "block_write_mb", "minor_faults", "major_faults",
		"voluntary_context_switches", "involuntary_context_switches", "orphans",
	} {
		if _, ok := want[name]; !ok {
			t.Errorf("no job has %s", name)
		}
		delete(want, name)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEncode_OfRealReports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*/testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	journals, err := filepath.Glob("journal/testdata/*.json*")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, path := range append(files, journals...) {
		r, err := reportfile.Read(path, 0)
		if err != nil {
			continue // no report
		}
		read++
		checkEncoding(t, r)
	}
	if read < 5 {
		t.Errorf("only %d reports were read", read)
	}
}

func TestEncode_OfEveryFeature(t *testing.T) {
	t.Parallel()
	s := reportertest.NewStream(9)
	rec := s.Recording(10)
	for range 25 {
		s.Next(rec)
	}
	r := reporter.New(reporter.Input{
		Run:       reporter.Run{ID: "r", Command: []string{"a\n\"b\\", "", "<é>"}, Tags: map[string]string{}},
		Recording: rec, Missing: []reporter.Missing{{What: "x", Why: "y"}},
	})
	n := r.Nodes["0"]
	n.Push = &reporter.Push{Store: &reporter.StoreState{State: reporter.PushPending, URI: "redis://h"}}
	times := map[string]opstats.TimeStats{"store.put": {Count: 1, Avg: 1e-9, Max: 2}}
	r.Run.Gather = &reporter.Gather{Metrics: &store.Metrics{Times: times}}
	checkEncoding(t, r)
	for _, r := range []*reporter.Report{
		{}, {Nodes: map[string]*reporter.Node{"1": nil, "0": n}}, reportertest.KilledRank(), reportertest.Ranks(2, 3, 20),
		reportertest.Work(reportertest.ThreeNodes()), reportertest.Processes(reportertest.ShortJob()),
		reportertest.Large(0, 3, 50), reportertest.Large(1, 1, 2000),
	} {
		checkEncoding(t, r)
	}
	for _, all := range []map[string]*reporter.Report{
		reportertest.Golden(), reportertest.JobReports(), reportertest.HostileReports("<\xff\u2028&"),
	} {
		for _, r := range all {
			checkEncoding(t, r)
		}
	}
}

// What JSON has no word for is an error, or null where it may be absent.
func TestEncode_OfNaN(t *testing.T) {
	t.Parallel()
	gpu := reporter.GPU{Idle: &reporter.GPUIdle{JobCPUs: series.Unknown()}}
	r := &reporter.Report{Nodes: map[string]*reporter.Node{"0": {GPUs: []reporter.GPU{gpu}}}}
	if data, err := reporter.Encode(r); err != nil || !strings.Contains(string(data), `"job_cpus":null`) {
		t.Errorf("%s, %v", data, err)
	}
	r.Run.WallSeconds = math.NaN()
	if _, err := reporter.Encode(r); err == nil {
		t.Error("it is written")
	}
	var out bytes.Buffer
	if err := reporter.EncodeTo(&out, r); err == nil || out.Len() > 0 {
		t.Errorf("%v, %s", err, out.Bytes())
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, samples := range []int{1, 1000} {
		s := reportertest.NewWideStream(1, 1<<20, 0)
		rec := s.Recording(1000)
		for range samples {
			s.Next(rec)
		}
		r := reporter.New(reporter.Input{Run: reporter.Run{ID: "r", Command: []string{"true"}}, Recording: rec})
		for name, encode := range map[string]func() error{
			"bytes":  func() error { _, err := reporter.Encode(r); return err },
			"stream": func() error { return reporter.EncodeTo(io.Discard, r) },
		} {
			b.Run(fmt.Sprintf("%d/%s", samples, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := encode(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
