package terminal

import (
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// busyScreen returns a run with a job of four operations, one with a hostile name, and one that has not begun.
func busyScreen() (*reporter.Report, Options) {
	r, o := screenReport(1), screenOptions(1, 79, 30)
	n := r.Nodes["0"]
	line := func(key string, newest float64) {
		b := reporter.Band{}
		for i := range n.Samples.Len() {
			v := 1e6 // in earlier samples
			if i == n.Samples.Len()-1 {
				v = newest
			}
			b.Min, b.Mean, b.Max = append(b.Min, 0), append(b.Mean, v), append(b.Max, 1e9)
		}
		n.Envelope[key] = b
	}
	line("op:store.get:per_second", 120)
	line("op:store.get:time_ms", 0.6249)
	line("op:idle:per_second", 0)
	line("op:idle:time_ms", math.NaN())
	line("op:GET /\x1b[31m<b>\u202e:per_second", 1234.6)
	line("op:GET /\x1b[31m<b>\u202e:time_ms", 31.26)
	line("op:db.query:per_second", 0.001)
	line("op:db.query:time_ms", 1500)
	line("op:later:per_second", math.NaN())
	line("counter:rows:per_second", 5000)
	return r, o
}

func TestScreen_ShowsBusiestOperations(t *testing.T) {
	r, o := busyScreen()
	screen := strings.Join(Screen(r, o), "\n")
	const want = `

OPERATIONS  1,234.6/s   31.3 ms each  GET /\x1b[31m<b>\u202e
                120/s    625 µs each  store.get
              0.001/s     1.5 s each  db.query

perfagent  `
	if !strings.Contains(screen, want) {
		t.Errorf("screen lacks %s:\n%s", want, screen)
	}
	const words = `operations: GET /\x1b[31m<b>\u202e 1,234.6/s 31.3 ms each, store.get 120/s 625 µs each, db.query 0.001/s 1.5 s each`
	if line := Line(r, o); !strings.Contains(line, words) {
		t.Errorf("line lacks %s:\n%s", words, line)
	}

	n := r.Nodes["0"]
	delete(n.Envelope, "op:db.query:per_second")
	if screen := strings.Join(Screen(r, o), "\n"); !strings.Contains(screen, "0/s         – each  idle\n") {
		t.Errorf("screen lacks the idle operation with 0/s and no time:\n%s", screen)
	}
	live := o.Live["0"]
	live.Ended = true
	o.Live["0"] = live
	if all := strings.Join(Screen(r, o), "\n") + Line(r, o); strings.Contains(all, "store.get") {
		t.Errorf("the run has ended, but screen or line show its newest operations:\n%s", all)
	}
}

// A screen without operations does not mention them, and one with little room keeps the node's CPU and memory.
func TestScreen_KeepsCPUAndMemoryNextToOperations(t *testing.T) {
	if screen := strings.Join(Screen(screenReport(1), screenOptions(1, 79, 30)), "\n"); strings.Contains(strings.ToLower(screen), "operations") {
		t.Errorf("screen of a job without operations mentions them:\n%s", screen)
	}

	r, o := busyScreen()
	for height := 3; height < 30; height++ {
		for _, width := range []int{11, 24, 40, 79, 200} {
			o.Width, o.Height = width, height
			lines := Screen(r, o)
			if len(lines) > height {
				t.Errorf("screen of %d × %d has %d lines, want at most %d", width, height, len(lines), height)
			}
			for _, l := range lines {
				if text.Width(l) > width || strings.ContainsAny(l, "\x1b\u202e") {
					t.Errorf("screen of %d × %d: line of %d cells %q, want at most %d without control characters",
						width, height, text.Width(l), l, width)
				}
			}
			all := strings.Join(lines, "\n")
			if height == 10 && width == 79 && (!strings.Contains(all, "memory ") || !strings.Contains(all, "OPERATIONS  ")) {
				t.Errorf("screen of %d × %d: want the rows memory and operations:\n%s", width, height, all)
			}
		}
	}
}

// Lists of a damaged report have any length and any number.
func TestScreen_HostileOperationsFit(t *testing.T) {
	r, o := busyScreen()
	n := r.Nodes["0"]
	n.Envelope["op:store.get:time_ms"] = reporter.Band{}
	n.Envelope["op:store.get:per_second"] = reporter.Band{Mean: reporter.Numbers{math.Inf(1)}}
	n.Envelope["op:idle:per_second"] = reporter.Band{Mean: reporter.Numbers{-1e308}}
	n.Envelope["op:"+strings.Repeat("日", 1<<16)+":per_second"] = reporter.Band{Mean: reporter.Numbers{1e308}}
	for _, l := range Screen(r, o) {
		if text.Width(l) > o.Width {
			t.Errorf("line of %d cells, want at most %d: %q", text.Width(l), o.Width, l)
		}
	}
	if line := Line(r, o); len(line) > 4000 {
		t.Errorf("Line has %d bytes, want at most 4000", len(line))
	}
}
