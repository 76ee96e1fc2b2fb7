package reporter

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// What is null in a report is absent, not 0.
func TestRead_NullIsAbsent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	text := `{"schema":"perfagent.report/1","run":{"id":"r"},"nodes":{"0":{"metrics":{"max_t_mem_percent":null,"node_cpu_hours":2},"samples":[]}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Read(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := r.Nodes["0"]
	if v, ok := n.Metrics["max_t_mem_percent"]; ok || n.Metrics["node_cpu_hours"] != 2 {
		t.Errorf("max_t_mem_percent %v, metrics %v", v, n.Metrics)
	}
	again, err := Encode(r)
	if err != nil || strings.Contains(string(again), "null") {
		t.Errorf("%v: %s", err, again)
	}
}

func TestJournal_SaysWhatIsLost(t *testing.T) {
	s := newStream(1)
	rec := s.recording(100)
	j, err := CreateJournal(t.TempDir(), head(s, 100))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		j.Observe(s.next(rec), rec)
	}
	if err := j.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.SplitAfter(data, []byte{'\n'})
	holed := bytes.Join(append(kept[:5:5], kept[12:]...), nil) // head, 4 samples, 7 lost
	r, err := parseJournal(holed)
	if err != nil {
		t.Fatal(err)
	}
	n := r.Nodes["3"]
	if n.Sampling.Samples != 13 || n.Missing[0] != (Missing{"journal", "samples that are lost: 7"}) {
		t.Errorf("%d samples, missing %v", n.Sampling.Samples, n.Missing)
	}
}

// A step of the wall clock is in no length, also after a merge.
func TestMerge_LeavesTheLengthOfOneRunAlone(t *testing.T) {
	r := nodeReport(0, 10, 0, nil)
	r.Run.End = Time{r.Run.End.Add(time.Hour)}
	if got := mustMerge(t, Source{"a", r}).Run.WallSeconds; got != 10 {
		t.Errorf("wall_seconds %v, want 10", got)
	}
}

func TestWhyAbsent(t *testing.T) {
	start := host.Instant{Wall: testStart}
	rec := collector.NewRecording(start, time.Second, 10)
	var s collector.Sample
	for c := range s.Values {
		s.Values[c] = math.NaN()
	}
	rec.Add(&s)
	rec.End.Mono = 3 * time.Millisecond
	if err := whyAbsent(rec, collector.CPUAvg); !strings.Contains(err.Error(), "3ms is too short") {
		t.Error(err)
	}
	rec.End.Mono = 3 * time.Second
	if err := whyAbsent(rec, collector.CPUAvg); !strings.Contains(err.Error(), "did not advance") {
		t.Error(err)
	}
	rec.Failures = []collector.Failure{{Source: host.SourceCPU, Why: "read /proc/stat: no", Count: 2}}
	if err := whyAbsent(rec, collector.CPUAvg); err.Error() != "read /proc/stat: no" {
		t.Error(err)
	}
}

func TestRead_Errors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir, 0); err == nil || !strings.Contains(err.Error(), dir+": is a directory") {
		t.Error(err)
	}
	if _, err := Read(filepath.Join(dir, "none"), 0); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
