package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// addMarks sends marks from the job of a Recording before some of its samples.
func addMarks(rec *collector.Recording, i int) {
	news := marks.Update{}
	at := rec.NewestTimestamp()
	switch i % 7 {
	case 1:
		news.Lines = append(news.Lines, marks.Line{Text: fmt.Sprintf("mark %d \x1b[31m\u202e", i), At: at - 0.25})
	case 2, 5:
		news.Lines = append(news.Lines, marks.Line{IsPhase: true, Text: fmt.Sprintf("phase %d", i%3), At: at + 0.125})
	case 6:
		news.Lines = append(news.Lines, marks.Line{IsPhase: true, At: at + 0.5})
		news.Dropped.Marks = 2
	}
	if i > 40 {
		news.Dropped.Bytes, news.Why = int64(i/10), "read marks x: it has shrunk"
	}
	rec.AddMarks(news)
}

// The journal of a killed agent contains all marks and the exact numbers of the phases, whether they are read from
// lines or from a snapshot.
func TestJournal_KeepsMarksAndPhases(t *testing.T) {
	for _, snapshotAt := range []int{-1, 0, 9, 50, 99} {
		t.Run(fmt.Sprint(snapshotAt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keepsMarks(t, 100, snapshotAt) })
		})
	}
}

func keepsMarks(t *testing.T, n, snapshotAt int) {
	t.Helper()
	s := reportertest.NewStream(7)
	rec := s.Recording(10)
	_, got := journaled(t, s, rec, n, func(i int, j *Journal) {
		addMarks(rec, i)
		if i == snapshotAt {
			j.wantSnapshot.Store(true)
		}
	})
	want := diagnosis.New(diagnosis.Input{Input: reporter.Input{Run: got.Run, Node: 3, Recording: rec}})
	a, b := want.Nodes["3"], got.Nodes["3"]
	if len(a.Marks) == 0 || len(a.Phases) != 3 || len(a.Phases[0].Metrics) < 10 {
		t.Fatalf("the recording has %d marks, want some; phases %+v, want 3 with 10 metrics", len(a.Marks), a.Phases)
	}
	same(t, "marks from the journal", b.Marks, a.Marks)
	same(t, "phases from the journal", b.Phases, a.Phases)
	same(t, "missing marks", about("marks", b.Missing), about("marks", a.Missing))
	same(t, "kinds of missing marks", len(about("marks", a.Missing)), 2)
}

// about returns the Missing with the given What.
func about(what string, list []reporter.Missing) []reporter.Missing {
	return slices.DeleteFunc(slices.Clone(list), func(m reporter.Missing) bool { return m.What != what })
}

// A job without marks adds nothing to the lines.
func TestJournal_OmitsMarksOfJobWithoutMarks(t *testing.T) {
	s := reportertest.NewStream(7)
	rec := s.Recording(10)
	sample := s.Next(rec)
	sample.JobCPUSeconds = 1
	j := &Journal{}
	if line := j.line(sample, rec); bytes.Contains(line, []byte("said")) || bytes.Contains(line, []byte("job_cpu_s")) {
		t.Errorf("the line is %s, want no marks and no CPU time of the job", line)
	}
}

// A line with damaged marks is skipped, and hides no other line.
func TestParse_SkipsOnlyTheLineWithDamagedMarks(t *testing.T) {
	s := reportertest.NewStream(7)
	rec := s.Recording(10)
	data := written(t, head(s, 10), func(j *Journal) {
		for i := range 3 {
			if i == 1 {
				rec.AddMarks(marks.Update{Lines: []marks.Line{{IsPhase: true, Text: "load", At: rec.NewestTimestamp() + 0.125}}})
			}
			j.Observe(s.Next(rec), rec)
		}
	})
	for _, bad := range []string{`,"ts":7`, `,"ts":9999999999`, `,"ts":null`, ``} {
		at := bytes.Index(data, []byte(`{"phase":"load"`))
		end := at + bytes.IndexByte(data[at:], '}')
		damaged := string(data[:at]) + `{"phase":"load"` + bad + string(data[end:])
		n := parsed(t, []byte(damaged)).Nodes["3"]
		missing := about("journal", n.Missing)
		if len(missing) == 0 || missing[0].Count != 1 || n.Sampling.Samples != 2 {
			t.Errorf("with %q: %d samples, want 2; missing %v, want one damaged line", bad, n.Sampling.Samples, missing)
		}
	}
}

// A snapshot with the maximum number of marks stays small, and hostile snapshots are refused.
func TestPack_KeepsMarksSmallAndUnchanged(t *testing.T) {
	rec := reportertest.Recording(0)
	news := marks.Update{}
	for i := range marks.MaxMarks {
		text := strings.Repeat(fmt.Sprintf("%d\x01", i*7919), 200)[:marks.MaxText]
		phase := fmt.Sprintf("%d%s", i%collector.MaxPhases, strings.Repeat("p", 190))
		at := rec.NewestTimestamp() + float64(i)/1000
		news.Lines = append(news.Lines, marks.Line{Text: text, At: at}, marks.Line{IsPhase: true, Text: phase, At: at})
	}
	rec.AddMarks(news)
	sample := reportertest.Sample(0, 2)
	rec.Add(&sample)

	packed := check.Value(pack(rec.Marks))(t)
	if len(packed) > 512<<10 {
		t.Errorf("all marks and phases take %d bytes, want at most %d", len(packed), 512<<10)
	}
	back := check.Value(unpack[collector.Marks](packed, maxPackedMarks, "marks"))(t)
	want, _ := json.Marshal(rec.Marks)
	if got, _ := json.Marshal(back); string(got) != string(want) {
		t.Error("the marks differ after packing and unpacking")
	}

	for _, bad := range [][]byte{[]byte("text"), packed[:len(packed)/2]} {
		if _, err := unpack[collector.Marks](bad, maxPackedMarks, "marks"); err == nil {
			t.Errorf("unpack accepted %d damaged bytes, want an error", len(bad))
		}
	}
}
