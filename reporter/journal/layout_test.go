package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// journalOf returns a journal of n samples, with a snapshot in the middle if snapshot is set, and its Recording.
func journalOf(t *testing.T, n int, snapshot bool) ([]byte, *collector.Recording) {
	t.Helper()
	s, snapshotAt := reportertest.NewStream(uint64(n)), -1
	if snapshot {
		snapshotAt = n / 2
	}
	return journalFrom(t, s, s, n, snapshotAt)
}

// A layout puts the values of a line into the collector's order. It ignores unknown and repeated columns, and marks
// missing columns as absent.
func TestLayout_ArrangesValuesOfLine(t *testing.T) {
	t.Parallel()
	l := newLayout([]string{"power_watts", "mem_percent", "cpu_pct_per_cpu_avg", "mem_percent"},
		[]string{"tape_io_read_mb", "net_io_ext_recv_mb", "disk_io_read_mb", "disk_io_read_mb"})
	line := sampleLine{Values: reporter.Numbers{7, 25, 50, 8}, Weights: map[int]float64{0: 3, 1: 0.5}}
	rec := collector.NewRecording(host.Instant{}, time.Second, 10)
	check.Must(t, errors.Join(l.sample(&line), l.boot(rec, []float64{8, 300, 1000, 9})))
	values := slices.Repeat(reporter.Numbers{math.NaN()}, l.width())
	values[collector.CPUAvg], values[collector.MemPercent] = 50, 25
	boot := slices.Repeat([]float64{math.NaN()}, len(collector.Counters()))
	boot[slices.Index(collector.Counters(), collector.NetExtRecv)] = 300
	boot[slices.Index(collector.Counters(), collector.DiskRead)] = 1000
	want := []any{values, map[int]float64{int(collector.MemPercent): 0.5}, boot}
	got := []any{line.Values, line.Weights, rec.BootMB}
	same(t, "values, weights and counters since boot", got, want, cmpopts.EquateNaNs())
}

// Lines with a different number of columns than the head are counted as damaged.
func TestParse_CountsLinesOfWrongWidthAsDamaged(t *testing.T) {
	t.Parallel()
	data, _ := journalOf(t, 20, false)
	lines := strings.SplitAfter(string(data), "\n")
	wide := strings.Replace(lines[3], `"sample":[`, `"sample":[1,`, 1)
	more := strings.Replace(lines[3], `"boot_mb":[`, `"boot_mb":[1,`, 1)
	n := parsed(t, []byte(strings.Join(slices.Insert(slices.Clone(lines), 3, wide, more), ""))).Nodes["3"]
	missing := about("journal", n.Missing)
	if n.Sampling.Samples != 20 || len(missing) == 0 || !strings.Contains(missing[0].Why, "damaged lines, left out: 2") {
		t.Errorf("%d samples, want 20; missing %v, want 2 damaged lines", n.Sampling.Samples, n.Missing)
	}

	columns := regexp.MustCompile(`"columns":\[[^]]*\]`)
	for _, list := range []string{`[]`, `["timestamp"]`, `["timestamp","timestamp"]`} {
		parsed(t, columns.ReplaceAll(data, []byte(`"columns":`+list)))
	}
	_, err := Parse(columns.ReplaceAll(data, []byte(`"columns":null`)))
	if err == nil || !strings.Contains(err.Error(), "names no columns") {
		t.Errorf("head without columns: error %v, want \"names no columns\"", err)
	}
}

// Journals left by killed agents can be read: with a few samples, with a snapshot, after SIGTERM, with GPUs, and with
// phases and operations. The metrics computed at the time of each recording are stored next to it.
func TestParse_ReadsJournalsOfKilledRuns(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) != 5 {
		t.Fatalf("journals %q, want 5; error %v", paths, err)
	}
	for _, path := range paths {
		r := read(t, path)
		want := make(map[string]reporter.Values)
		check.Must(t, json.Unmarshal(check.Value(os.ReadFile(strings.TrimSuffix(path, "l")))(t), &want))
		n := r.Nodes["0"]
		delete(n.Metrics, "gpu_0_energy_joules") // the recording version did not estimate it
		maps.Copy(n.Metrics, n.PhaseValues())
		maps.Copy(n.Metrics, n.OperationValues())
		same(t, path+": metrics", n.Metrics, want["0"])
		same(t, path+": damage reported in the journal", fmt.Sprint(about("journal", n.Missing)), "[]")

		name := filepath.Base(path)
		if verdict := r.Run.Verdict.Text; strings.Contains(verdict, "SIGTERM from") != (name == "term.jsonl") {
			t.Errorf("%s: verdict %q, want SIGTERM in term.jsonl only", path, verdict)
		}
		isSnapshot, hasGPU := bytes.Contains(check.Value(os.ReadFile(path))(t), []byte(`{"snapshot":{`)), len(n.GPUs) == 1
		if isSnapshot != strings.Contains(name, "snapshot") || hasGPU != strings.Contains(name, "gpus") {
			t.Errorf("%s: snapshot %v, GPU %v, want them as the file's name indicates", path, isSnapshot, hasGPU)
		}
	}
}
