package collector

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/check"
)

// began is the start of these tests' runs, in seconds since 1970.
const began = 1_700_000_000.0

// startedRecording returns a Recording that starts at began.
func startedRecording() *Recording {
	return NewRecording(host.Instant{Wall: time.Unix(began, 0)}, time.Second, 1000)
}

// sampleAt returns a sample at the time at, the given seconds after the last one. busy is the number of CPUs that the
// job kept busy in between, memory its memory in MiB at the end, and written its total in MiB so far.
func sampleAt(at, seconds, busy, memory, written float64) *Sample {
	var s Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), seconds
	}
	s.Values[Timestamp] = began + at
	s.Values[CPUAvg], s.Values[JobCPU], s.JobCPUSeconds = busy*10, busy, busy*seconds
	s.Values[JobMemory], s.Values[JobWrite] = memory, written
	return &s
}

func phaseLine(name string, at float64) marks.Line {
	return marks.Line{IsPhase: true, Text: name, At: began + at}
}

// said adds lines to a Recording. The times of the lines are in seconds since began.
func said(rec *Recording, lines ...marks.Line) { rec.AddMarks(marks.Update{Lines: lines}) }

// near reports whether two numbers are equal up to the rounding of times since 1970.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-5*max(1, math.Abs(b)) }

func TestAlignToTimeAxis_ReplacesImpossibleTimes(t *testing.T) {
	in := span{from: 100, to: 101}
	for _, test := range []struct {
		name string
		line marks.Line
		step float64
		want float64
	}{
		{"no time", marks.Line{At: math.NaN()}, 0, 101},
		{"within the span", marks.Line{At: 100.25}, 0, 100.25},
		{"earlier in the run", marks.Line{At: 93.5}, 0, 93.5},
		{"before the run", marks.Line{At: 12}, 0, 101},
		{"in milliseconds", marks.Line{At: 100250}, 0, 101},
		{"after the clock was stepped", marks.Line{At: 3700.25}, 3600, 100.25},

		{"phase without a time", marks.Line{IsPhase: true, At: math.NaN()}, 0, 101},
		{"phase within the span", marks.Line{IsPhase: true, At: 100.25}, 0, 100.25},
		{"phase before the span", marks.Line{IsPhase: true, At: 93.5}, 0, 100},
		{"phase after the span", marks.Line{IsPhase: true, At: 1e300}, 0, 101},
		{"phase after the clock was stepped", marks.Line{IsPhase: true, At: -3499.5}, -3600, 100.5},
	} {
		in.step = test.step
		lines := []marks.Line{test.line}
		same(t, fmt.Sprintf("%s: aligned time", test.name), alignToTimeAxis(lines, 90, in)[0].At, test.want)
		check.True(t, lines[0].At == test.line.At || math.IsNaN(test.line.At),
			"%s: time of the argument changed to %v, want %v", test.name, lines[0].At, test.line.At)
	}
}

// A phase over the whole run has the same numbers as the run, bit for bit.
func TestRecording_PhaseOfWholeRunEqualsRun(t *testing.T) {
	rec := startedRecording()
	said(rec, phaseLine("all", 0))
	cpu, at := 0.0, 0.0
	for i := range 200 {
		seconds := 0.125 * float64(1+i%5)
		at += seconds
		s := sampleAt(at, seconds, 1.37+math.Sin(float64(i)), 100+float64(i%17), float64(i)*0.37)
		s.Values[MemPercent], s.Values[CPUIowait] = float64(i%90), 3+math.Cos(float64(i))
		cpu += s.JobCPUSeconds
		rec.Add(s)
	}

	p := rec.Marks.Phases[0]
	check.True(t, near(p.CPUSeconds, cpu), "CPUSeconds of the phase = %v, want %v", p.CPUSeconds, cpu)
	for c := range rec.NumColumns() {
		whole, part := rec.Summaries[c].Stat(), p.Columns[c]
		switch {
		case !c.InPhases() || whole.Count == 0:
		case c.Info().Kind == Counter:
			if !near(part.Max, whole.Max) {
				t.Errorf("%s: %v in the phase, want %v as in the run", c.Key(), part.Max, whole.Max)
			}
		case part != whole:
			t.Errorf("%s: %+v in the phase, want %+v as in the run", c.Key(), part, whole)
		}
	}
}

// The increase of a counter while it was unreadable is divided between the phases of that time.
func TestRecording_DividesUnreadCounterBetweenPhases(t *testing.T) {
	rec := startedRecording()
	said(rec, phaseLine("load", 0))
	rec.Add(sampleAt(1, 1, 1, 10, 8))
	rec.Add(sampleAt(2, 1, 1, 10, math.NaN()))
	said(rec, phaseLine("train", 3))
	rec.Add(sampleAt(3, 1, 1, 10, math.NaN()))
	read := sampleAt(4, 1, 1, 10, 38)
	read.Values[JobWriteRate], read.Weights[JobWriteRate] = 10, 3
	rec.Add(read)

	load, train := rec.Marks.Phases[0], rec.Marks.Phases[1]
	check.True(t, near(load.Columns[JobWrite].Max, 8+20) && near(train.Columns[JobWrite].Max, 10),
		"load wrote %v MiB and train %v MiB, want 28 and 10", load.Columns[JobWrite].Max, train.Columns[JobWrite].Max)
}

// A stale memory value is not attributed to the current phase.
func TestRecording_CountsStaleMemoryForNoPhase(t *testing.T) {
	rec := startedRecording()
	said(rec, phaseLine("load", 0))
	rec.Add(sampleAt(1, 1, 1, 900, 10))
	said(rec, phaseLine("train", 1))
	held := sampleAt(2, 1, 1, 900, 10)
	held.MemoryStale = true
	rec.Add(held)
	rec.Add(sampleAt(3, 1, 1, 50, 10))

	load, train := rec.Marks.Phases[0], rec.Marks.Phases[1]
	same(t, "memory peaks", []float64{load.Columns[JobMemory].Max, train.Columns[JobMemory].Max}, []float64{900, 50})
}

// Values measured over time are divided between phases by time. Values of one moment count for the phase of that
// moment.
func TestRecording_DividesSampleAtPhaseBoundaryByTime(t *testing.T) {
	rec := startedRecording()
	said(rec, phaseLine("load", 0))
	rec.Add(sampleAt(1, 1, 1, 100, 10))
	said(rec, phaseLine("train", 1.25))
	rec.Add(sampleAt(2, 1, 4, 900, 18))
	said(rec, phaseLine("", 2.5))
	rec.Add(sampleAt(3, 1, 2, 50, 20))
	rec.Add(sampleAt(4, 1, 3, 60, 30))

	load, train := rec.Marks.Phases[0], rec.Marks.Phases[1]
	for _, test := range []struct {
		what      string
		got, want float64
	}{
		{"load: CPU", load.CPUSeconds, 1 + 0.25*4},
		{"load: written", load.Columns[JobWrite].Max, 10 + 0.25*8},
		{"load: mean CPUs", load.Columns[JobCPU].Mean(), 2 / 1.25},
		{"load: memory", load.Columns[JobMemory].Max, 100},
		{"train: CPU", train.CPUSeconds, 0.75*4 + 0.5*2},
		{"train: written", train.Columns[JobWrite].Max, 0.75*8 + 0.5*2},
		{"train: mean CPUs", train.Columns[JobCPU].Mean(), 4 / 1.25},
		{"train: memory", train.Columns[JobMemory].Max, 900},
	} {
		check.True(t, near(test.got, test.want), "%s: %v, want %v", test.what, test.got, test.want)
	}

	want := []PhaseSpan{{0, began, began + 1.25}, {1, began + 1.25, began + 2.5}}
	diff := cmp.Diff(want, rec.Marks.PhaseSpans)
	check.True(t, diff == "" && !rec.Marks.InPhase, "InPhase %v, want false; spans (-want +got):\n%s", rec.Marks.InPhase, diff)
}

// The values of all phases add up to the values of the run, for any number of phases in a sample and any length of
// windows.
func TestRecording_PhasesAddUpToRun(t *testing.T) {
	rec := startedRecording()
	said(rec, phaseLine("p0", 0))
	cpu, cores, written := 0.0, 0.0, 0.0
	for i := range 100 {
		at := 0.02 * float64(i+1)
		for k := range i % 7 { // several spans in one sample, some of zero length
			said(rec, phaseLine(fmt.Sprintf("p%d", (i+k)%5), at-0.02+0.005*float64(k/2)))
		}

		s := sampleAt(at, 0.02, float64(i%3), 1, float64(i*i))
		if s.Values[JobCPU] = math.NaN(); i%3 == 2 { // a window of three samples
			s.Values[JobCPU], s.Weights[JobCPU] = float64(i), 0.06
			cores += 0.06 * float64(i)
		}
		cpu, written = cpu+s.JobCPUSeconds, float64(i*i)
		rec.Add(s)
	}

	var sum struct{ cpu, cores, written, seconds float64 }
	for _, p := range rec.Marks.Phases {
		sum.cpu += p.CPUSeconds
		sum.cores += p.Columns[JobCPU].Sum
		sum.written += p.Columns[JobWrite].Max
	}
	for _, st := range rec.Marks.PhaseSpans {
		sum.seconds += st.End - st.Start
	}
	check.True(t, near(sum.cpu, cpu) && near(sum.cores, cores) && near(sum.written, written) && near(sum.seconds, 2),
		"sums over all phases = %+v; want %v, %v, %v, 2 as in the run", sum, cpu, cores, written)
}

func TestRecording_DropsMarksBeyondLimits(t *testing.T) {
	rec := startedRecording()
	var lines []marks.Line
	for i := range 300 {
		lines = append(lines, phaseLine(fmt.Sprint("p", i), 0.001*float64(i)), marks.Line{Text: "m", At: began})
	}
	for range 5 {
		said(rec, lines...)
	}

	m := rec.Marks
	same(t, "phases, marks, spans", []int{len(m.Phases), len(m.List), len(m.PhaseSpans)},
		[]int{MaxPhases, marks.MaxMarks, marks.MaxPhaseSpans})
	same(t, "dropped", m.Dropped, marks.Dropped{Marks: 500, PhaseSpans: 500})
	check.True(t, !m.InPhase, "InPhase = true, want false: a phase beyond the limits ends the previous phase")
	must(t, m.check())
}

// A Recording without marks has nil Marks, and its samples need no allocations for them.
func TestRecording_WithoutMarksAllocatesNothing(t *testing.T) {
	rec := startedRecording()
	rec.AddMarks(marks.Update{})
	s := sampleAt(1, 1, 1, 1, 1)
	n := testing.AllocsPerRun(10, func() { rec.AddMarks(marks.Update{}); rec.Add(s) })
	check.True(t, n == 0 && rec.Marks == nil, "sample without marks: %v allocations, Marks = %v; want 0, nil", n, rec.Marks)
}

func TestMarks_CloneSharesNothing(t *testing.T) {
	rec := startedRecording()
	said(rec, phaseLine("load", 0), marks.Line{Text: "a", At: began})
	rec.Add(sampleAt(1, 1, 1, 100, 10))
	before := rec.Clone()
	want := check.Value(json.Marshal(before.Marks))(t)

	said(rec, phaseLine("train", 1.5), marks.Line{Text: "b", At: began + 1})
	rec.Add(sampleAt(2, 1, 1, 200, 20))
	if got, err := json.Marshal(before.Marks); err != nil || string(got) != string(want) {
		t.Errorf("clone after a change of the original = %s, error %v; want %s", got, err, want)
	}
}

func TestMarks_JSONRoundTripsAndRejectsImpossibleMarks(t *testing.T) {
	rec := startedRecording()
	said(rec, phaseLine("load", 0), marks.Line{Text: "a", At: began})
	rec.Add(sampleAt(1, 1, 1.0/3, 100, 10))
	said(rec, phaseLine("train", 1.25))
	rec.Add(sampleAt(2, 1, 1.0/7, 900, 18))

	data := check.Value(json.Marshal(rec.Marks))(t)
	var read Marks
	must(t, json.Unmarshal(data, &read))
	again, err := json.Marshal(read)
	check.True(t, err == nil && string(again) == string(data), "after a round trip: %s, error %v; want %s", again, err, data)

	for _, bad := range []string{
		`{"open":true}`,
		`{"stretches":[{"phase":0,"start":1,"end":2}]}`,
		`{"phases":[{"name":"a","begun":2}],"stretches":[{"phase":0,"start":1,"end":2}]}`,
		`{"phases":[{"name":"","begun":1}],"stretches":[{"phase":0,"start":1,"end":2}]}`,
		`{"phases":[{"name":"a","begun":1}],"stretches":[{"phase":0,"start":3,"end":2}]}`,
		`{"phases":[{"name":"a","begun":1,"cpu_seconds":-1}],"stretches":[{"phase":0,"start":1,"end":2}]}`,
		`{"phases":[{"name":"a","begun":1,"columns":{"job_memory_mb":[1,1,5,7,9]}}],` +
			`"stretches":[{"phase":0,"start":1,"end":2}]}`,
	} {
		err := json.Unmarshal([]byte(bad), &read)
		check.True(t, err != nil, "Unmarshal of impossible marks %s: no error, want one", bad)
	}
}

// Phases keep the columns that their metrics are computed from. Rates are computed from totals.
func TestColumn_InPhasesExcludesOnlyTimestampAndEnvelopeColumns(t *testing.T) {
	var without []string
	for c := range NumColumns {
		if !c.InPhases() && !c.Info().EnvelopeOnly {
			without = append(without, c.Key())
		}
	}
	check.True(t, slices.Equal(without, []string{"timestamp"}), "phases lack the columns %q, want only timestamp", without)
}

// BenchmarkRecording_Add compares a sample within a phase with a sample outside of phases.
func BenchmarkRecording_Add(b *testing.B) {
	for _, name := range []string{"no phase", "phase"} {
		b.Run(name, func(b *testing.B) {
			rec := startedRecording()
			if name == "phase" {
				said(rec, phaseLine("train", 0))
			}
			s := sampleAt(0, 1, 1, 1, 1)
			for c := range s.Values {
				if c != int(Timestamp) {
					s.Values[c] = 50
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Values[Timestamp]++
				rec.Add(s)
			}
		})
	}
}
