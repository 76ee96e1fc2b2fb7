package collector

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
)

func TestParseRule_AcceptsRules(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]Rule{
		"job_memory_mb > 8000":            {Column: JobMemory, Op: ">", Number: 8000},
		"job_cpu_cores < 0.05 for 30m":    {Column: JobCPU, Op: "<", Number: 0.05, For: 30 * time.Minute},
		" mem_percent>=95.5 ":             {Text: "mem_percent>=95.5", Column: MemPercent, Op: ">=", Number: 95.5},
		"disk_free_mb <= 1e3 for 90":      {Column: DiskFree, Op: "<=", Number: 1000, For: 90 * time.Second},
		"swap_in_mb_per_second > 0 for 0": {Column: SwapInRate, Op: ">"},
		"gpu_3_utilization_pct < 5 for 1h30m": {
			Column: GPUColumn(3, GPUUtilization), Op: "<", Number: 5, For: 90 * time.Minute},
		"job_io_read_mb\t>\t-1 for 1.5": {Column: JobRead, Op: ">", Number: -1, For: 1500 * time.Millisecond},
	} {
		if want.Text == "" {
			want.Text = words
		}
		got, err := ParseRule(words)
		diff := cmp.Diff(want, got)
		check.True(t, err == nil && diff == "", "ParseRule(%q): error %v, rule (-want +got):\n%s", words, err, diff)
	}
}

func TestParseRule_RejectsMalformedRules(t *testing.T) {
	t.Parallel()
	for want, rules := range map[string][]string{
		"KEY OP NUMBER": {"", "job_memory_mb", "> 8000", "job_memory_mb > ", "job memory > 1", "job_memory_mb = 8000",
			"job_memory_mb > 1 2", "job_memory_mb > 1 for", "job_memory_mb > 1 over 3s", "job_memory_mb > 1 for 3s and more",
			"job_memory_mb >> 1", "job_memory_mb => 1"},
		`"8GB" is not a number`: {"job_memory_mb > 8GB"}, `"0x10" is not a number`: {"job_memory_mb > 0x10"},
		`"1_000" is not a number`: {"job_memory_mb > 1_000"}, `"Inf" is not a number`: {"job_memory_mb > Inf"},
		`"NaN" is not a number`: {"job_memory_mb > NaN"}, `"1e999" is not a number`: {"job_memory_mb > 1e999"},
		`"ever" is not a duration`: {"job_memory_mb > 1 for ever"}, `"-3s" is not a duration`: {"job_memory_mb > 1 for -3s"},
		`"1e300" is not a duration`: {"job_memory_mb > 1 for 1e300"},
	} {
		for _, words := range rules {
			_, err := ParseRule(words)
			check.True(t, err != nil && strings.Contains(err.Error(), want), "ParseRule(%q): error %v, want %s", words, err, want)
		}
	}
}

func TestParseRule_SuggestsSimilarKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"job_memroy_mb": "job_memory_mb", "Job_Memory_MB": "job_memory_mb", "job_mem_mb": "job_memory_mb",
		"memory": "job_memory_mb", "job_cpu": "job_cpu_cores", "mem_used_percent": "mem_percent",
		"gpu_util": "gpu_0_utilization_pct", "nonsense": "", "_": "", "x_y_z": "",
	} {
		_, err := ParseRule(key + " > 1")
		var unknown *UnknownKeyError
		check.True(t, errors.As(err, &unknown) && unknown.Key == key && unknown.Nearest == want,
			"key %s: error %v, want an UnknownKeyError with the nearest key %q", key, err, want)
		check.True(t, want == "" || strings.HasSuffix(err.Error(), "; did you mean "+want+"?"),
			"key %s: error %v, want it to end with \"; did you mean %s?\"", key, err, want)
	}
}

func TestRule_HoldsComparesWithNumber(t *testing.T) {
	t.Parallel()
	for op, want := range map[string][3]bool{ // whether 1, 2 and 3 satisfy the rule with the number 2
		"<": {true, false, false}, "<=": {true, true, false}, ">": {false, false, true}, ">=": {false, true, true},
	} {
		r := Rule{Op: op, Number: 2}
		same(t, fmt.Sprintf("Holds for 1, 2, 3 %s 2", op), [3]bool{r.Holds(1), r.Holds(2), r.Holds(3)}, want)
		check.True(t, !r.Holds(math.NaN()), "Holds for NaN %s 2 = true, want false", op)
	}
}

// watched is a value at a second of the run, and whether the rule holds at that time.
type watched struct {
	at, value, window float64
	fires             bool
}

func TestRuleChecker_HoldsForItsDuration(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, test := range map[string]struct {
		rule    string
		samples []watched
	}{
		"one sample is enough": {"job_memory_mb > 10", []watched{{1, 5, 1, false}, {2, 11, 1, true}}},
		"not measured":         {"job_memory_mb > 10", []watched{{1, nan, 1, false}, {2, nan, 1, false}}},
		"for":                  {"job_memory_mb > 10 for 2s", []watched{{1, 11, 1, false}, {2, 12, 1, false}, {3, 13, 1, true}}},
		"true for one sample": {"job_memory_mb > 10 for 1s", []watched{
			{1, 11, 1, false}, {2, 9, 1, false}, {3, 11, 1, false}, {4, 9, 1, false}}},
		"duration is not a multiple of the interval": {"job_memory_mb > 10 for 1500ms", []watched{
			{1, 11, 1, false}, {2, 11, 1, false}, {3, 11, 1, true}}},
		"a missing value restarts the duration": {"job_memory_mb > 10 for 2s", []watched{
			{1, 11, 1, false}, {2, nan, 1, false}, {3, 11, 1, false}, {4, 11, 1, false}, {5, 11, 1, true}}},
		"a window over several samples has no gap": {"job_cpu_cores < 1 for 40ms", []watched{
			{0.04, 0.5, 0.04, false}, {0.05, nan, 0.01, false}, {0.06, nan, 0.01, false}, {0.07, nan, 0.01, false},
			{0.08, 0.5, 0.04, true}}},
		"a window after a gap": {"job_cpu_cores < 1 for 2s", []watched{
			{1, 0.5, 1, false}, {2, nan, 1, false}, {3, nan, 1, false}, {4, 0.5, 1, false}, {6, 0.5, 2, true}}},
		"a window that is slightly too short": {"job_cpu_cores < 1 for 2s", []watched{
			{1, 0.5, 1, false}, {2, 0.5, 0.95, false}, {3, 0.5, 0.95, true}}},
	} {
		rule := check.Value(ParseRule(test.rule))(t)
		w := RuleChecker{Rule: rule}
		for _, step := range test.samples {
			var s Sample
			s.Values[rule.Column], s.Weights[rule.Column], s.MemoryLowerBound = step.value, step.window, step.value
			at := time.Duration(step.at * float64(time.Second))
			_, got := w.Check(&s, at)
			check.True(t, got == step.fires, "%s: at %v s: holds = %v, want %v", name, step.at, got, step.fires)
		}
	}
}

// The job's memory must be certainly above or below the number.
func TestRuleChecker_HoldsOnlyForCertainMemory(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		rule           string
		memory, proven float64
		by             float64
		holds          bool
	}{
		{"job_memory_mb > 600", 1200, 409, 409, false}, // a sum of resident sizes
		{"job_memory_mb >= 400", 1200, 409, 409, true},
		{"job_memory_mb < 600", 1200, 409, 1200, false},
		{"job_memory_mb <= 1200", 1200, 409, 1200, true},
		{"job_memory_mb < 100", 46, 132, 132, false}, // the largest process alone has more
		{"job_memory_mb > 100", 46, 132, 132, true},
		{"job_memory_mb > 100", 132, nan, 132, true},
		{"job_memory_mb > 100", nan, 132, nan, false},
		{"job_processes > 1", 2, 0, 2, true},
	} {
		rule := check.Value(ParseRule(c.rule))(t)
		var s Sample
		s.Values[rule.Column], s.MemoryLowerBound = c.memory, c.proven
		w := RuleChecker{Rule: rule}
		if by, holds := w.Check(&s, time.Second); holds != c.holds || by != c.by && !math.IsNaN(c.by) {
			t.Errorf("%+v: Check = %v, %v; want %v, %v", c, by, holds, c.by, c.holds)
		}
	}
}

func TestRuleChecker_ReportsUnmeasuredKeyOnce(t *testing.T) {
	t.Parallel()
	rule := check.Value(ParseRule("job_memory_mb > 10"))(t)
	w := RuleChecker{Rule: rule}

	for _, step := range []struct {
		at, value float64
		said      bool
	}{
		{1, math.NaN(), false}, {60, math.NaN(), false}, {60.5, 5, false}, // a value in time
		{61, math.NaN(), false}, {120, math.NaN(), false}, {121, math.NaN(), true}, {500, math.NaN(), false},
		{501, 5, false}, {502, math.NaN(), false}, {600, math.NaN(), false}, // reported only once
	} {
		var s Sample
		s.Values[rule.Column], s.Weights[rule.Column] = step.value, 1
		at := time.Duration(step.at * float64(time.Second))
		w.Check(&s, at)
		same(t, fmt.Sprintf("at %v s: Unmeasured", step.at), w.Unmeasured(at), step.said)
	}
}

// FuzzParseRule checks that the text of a parsed rule is parsed as the same rule.
func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{
		"job_memory_mb > 8000", "job_cpu_cores<0.05 for 30m", "mem_percent >= 95 for 10", "a < b for c", "> 1", "\xff>\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, words string) {
		r, err := ParseRule(words)
		if err != nil {
			return
		}
		again, err := ParseRule(r.Text)
		if err != nil || again != r {
			t.Fatalf("ParseRule(%q) = %+v, but ParseRule of its Text = %+v, error %v; want the same rule", words, r, again, err)
		}
		if r.For < 0 || math.IsNaN(r.Number) || math.IsInf(r.Number, 0) || r.Column.Key() == "" {
			t.Fatalf("ParseRule(%q) = %+v, want a finite number, a duration of at least 0 and a column with a key", words, r)
		}
	})
}
