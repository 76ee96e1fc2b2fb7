package reporter_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// spoken returns the input of a job that keeps two CPUs busy for 20 s and sends lines with marks before the first
// sample.
func spoken(lines ...marks.Line) reporter.Input {
	in := reportertest.Input(0, 0, 0, "")
	rec := reportertest.Recording(0)
	rec.Account.Source, rec.Account.CPUSeconds = "tree", 40
	rec.AddMarks(marks.Update{Lines: lines})
	for i := range 20 {
		s := reportertest.Sample(i, 20)
		s.JobCPUSeconds = 2
		rec.Add(&s)
	}
	in.Recording = rec
	end := reporter.Time{Time: reportertest.RunStart.Add(19500 * time.Millisecond)}
	in.Run.End, in.Job.End, in.Run.WallSeconds = end, end, 19.5
	in.Job.UserSeconds, in.Job.SystemSeconds = 30, 10

	return in
}

func begin(name string) marks.Line {
	return marks.Line{IsPhase: true, Text: name, At: float64(reportertest.RunStart.Unix())}
}

// A phase that is still active at the end of the job ends with the job. A phase of the whole run has the metrics of the
// run, except metrics that are exact only at the job's end.
func TestNew_PhaseOfWholeRunHasMetricsOfRun(t *testing.T) {
	n := reporter.New(spoken(begin("all"))).Nodes["0"]
	p := n.Phase("all")
	if p == nil || p.Seconds != 19.5 || p.Count != 1 || !slices.Equal(p.Spans, []reporter.PhaseSpan{{p.Start, 19.5}}) {
		t.Fatalf("phase %+v, want one span of 19.5 s", p)
	}

	compared := 0
	for name, v := range p.Metrics {
		whole, ok := n.Metrics[name]
		switch {
		case !ok:
			t.Errorf("the phase has %s, which the run lacks", name)
		case name == reporter.MetricJobMemoryPeak: // the run's value includes the largest process
		case math.Abs(v-whole) > 1e-9*max(1, math.Abs(whole)):
			t.Errorf("%s is %v in the phase, want %v as in the run", name, v, whole)
		default:
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("%d metrics of the phase equal the run's, want at least 20: %v", compared, p.Metrics.Names())
	}
	for _, name := range []string{"wall_seconds", "node_cpu_hours", "boot_total_disk_io_read_mb", "psi_io_full_avg_pct"} {
		if _, ok := p.Metrics[name]; ok {
			t.Errorf("the phase has %s, which has no meaning for a phase", name)
		}
	}
}

func TestNew_SortsMarksByTime(t *testing.T) {
	start := float64(reportertest.RunStart.Unix())
	n := reporter.New(spoken(marks.Line{Text: "later", At: start + 5}, marks.Line{Text: "first", At: start + 1})).Nodes["0"]
	if want := []reporter.Mark{{Timestamp: start + 1, Text: "first"}, {Timestamp: start + 5, Text: "later"}}; !slices.Equal(n.Marks, want) {
		t.Errorf("marks %v, want %v", n.Marks, want)
	}
	if n.Phases != nil {
		t.Errorf("phases %v, want none", n.Phases)
	}
}

func TestNew_GivesReasonForLostMarks(t *testing.T) {
	in := spoken()
	in.Recording.AddMarks(marks.Update{Why: "read marks x: it has shrunk", Dropped: marks.Dropped{Marks: 3, PhaseSpans: 1, Bytes: 12345}})
	got := lackOf(reporter.New(in).Nodes["0"].Missing, "marks")
	want := []reporter.Missing{
		{What: "marks", Code: reporter.MarksUnread, Why: "read marks x: it has shrunk"},
		{What: "marks", Code: reporter.MarksBeyond, Count: 4,
			Why: "beyond the limit: 3 marks, 1 beginning of a phase, 12345 bytes of the file"},
	}
	check.Equal(t, got, want, "missing")
}

func TestNode_PhaseAt(t *testing.T) {
	n := reportertest.AddMarks(reportertest.ShortJob()).Nodes["0"]
	start := float64(reportertest.RunStart.Unix())
	for at, want := range map[float64]string{
		-1: "", 0: "load", 9.999: "load", 10: "train <b>&\x1b[31m", 30: "save", 34: "save", 35: "train <b>&\x1b[31m",
		54.999: "train <b>&\x1b[31m", 55: "",
	} {
		check.Equal(t, n.PhaseAt(start+at), want, "PhaseAt(start + %v s)", at)
	}
}

// The phase at the newest sample is the active phase, although the length of the phase is rounded.
func TestNode_PhaseAtNewestSampleIsActivePhase(t *testing.T) {
	const newest = 1795402537.641
	n := &reporter.Node{
		Phases:   []reporter.Phase{{Name: "load", Spans: []reporter.PhaseSpan{{1795402535.10192, 2.53908}}}},
		Envelope: reporter.Envelope{"timestamp": {Max: []float64{newest - 1, newest}}},
	}
	if st := n.Phases[0].Spans[0]; st[0]+st[1] >= newest {
		t.Fatal("the rounded end of the phase is not before the newest sample, so the test checks nothing")
	}
	if got := n.CurrentPhase(); got != "load" || n.PhaseAt(newest) != got {
		t.Errorf("CurrentPhase() = %q, PhaseAt(newest) = %q, want load", got, n.PhaseAt(newest))
	}
}

// Phases and marks are unchanged after encoding and decoding and after merging, and the file conforms to the schema.
func TestDecode_KeepsPhasesAndMarks(t *testing.T) {
	r := reportertest.AddMarks(reporter.New(spoken(begin("all"))))
	data := encodedReport(t, r)
	reportertest.Validate(t, data)
	back, other := readBack(t, data), reporter.New(reportertest.Input(1, 5, 0, ""))
	merged := mustMerge(t, sources(other, back)...)
	for what, n := range map[string]*reporter.Node{"read": back.Nodes["0"], "merged": merged.Nodes["0"]} {
		if d := cmp.Diff(r.Nodes["0"].Phases, n.Phases) + cmp.Diff(r.Nodes["0"].Marks, n.Marks); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	if bytes.Contains(encodedReport(t, other), []byte(`"phases"`)) || bytes.Contains(encodedReport(t, other), []byte(`"marks"`)) {
		t.Error("a report without phases has the key phases or marks")
	}
}

func TestPhaseMetric_AcceptsOnlyNamesOfPhaseNumbers(t *testing.T) {
	for name, want := range map[string]collector.Aggregation{
		"phase.train.seconds": collector.Max, "phase.a.b.count": collector.Max,
		"phase.a.b.job_cpu_seconds": collector.Sum, "phase.x.cpu_avg_utilization_pct": collector.Mean,
		"phase.x.gpu_3_avg_utilization_pct": collector.Mean, "phase.x.total_net_ib_recv_mb": collector.Sum,
		"phase.train.wall_seconds": 0, "phase.train.": 0, "phase.seconds": 0, "phase..seconds": 0, "train.seconds": 0,
		"phase.x.gpu_3_energy_joules": 0, "phase.x.node_cpu_hours": 0,
	} {
		m, ok := reporter.PhaseMetric(name)
		if ok != (want != 0) || m.Aggregation != want || ok && (m.Name != name || m.Unit == "") {
			t.Errorf("PhaseMetric(%q) = %+v, %v, want the aggregation %v (0 = no metric), the name and a unit", name, m,
				ok, want)
		}
	}
}

// PhaseNumbers lists each number that a phase can have, and Values returns it.
func TestPhase_ValuesMatchPhaseNumbers(t *testing.T) {
	n := reporter.New(spoken(begin("a.b"))).Nodes["0"]
	for name, want := range n.PhaseValues() {
		phase, number, _ := reporter.SplitPhaseMetricName(name)
		if v, ok := n.Phase(phase).Values()[number]; v != want || !ok {
			t.Errorf("%s: Values has %v, %v; want %v", name, v, ok, want)
		}
		if !slices.Contains(reporter.PhaseNumbers(), number) {
			t.Errorf("PhaseNumbers lacks %s", number)
		}
	}
	if n.Phase("a") != nil {
		t.Error("Phase(\"a\") is not nil, but only the phase a.b exists")
	}
}

// The CSV has the phase of each sample, and no phase column if the report has no phases.
func TestWriteCSV_HasPhaseOfEachSample(t *testing.T) {
	r := reporter.New(reportertest.Input(0, 60, 0, ""))
	plain := csvRows(t, r)
	for i, row := range csvRows(t, reportertest.AddMarks(r)) {
		want := "phase"
		if i > 0 { // sample i is at i seconds
			want = strings.ReplaceAll(r.Nodes["0"].PhaseAt(float64(reportertest.RunStart.Unix())+float64(i)), "\x1b", `\x1b`)
		}
		check.Equal(t, row[len(row)-1], want, "row %d: phase", i)
		check.Equal(t, row[:len(row)-1], plain[i], "row %d: other columns, as without phases", i)
	}
}
