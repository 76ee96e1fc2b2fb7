package terminal

import (
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// busyScreen returns a run of a job with four operations. One has a hostile name, and one has not begun.
func busyScreen() (*reporter.Report, Options) {
	r, o := screenReport(1), screenOptions(1, 79, 30)
	n := r.Nodes["0"]
	line := func(key string, newest float64) {
		b := reporter.Band{}
		for i := range n.Samples.Len() {
			v := 1e6 // the value of earlier samples
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
	const want = `

OPERATIONS  1,234.6/s   31.3 ms each  GET /\x1b[31m<b>\u202e
                120/s    625 µs each  store.get
              0.001/s     1.5 s each  db.query

perfagent  `
	check.Contains(t, "screen", screenText(r, o), want)
	const words = `operations: GET /\x1b[31m<b>\u202e 1,234.6/s 31.3 ms each, store.get 120/s 625 µs each, db.query 0.001/s 1.5 s each`
	check.Contains(t, "line", Line(r, o), words)

	n := r.Nodes["0"]
	delete(n.Envelope, "op:db.query:per_second")
	check.Contains(t, "screen with an idle operation without a time", screenText(r, o), "0/s         – each  idle\n")
	live := o.Live["0"]
	live.Ended = true
	o.Live["0"] = live
	wantNone(t, "screen or line of an ended run", screenText(r, o)+Line(r, o), "store.get")
}

// The screen of a job without operations does not mention them. A small screen keeps the node's CPU and memory.
func TestScreen_KeepsCPUAndMemoryNextToOperations(t *testing.T) {
	wantNone(t, "screen without operations", strings.ToLower(screenText(screenReport(1), screenOptions(1, 79, 30))),
		"operations")

	r, o := busyScreen()
	for height := 3; height < 30; height++ {
		for _, width := range []int{11, 24, 40, 79, 200} {
			o.Width, o.Height = width, height
			wantFits(t, Screen(r, o), width, height)
			if height == 10 && width == 79 {
				check.Contains(t, "small screen", screenText(r, o), "memory ", "OPERATIONS  ")
			}
		}
	}
}

// The lists of a damaged report may have any length and contain any number.
func TestScreen_FitsWithHostileOperations(t *testing.T) {
	r, o := busyScreen()
	n := r.Nodes["0"]
	n.Envelope["op:store.get:time_ms"] = reporter.Band{}
	n.Envelope["op:store.get:per_second"] = reporter.Band{Mean: reporter.Numbers{math.Inf(1)}}
	n.Envelope["op:idle:per_second"] = reporter.Band{Mean: reporter.Numbers{-1e308}}
	n.Envelope["op:"+strings.Repeat("日", 1<<16)+":per_second"] = reporter.Band{Mean: reporter.Numbers{1e308}}
	wantFits(t, Screen(r, o), o.Width, o.Height)
	if line := Line(r, o); len(line) > 4000 {
		t.Errorf("Line has %d bytes, want at most 4000", len(line))
	}
}
