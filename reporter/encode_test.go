package reporter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/reporter"
)

// checkEncoding compares the output of Encode and EncodeTo with the report's JSON on one line.
func checkEncoding(t *testing.T, r *reporter.Report) {
	t.Helper()
	file := encodedReport(t, r)
	var stream, line bytes.Buffer
	check.Must(t, reporter.EncodeTo(&stream, r))
	check.Equal(t, stream.String(), string(file), "output of EncodeTo, as of Encode")

	counted := *r
	if counted.Run.Nodes = 0; len(r.Nodes) > 1 {
		counted.Run.Nodes = len(r.Nodes)
	}
	want, err := text.JSON(counted)
	check.Must(t, errors.Join(err, json.Compact(&line, file)))
	check.Equal(t, line.String(), string(want), "JSON without white space")
	checkLines(t, file)
}

// checkLines checks that each member down to the fourth level is on a separate line.
func checkLines(t *testing.T, file []byte) {
	t.Helper()
	for i, line := range strings.Split(string(file), "\n") {
		switch indent := len(line) - len(strings.TrimLeft(line, " ")); {
		case strings.TrimRight(line, " ") != line:
			t.Errorf("line %d of the report ends in a space", i+1)
		case indent%2 != 0 || indent > 8:
			t.Errorf("line %d of the report is indented by %d, want an even number up to 8", i+1, indent)
		}
	}
}

// The report of an attached job has no values that only wait4(2) returns.
func TestEncode_AttachedJobHasNoRusage(t *testing.T) {
	t.Parallel()
	keys := func(j reporter.Job) []string {
		data, err := json.Marshal(j)
		check.Must(t, err)
		var members map[string]any
		check.Must(t, json.Unmarshal(data, &members))
		return slices.Sorted(maps.Keys(members))
	}

	waited := reporter.Job{PID: 7, UserSeconds: 1, Orphans: 2, MaxRSSMB: 3}
	attached := waited
	attached.Attached = true
	ours := []string{
		"block_read_mb", "block_write_mb", "involuntary_context_switches", "major_faults", "max_rss_mb", "minor_faults",
		"orphans", "system_seconds", "user_seconds", "voluntary_context_switches",
	}
	rest := []string{"cpu_seconds", "end", "pid", "start"}
	check.Equal(t, keys(waited), slices.Sorted(slices.Values(slices.Concat(ours, rest))), "members of a job with rusage")
	check.Equal(t, keys(attached), slices.Sorted(slices.Values(append(rest, "attached"))), "members of an attached job")
}

func TestEncode_ChangesOnlyWhiteSpace(t *testing.T) {
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
	r.Run.Gather = &reporter.GatherResult{Metrics: &opstats.StoreMetrics{Times: times}}
	checkEncoding(t, r)
	for _, r := range []*reporter.Report{
		{}, {Nodes: map[string]*reporter.Node{"1": nil, "0": n}}, reportertest.KilledRank(), reportertest.Ranks(2, 3, 20),
		reportertest.AddOperations(reportertest.ThreeNodes()), reportertest.AddProcesses(reportertest.ShortJob()),
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

// NaN is encoded as null if the value may be absent, and is an error otherwise.
func TestEncode_NaNIsNullOrAnError(t *testing.T) {
	t.Parallel()
	gpu := reporter.GPU{Idle: &reporter.GPUIdle{JobCPUs: series.Unknown()}}
	r := &reporter.Report{Nodes: map[string]*reporter.Node{"0": {GPUs: []reporter.GPU{gpu}}}}
	if data, err := reporter.Encode(r); err != nil || !strings.Contains(string(data), `"job_cpus":null`) {
		t.Errorf("encoded %s, want job_cpus null; error %v", data, err)
	}
	r.Run.WallSeconds = math.NaN()
	if _, err := reporter.Encode(r); err == nil {
		t.Error("no error from Encode for a run of NaN seconds")
	}
	var out bytes.Buffer
	if err := reporter.EncodeTo(&out, r); err == nil || out.Len() > 0 {
		t.Errorf("EncodeTo of a run of NaN seconds: error %v, want an error; wrote %s, want nothing", err, out.Bytes())
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
					check.Must(b, encode())
				}
			})
		}
	}
}
