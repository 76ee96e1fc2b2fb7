package comparer

import (
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

func TestParseGate(t *testing.T) {
	wantGates(t, map[string]string{
		"job_cpu_seconds > +10%":       "job_cpu_seconds > +10%",
		"job_cpu_seconds>+10%":         "job_cpu_seconds > +10%",
		"job_cpu_seconds > -0.5e1%":    "job_cpu_seconds > -5%",
		"wall_seconds > 0.0%":          "wall_seconds > 0%",
		" job_cpu_seconds >=\t-5.5 % ": "job_cpu_seconds >= -5.5%",
		"wall_seconds<0%":              "wall_seconds < 0%",
		"wall_seconds <= 3.5e2":        "wall_seconds <= 350",
		"max_t_mem_percent > 90":       "max_t_mem_percent > 90",
		"max_t_mem_percent > +.5":      "max_t_mem_percent > 0.5",
	}, map[string]string{
		"":                                 "is not METRIC OP VALUE",
		"job_cpu_seconds +10%":             "is not METRIC OP VALUE",
		"job_cpu_seconds = 10%":            "is not METRIC OP VALUE",
		"> 10%":                            `no metric ""`,
		"job_cpu > 10%":                    `no metric "job_cpu"; did you mean job_cpu_seconds?`,
		"job_cpu_seconds wall > 1":         "no metric",
		"boot_total_disk_io_read_mb > 10%": "counts since boot",
		"boot_ > 10%":                      "no metric",
		"max_t_ > 10%":                     "no metric",
		"job_cpu_seconds >":                `"" is not a number`,
		"job_cpu_seconds > %":              `"" is not a number`,
		"job_cpu_seconds > 10 percent":     "is not a number",
		"job_cpu_seconds > 10%%":           "is not a number",
		"max_t_mem_percent > 90%":          "90% has no sign: a change is > +90%, an amount in the metric's unit (percent) is > 90",
		"job_cpu_seconds <= 1e1 %":         "a change is <= +1e1%, an amount in the metric's unit (seconds) is <= 1e1",
		"job_cpu_seconds > NaN":            "is not a number",
		"job_cpu_seconds > +Inf%":          "is not a number",
		"job_cpu_seconds > 0x10":           "is not a number",
		"job_cpu_seconds > 1e999":          "is not a number",
		"job_cpu_seconds > 1_000":          "is not a number",
		"job_cpu_seconds => 10%":           "no metric",
		"job_cpu_seconds >> 10%":           "is not a number",
		"job_cpu_seconds > \x1b[31m":       `\x1b[31m`,
	})
}

// few returns the values of a side with one run, and many returns values of six runs with negligible noise.
func few(v float64) []float64 { return []float64{v} }

func many(v float64) []float64 {
	return []float64{v, v * 1.001, v * 1.002, v * 0.999, v * 0.998, v}
}

func TestCheckGate(t *testing.T) {
	wide := []float64{1, 2, 3, 4, 5, 6}
	for _, test := range []struct {
		name, gate string
		a, b       []float64
		fired      string
		reason     string
	}{
		{"change beyond the bound", "job_cpu_seconds > +10%", many(1), many(1.2), "true", "+20.00 %, from 1 to 1.2 s (p 0.00"},
		{"change within the bound", "job_cpu_seconds > +30%", many(1), many(1.2), "false", "+20.00 %"},
		{"change in the other direction", "job_cpu_seconds > +10%", many(1.2), many(1), "false", "-16.67 %"},
		{"decrease beyond the bound", "job_cpu_seconds < -10%", many(1.2), many(1), "true", "-16.67 %"},
		{"insignificant change beyond the bound", "job_cpu_seconds > +10%", wide, []float64{1, 2, 4, 4, 5, 6}, "false", "no significant change (p 0."},
		{"change equal to an exclusive bound", "job_cpu_seconds > +10%", few(1), few(1.1), "false", "+10.00 %"},
		{"change equal to an inclusive bound", "job_cpu_seconds >= +10%", few(1), few(1.1), "true", "+10.00 %"},
		{"too few runs, beyond the bound", "job_cpu_seconds > +10%", few(1), few(1.2), "true", "too few runs to know the noise (A 1, B 1), so by the plain difference"},
		{"too few runs, within the bound", "job_cpu_seconds > +10%", few(1), few(1.05), "false", "too few runs"},
		{"too few runs, no change", "job_cpu_seconds > 0%", few(1), few(1), "false", "0 %, from 1 to 1 s; too few"},
		{"from 0", "job_cpu_seconds > +10%", many(0), many(5), "true", "from 0 to 5 s (p"},
		{"from 0, too few runs", "job_cpu_seconds > +1000000%", few(0), few(5), "true", "from 0 to 5 s; too few"},
		{"both 0", "job_cpu_seconds > 0%", many(0), many(0), "false", "no significant change"},
		{"both 0, too few runs", "job_cpu_seconds >= 0%", few(0), few(0), "true", "0 %"},
		{"to 0", "job_cpu_seconds <= -100%", many(5), many(0), "true", "-100.00 %"},
		{"no change is 0 %", "job_cpu_seconds > -5%", many(1), many(1), "true", "no significant change"},
		{"amount beyond the bound", "job_cpu_seconds > 1.1", many(1.2), many(1.2), "true", "B has 1.2 s"},
		{"amount within the bound", "job_cpu_seconds > 1.2", many(1.3), few(1.2), "false", "B has 1.2 s"},
		{"amount, A absent", "job_cpu_seconds > 1", nil, few(1.2), "true", "B has 1.2 s"},
		{"change, A absent", "job_cpu_seconds > +1%", nil, few(1.2), "null", "A does not have the metric: not in the report"},
		{"amount, B absent", "job_cpu_seconds > 1", few(1), nil, "null", "B does not have the metric: not in the report"},
		{"change, B absent", "job_cpu_seconds > +1%", few(1), nil, "null", "B does not have the metric: not in the report"},
	} {
		t.Run(test.name, func(t *testing.T) {
			side := func(name string, values []float64) Side {
				if values == nil {
					return sideOf(name, "max_t_mem_percent", 5)
				}
				return sideOf(name, cpuMetric, values...)
			}
			c := Compare(side("a", test.a), side("b", test.b))
			wantGate(t, c, gateOf(t, test.gate), test.fired, test.reason)
			check.Equal(t, len(c.Gates), 1, "number of gates")
			check.Equal(t, c.Gates[0].Gate, test.gate, "text of the gate")
		})
	}
}

// ParseGate either rejects a text, or returns a gate with a String that parses to the same gate.
func FuzzParseGate(f *testing.F) {
	for _, seed := range []string{"job_cpu_seconds > +10%", "wall_seconds<=-5.25 %", "max_t_mem_percent >= 9e1", "a<b>c", "job_cpu_seconds >\x00", ">=%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGate(text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
				t.Errorf("error has a control character: %q", err)
			}
			return
		}
		again, err := ParseGate(g.String())
		if err != nil || again != g {
			t.Errorf("ParseGate(%q) = %+v, but its text %q is parsed as %+v (error %v)", text, g, g.String(), again,
				err)
		}
		if math.IsNaN(g.Value) || math.IsInf(g.Value, 0) || strings.TrimSpace(text[:len(text)-1]) == "" {
			t.Errorf("ParseGate(%q) = %+v, want an error", text, g)
		}
		if g.holds(math.Inf(1)) == g.holds(math.Inf(-1)) {
			t.Errorf("gate %q holds for both or neither of +Inf and -Inf, want exactly one", text)
		}
	})
}
