package comparer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// workRuns returns runs on three nodes with operations and transfers. All times are multiplied by factor.
func workRuns(name string, runs int, factor float64) Side {
	side := Side{Name: name}
	for i := range runs {
		r := reportertest.AddOperations(reportertest.ThreeNodes())
		r.Run.ID = fmt.Sprint(name, i)
		for _, n := range r.Nodes {
			get := n.Operations.Times["store.get"]
			get.Avg, get.P90, get.Total = new(*get.Avg*factor), new(*get.P90*factor), get.Total*factor
			n.Operations.Times["store.get"] = get
			n.Operations.Counters["gunicorn.requests"] /= factor
		}
		side.Reports = append(side.Reports, reporter.SourceReport{Path: fmt.Sprint(name, i, ".json"), Report: r})
	}
	return side
}

func TestCompare_OperationsHaveValuesOrReasons(t *testing.T) {
	a, b := workRuns("a", 1, 1), workRuns("b", 1, 2)
	delete(b.Reports[0].Report.Nodes["1"].Operations.Counters, "rows<b>")
	for _, n := range b.Reports[0].Report.Nodes {
		delete(n.Operations.Gauges, "queue")
	}
	c := Compare(a, b)
	for name, want := range map[string][2]float64{
		"op.store.get.count": {3702, 3702}, "op.store.get.p90_time_ms": {3.3, 6.6}, "op.store.get.max_time_ms": {12, 12},
		"counter.rows<b>": {370368, 246912}, "counter.gunicorn.requests": {6000, 3000}, "value.batch.p90": {60, 60},
		"transfer.nixl.num_successful_transfers": {360, 360}, "transfer.nixl.failed": {6, 6},
	} {
		m, ok := c.Metric(name)
		if !ok || m.A == nil || m.B == nil || text.Number(*m.A) != text.Number(want[0]) || text.Number(*m.B) != text.Number(want[1]) || m.Why != "" {
			t.Errorf("metric %s: found %v, %+v; want medians %v and no reason", name, ok, m, want)
		}
	}
	for name, why := range map[string]string{
		"gauge.queue.mean": "B: the job recorded no such gauge",
		"op.vllm:time_to_first_token_seconds.max_time_ms": "",
	} {
		if m, ok := c.Metric(name); ok != (why != "") || m.Why != why {
			t.Errorf("metric %s: found %v, %+v; want the reason %q", name, ok, m, why)
		}
	}
	if !slices.Contains(c.Notes, "A: 1 of 1 runs lost some of what the job said: counts and sums are lower bounds: a0.json") {
		t.Errorf("notes %q, want one that 1 of 1 runs of A lost some operations", c.Notes)
	}
}

// If the runs of one side did not record operations, that is the reason for a missing value.
func TestCompare_ExplainsOperationsOnOneSideOnly(t *testing.T) {
	a, b := workRuns("a", 1, 1), workRuns("b", 1, 1)
	for _, n := range b.Reports[0].Report.Nodes {
		n.Operations, n.Transfers = nil, nil
	}
	c := Compare(a, b)
	if m, _ := c.Metric("op.store.get.count"); m.A == nil || m.B != nil || m.Why != "B: operations were not recorded" {
		t.Errorf("metric %+v, want only A's median, and the reason that B recorded no operations", m)
	}

	r := a.Reports[0].Report
	for _, n := range r.Nodes {
		get := n.Operations.Times["store.get"]
		get.P90 = nil
		n.Operations.Times["store.get"] = get
	}
	c = Compare(a, workRuns("b", 1, 1))
	if m, _ := c.Metric("op.store.get.p90_time_ms"); m.Why != "A: it is not known for this operation" {
		t.Errorf("metric %+v, want the reason that the p90 of A is not known for this operation", m)
	}
}

func TestParseGate_Operations(t *testing.T) {
	wantGates(t, map[string]string{
		"op.store.get.p90_time_ms > +10%":         "op.store.get.p90_time_ms > +10%",
		"op.store.get.p90_time_ms>+10%":           "op.store.get.p90_time_ms > +10%",
		" counter.rows<-5% ":                      "counter.rows < -5%",
		`op.GET{route="/a>b",x="\"<"}.count >= 7`: `op.GET{route="/a>b",x="\"<"}.count >= 7`,
		`transfer.nixl{engine="0"}.failed > 0`:    `transfer.nixl{engine="0"}.failed > 0`,
		"value.batch.avg <= 3.5":                  "value.batch.avg <= 3.5",
		`gauge.q{a="\\"}.max < 5`:                 `gauge.q{a="\\"}.max < 5`,
		"op.with blanks.count > 1":                "op.with blanks.count > 1",
	}, map[string]string{
		"op.store.get > +10%":           `"op.store.get" is not a number of a series: use op.NAME.count, .avg_time_ms, .p90_time_ms, .max_time_ms`,
		"gauge.queue.last > 1":          "gauge.NAME.mean, .max",
		"transfer.nixl.p90 > 1":         "transfer.NAME.num_successful_transfers, .avg_xfer_time_ms",
		`op.GET{route="/a>b.count > 1`:  "is not METRIC OP VALUE",
		"counter. > 1":                  "there is no metric",
		"wall_second > 1":               `there is no metric "wall_second"; did you mean wall_seconds?`,
		"job_memory_mb > 1":             `there is no metric "job_memory_mb"; did you mean job_peak_memory_mb?`,
		"boot_cpu > 1":                  `there is no metric "boot_cpu"; perfagent metrics lists them all`,
		"counter.rows > 5%":             "5% has no sign: a change is > +5%, an amount is > 5",
		"op.a.avg_time_ms > 5%":         "an amount in the metric's unit (ms) is > 5",
		"operation.store.get.count > 1": "there is no metric",
		"op.\x1b[31m > 1":               `\x1b[31m`,
		"counter.rows<b> > 5":           `"b> > 5" is not a number`,
	})
}

func TestCheckGate_Operations(t *testing.T) {
	few := Compare(workRuns("a", 1, 1), workRuns("b", 1, 2))
	many := Compare(workRuns("a", 4, 1), workRuns("b", 4, 2))
	for gate, want := range map[string][2]string{ // whether it fires, and the reason
		"op.store.get.p90_time_ms > +10%": {"true", "+100.00 %, from 3.3 to 6.6 ms"},
		"op.store.get.count > +10%":       {"false", "from 3,702 to 3,702 times"},
		"counter.gunicorn.requests < -5%": {"true", "-50.00 %, from 6,000 to 3,000"},
		"counter.gunicorn.requests < 2e3": {"false", "B has 3,000"},
		"transfer.nixl.failed > 0":        {"true", "B has 6 times"},
	} {
		for _, c := range []*Comparison{few, many} {
			wantGate(t, c, gateOf(t, gate), want[0], want[1])
		}
	}

	bare := Compare(Side{Reports: []reporter.SourceReport{runAt("a", 0, nil)}}, Side{Reports: []reporter.SourceReport{runAt("b", 0, nil)}})
	other := Gate{Metric: "op.other.count", Op: ">", Value: 1}
	wantGate(t, few, other, "null", "no node of A or B has that operation")
	wantGate(t, bare, other, "null", "operations were not recorded: perfagent run --ops on")
}

// An operation with only failed calls has no time, and an operation with only sums has no p90.
func TestCheckGate_ExplainsMissingNumberOfSeries(t *testing.T) {
	side := workRuns("a", 1, 1)
	side.Reports[0].Report.Nodes["0"].Operations.Times["failed"] = aggregate.Timing{Errors: 3}
	c := Compare(side, side)
	wantGate(t, c, Gate{Metric: "op.failed.p90_time_ms", Op: ">", Value: 1}, "null",
		"that operation has no such number on any node of A or B")
}

// The tables have 40 series and the gated ones. The JSON has all series.
func TestWriteTable_Shows40SeriesAndGatedSeries(t *testing.T) {
	side := workRuns("a", 1, 1)
	n := side.Reports[0].Report.Nodes["0"]
	for i := range 60 {
		n.Operations.Times[fmt.Sprintf("o%02d", i)] = aggregate.Timing{Count: 1, Avg: new(1.0), Total: float64(10_000 + i)}
		n.Operations.Counters[fmt.Sprintf("c%02d", i)] = 1
	}
	c := Compare(side, side)
	c.CheckGate(Gate{Metric: "counter.c59", Op: ">", Value: 9})
	table, markdown := tableOf(t, c, Options{All: true}), markdownOf(t, c, Options{All: true})

	data, err := json.Marshal(c)
	check.Must(t, err)
	check.Contains(t, "table", table,
		"op.o59.count ", "op.o21.avg_time_ms ", "counter.c59 ",
		"the table has 40 of 129 series of operations, counters")
	for _, not := range []string{"op.o20.count", "op.store.get.count", "counter.c58"} {
		if strings.Contains(table, not) || strings.Contains(markdown, not) || !strings.Contains(string(data), `"`+not+`"`) {
			t.Errorf("want %q in the JSON, but in neither table:\n%s\n%s", not, table, markdown)
		}
	}
}

// The golden files have the operations of three nodes, with ten runs per side.
func TestWriteTable_OperationsGolden(t *testing.T) {
	c := Compare(workRuns("a", 10, 1), workRuns("b", 10, 1.25))
	for _, words := range []string{"op.store.get.p90_time_ms > +10%", "counter.gunicorn.requests < -50%"} {
		c.CheckGate(gateOf(t, words))
	}
	table, markdown := tableOf(t, c, Options{All: true}), markdownOf(t, c, Options{All: true})
	golden(t, "work.txt", table)
	golden(t, "work.md", markdown)
}

// The name of a series cannot affect a terminal or a Markdown table.
func TestWriteTable_EscapesHostileSeriesNames(t *testing.T) {
	for _, name := range reportertest.HostileTexts {
		a, b := workRuns("a", 1, 1), workRuns("b", 1, 1)
		reportertest.AddHostileOperations(a.Reports[0].Report, name)
		reportertest.AddHostileOperations(b.Reports[0].Report, name)
		c := Compare(a, b)
		table, markdown := tableOf(t, c, Options{All: true}), markdownOf(t, c, Options{All: true})
		for line := range strings.Lines(table + markdown) {
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%q: line has a control character: %q", name, line)
			}
		}
		for line := range strings.Lines(markdown) {
			if bare := strings.ReplaceAll(line, `\|`, ""); strings.HasPrefix(line, "|") && strings.Count(bare, "|") != 6 {
				t.Errorf("%q: row does not have five cells: %q", name, line)
			}
		}
	}
}
