//go:build e2e

package floor

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// floorFlag makes the test measure and write the whole table. make floor sets it.
var floorFlag = flag.Bool("floor", false, "measure beside other tools, and write the table of docs/dev/performance.md")

// The costs of a run and of a sample when this was written, as ratios. TestFloor_Table fails if a cost exceeds its
// ratio by more than slack, and TestFloor_Short fails if the cost has doubled.
const (
	slack = 1.3

	runToTrue     = 12.0 // CPU time of "perfagent run true" relative to true
	sampleAt1Hz   = 4.0  // CPU time relative to the C loop
	sampleAt10Hz  = 3.0
	sampleAt100Hz = 3.0
	sampleOfMany  = 1.5 // CPU time relative to the C loop, which reads the stat file of each process
)

// The cost of a run or a sample must not double.
func TestFloor_Short(t *testing.T) {
	if *floorFlag {
		t.Skip("TestFloor_Table measures the whole table")
	}
	testenv.SkipIfShort(t, "half a minute, to measure what a run and a sample cost")

	ours, job, sleep := perfagent(t), []string{"/bin/true"}, []string{"sleep", "600"}
	within(t, "CPU of a run of true, by that of true", 2*runToTrue, func() float64 {
		runs := inTurns(t, 25, job, ours.around(job, 1))
		return runs[1].leastCPU / runs[0].leastCPU
	})
	for hz, limit := range map[int]float64{1: sampleAt1Hz, 10: sampleAt10Hz} {
		within(t, fmt.Sprintf("CPU of sampling at %d Hz, by that of the C loop", hz), 2*limit, func() float64 {
			costs := steady(t, 8*time.Second, []string{loop(t), strconv.Itoa(hz)}, ours.around(sleep, hz))
			return costs[1] / costs[0]
		})
	}
	within(t, "CPU of sampling 300 sleeping processes at 1 Hz, by that of the C loop", 2*sampleOfMany, func() float64 {
		costs := steady(t, 8*time.Second, []string{loop(t), "1", "300"}, ours.around(sleepers(300), 1))
		return costs[1] / costs[0]
	})
}

// sleepers returns a job of n sleeping processes.
func sleepers(n int) []string {
	return []string{"sh", "-c", fmt.Sprintf("i=1; while [ $i -lt %d ]; do sleep 1200 & i=$((i+1)); done; exec sleep 1200", n)}
}

// within fails the test if a ratio is above a limit in all of several tries. The machine may be busy in some of them.
func within(t *testing.T, what string, limit float64, ratio func() float64) {
	t.Helper()
	const tries = 10
	for range tries {
		r := ratio()
		if t.Logf("%s: %.1f, limit %.1f", what, r, limit); r <= limit {
			return
		}
	}
	t.Errorf("%s: above %.1f in all %d tries", what, limit, tries)
}

// TestFloor_Table measures perfagent and other tools, and writes the table.
func TestFloor_Table(t *testing.T) {
	if !*floorFlag {
		t.Skip("needs ten minutes and other tools: make floor")
	}
	tools := append(others(t), perfagent(t))
	table := &table{tools: tools}
	measureStart(t, table)
	for _, hz := range []int{1, 10, 100} {
		measureSampling(t, table, hz)
	}
	for _, n := range []int{300, 1000} {
		measureMany(t, table, n)
	}
	measureMemory(t, table)

	for _, row := range table.rows {
		row.judge(t)
	}
	writeTable(t, table.String())
}

// A table has a column for each tool, and a column for the C loop.
type table struct {
	tools []tool
	rows  []*row
}

// A row has one figure for each tool. The table shows the target, and judge checks the limit.
type row struct {
	name   string
	format string
	values map[string]float64 // values by tool
	goals  []limit
	held   []limit
}

// A limit is the maximum of perfagent's figure: a multiple of another tool's figure, or of 1.
type limit struct {
	of    string // the other tool; "" means 1
	times float64
}

// Names of tools in limits.
const (
	cLoop  = "C loop"
	gnu    = "GNU time"
	denet  = "denet 0.10.3"
	psutil = "perf.py's method"
)

func (tb *table) add(name, format string, goals, held []limit) *row {
	r := &row{name, format, make(map[string]float64), goals, held}
	tb.rows = append(tb.rows, r)
	return r
}

// measureStart measures the overhead of the tools on an empty job.
func measureStart(t *testing.T, tb *table) {
	job := []string{"/bin/true"}
	commands := [][]string{job}
	var quick []tool
	for _, peer := range tb.tools {
		if !peer.slow {
			quick = append(quick, peer)
			commands = append(commands, peer.around(job, 1))
		}
	}

	costs := inTurns(t, 100, commands...)
	goals, held := []limit{{denet, 0.5}, {gnu, 2}}, []limit{{denet, 0.77}}
	wall := tb.add("added to `true`, median of 100, ms", "%.1f", goals, held)
	least := tb.add("the same, least of 100, ms", "%.1f", goals, held)
	cpu := tb.add("CPU time used by a run of `true`, including `true` itself, median of 100, ms", "%.1f", []limit{{"", 10}}, []limit{{denet, 0.8}})
	for i, peer := range quick {
		c := costs[i+1]
		wall.values[peer.name], least.values[peer.name] = c.wall-costs[0].wall, c.leastWall-costs[0].leastWall
		cpu.values[peer.name] = c.cpu
	}
}

// measureSampling measures the CPU time of the tools during a sleeping job.
func measureSampling(t *testing.T, tb *table, hz int) {
	const window = 30 * time.Second
	sleep := []string{"sleep", "120"}
	commands, names := [][]string{{loop(t), strconv.Itoa(hz)}}, []string{cLoop}
	var others [][]string
	var theirs []string
	for _, peer := range tb.tools {
		switch {
		case peer.name == "perfagent" || peer.name == psutil:
			commands, names = append(commands, peer.around(sleep, hz)), append(names, peer.name)
		case peer.name != gnu && hz == 1:
			others, theirs = append(others, peer.around(sleep, hz)), append(theirs, peer.name)
		}
	}

	goals := []limit{{cLoop, 3}}
	if hz == 1 {
		goals = []limit{{cLoop, 2}, {psutil, 0.4}}
	}
	held := []limit{{cLoop, map[int]float64{1: sampleAt1Hz, 10: sampleAt10Hz, 100: sampleAt100Hz}[hz]}}
	r := tb.add(fmt.Sprintf("CPU time used by sampling at %d Hz, ms/s", hz), "%.2f", goals, held)
	for i, c := range steady(t, window, commands...) {
		r.values[names[i]] = c
	}
	for i, c := range steady(t, window, others...) { // separately, because these tools would evict the caches of the rest
		r.values[theirs[i]] = c
	}
}

// measureMany measures perfagent with a job of n sleeping processes.
func measureMany(t *testing.T, tb *table, n int) {
	limits := []limit{{cLoop, sampleOfMany}}
	r := tb.add(fmt.Sprintf("CPU time used by sampling %d sleeping processes at 1 Hz, ms/s", n), "%.2f", limits, limits)
	costs := steady(t, 30*time.Second, []string{loop(t), "1", strconv.Itoa(n)}, perfagent(t).around(sleepers(n), 1))
	r.values[cLoop], r.values["perfagent"] = costs[0], costs[1]
}

// measureMemory measures the peak resident memory at 1 Hz, and for many samples including the report and the page.
func measureMemory(t *testing.T, tb *table) {
	short := tb.add("peak resident memory, 20 s at 1 Hz, MiB", "%.1f", []limit{{"", 12}}, []limit{{"", 17}})
	for _, peer := range tb.tools {
		if peer.name == gnu {
			short.values[peer.name] = peak(t, "/bin/true")
			continue
		}
		short.values[peer.name] = peak(t, peer.around([]string{"sleep", "20"}, 1)...)
	}
	long := tb.add("the same, 4,500 samples at 100 Hz, MiB", "%.1f", []limit{{"", 12}}, []limit{{"", 20}})
	long.values["perfagent"] = peak(t, perfagent(t).around([]string{"sleep", "45"}, 100)...)
}

// judge fails the test if perfagent's figure exceeds a limit by more than slack.
func (r *row) judge(t *testing.T) {
	t.Helper()
	for _, l := range r.held {
		if most := r.most(l); r.values["perfagent"] > slack*most {
			t.Errorf("%s: %s, want at most %s, or %.1f times that on a noisy machine",
				r.name, r.text("perfagent"), fmt.Sprintf(r.format, most), slack)
		}
	}
}

// most returns the value of a limit. It returns +Inf if the other tool is not installed.
func (r *row) most(l limit) float64 {
	if l.of == "" {
		return l.times
	}
	other, measured := r.values[l.of]
	if !measured {
		return math.Inf(1)
	}
	return l.times * other
}

func (r *row) text(tool string) string {
	v, measured := r.values[tool]
	if !measured {
		return "–"
	}
	return fmt.Sprintf(r.format, v)
}

// String returns the table as Markdown.
func (tb *table) String() string {
	names := []string{cLoop}
	for _, peer := range tb.tools {
		names = append(names, peer.name)
	}

	var out strings.Builder
	fmt.Fprintf(&out, "| | %s | goal | held at |\n|---|%s---|---|\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, r := range tb.rows {
		fmt.Fprintf(&out, "| %s |", r.name)
		for _, name := range names {
			fmt.Fprintf(&out, " %s |", r.text(name))
		}
		fmt.Fprintf(&out, " %s | %s |\n", limits(r.goals), limits(r.held))
	}
	return out.String()
}

func limits(all []limit) string {
	var texts []string
	for _, l := range all {
		text := "≤ " + format(l.times)
		if l.of != "" {
			text += " × " + l.of
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func format(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// writeTable writes the table into the documentation.
func writeTable(t *testing.T, text string) {
	t.Helper()
	const begin, end = "<!-- floor:begin -->\n", "<!-- floor:end -->"
	path := testenv.Repository(t, "docs/dev/performance.md")
	before, rest, found := strings.Cut(clitest.Read(t, path), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no markers for the table", path)
	}
	clitest.Write(t, path, before+begin+text+end+after, 0o644)
	t.Log("\n" + text)
}
