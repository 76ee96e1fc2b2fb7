package collector

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

// A Rule is a condition on one column of the samples: KEY OP NUMBER [for DURATION].
type Rule struct {
	Text   string // as written
	Column Column
	Op     string        // one of < <= > >=
	Number float64       // in the unit of the column
	For    time.Duration // how long the condition must hold; 0 = one sample is enough
}

// An UnknownKeyError is the error for a key without a column.
type UnknownKeyError struct {
	Key     string
	Nearest string // most similar key; "" if none is similar
}

// Error implements error.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("there is no key %q; %s", e.Key, text.DidYouMean(e.Nearest, "%s",
		"use a key of the report's samples, such as job_memory_mb, job_cpu_cores or mem_percent"))
}

// errNotARule is the error for text that does not have the parts of a rule.
var errNotARule = errors.New("is not KEY OP NUMBER [for TIME], such as 'job_memory_mb > 8000'; " +
	"OP is <, <=, > or >=")

// ParseRule parses KEY OP NUMBER [for DURATION]. KEY is the key of a column, OP is one of < <= > >=, NUMBER is a
// decimal number in the column's unit, DURATION is a Go duration such as 90s or 1h30m, or a number of seconds. Spaces
// around OP are optional. The error is an *UnknownKeyError if only KEY is wrong.
func ParseRule(words string) (Rule, error) {
	r := Rule{Text: strings.TrimSpace(words)}
	at := strings.IndexAny(r.Text, "<>")
	if at <= 0 {
		return Rule{}, errNotARule
	}

	key, rest := strings.TrimSpace(r.Text[:at]), r.Text[at+1:]
	r.Op = r.Text[at : at+1]
	if after, ok := strings.CutPrefix(rest, "="); ok {
		r.Op, rest = r.Op+"=", after
	}

	var err error
	switch parts := strings.Fields(rest); {
	case len(strings.Fields(key)) != 1:
		return Rule{}, errNotARule
	case len(parts) == 3 && parts[1] == "for":
		if r.For, err = parseFor(parts[2]); err != nil {
			return Rule{}, err
		}
		fallthrough
	case len(parts) == 1:
		r.Number, err = parseNumber(parts[0])
	default:
		return Rule{}, errNotARule
	}
	if err != nil {
		return Rule{}, err
	}

	column, ok := ColumnByKey(key)
	if !ok {
		return Rule{}, &UnknownKeyError{key, nearestKey(key)}
	}
	r.Column = column

	return r, nil
}

// nearestKey returns the key most similar to misspelt, or "". It prefers a key that differs in few letters. Otherwise,
// at least half of the words of misspelt must be prefixes of words of the key.
func nearestKey(misspelt string) string {
	keys := make([]string, MaxColumns)
	for c := range keys {
		keys[c] = Column(c).Key()
	}
	if near := text.Nearest(misspelt, keys); near != "" {
		return near
	}

	best, most, fewest := "", 0, 0
	typed := strings.Split(strings.ToLower(misspelt), "_")
	for _, key := range keys {
		words, found := strings.Split(key, "_"), 0
		for _, word := range typed {
			begins := func(w string) bool { return word != "" && strings.HasPrefix(w, word) }
			if slices.ContainsFunc(words, begins) {
				found++
			}
		}
		if 2*found >= len(typed) && (found > most || found == most && len(words) < fewest) {
			best, most, fewest = key, found, len(words)
		}
	}

	return best
}

// parseNumber parses a decimal number such as 8000 or 1e3.
func parseNumber(word string) (float64, error) {
	v, err := strconv.ParseFloat(word, 64)
	// ParseFloat also accepts Inf, NaN, hexadecimal numbers and 1_000.
	if err != nil || strings.Trim(word, "0123456789.eE+-") != "" || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number such as 8000 or 0.05", word)
	}

	return v, nil
}

// parseFor parses a duration such as 1h30m, or a number of seconds.
func parseFor(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if v, errNumber := parseNumber(word); errNumber == nil && math.Abs(v) < math.MaxInt64/float64(time.Second) {
		d, err = time.Duration(v*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 30m or 1h30m", word)
	}

	return d, nil
}

// Holds reports whether v satisfies the rule. NaN (not measured) does not.
func (r Rule) Holds(v float64) bool {
	switch r.Op {
	case "<":
		return v < r.Number
	case "<=":
		return v <= r.Number
	case ">":
		return v > r.Number
	case ">=":
		return v >= r.Number
	}

	return false
}

// A RuleChecker checks a Rule at each sample of a run. It belongs to one goroutine.
type RuleChecker struct {
	Rule

	on     bool          // the rule held at the newest value
	since  time.Duration // start of the time for which it has held
	last   time.Duration // time of the newest value
	missed bool          // a sample without a value followed the newest value

	missingSince time.Duration // first sample without a value since the newest value
	noticed      bool          // Unmeasured has reported it
}

// UnmeasuredAfter is the time for which a key may lack a value before Unmeasured reports it.
const UnmeasuredAfter = time.Minute

// Unmeasured returns true when the key of the rule has had no value for UnmeasuredAfter, so that the rule cannot hold.
// It returns true at most once in a run. Call it after Check of the same sample.
func (w *RuleChecker) Unmeasured(at time.Duration) bool {
	if !w.missed || w.noticed || at-w.missingSince < UnmeasuredAfter {
		return false
	}
	w.noticed = true

	return true
}

// Check takes the sample made at the monotonic time at. It returns the value of the rule's column, and whether the rule
// has held for its duration. A sample without a value (NaN) restarts the duration, unless the next value is a
// percentage or a rate over the whole time since the last value.
func (w *RuleChecker) Check(s *Sample, at time.Duration) (value float64, holds bool) {
	if !s.Has(w.Column) {
		if !w.missed {
			w.missed, w.missingSince = true, at
		}
		return math.NaN(), false
	}

	value = s.valueForRule(w.Rule)
	window := time.Duration(s.Weights[w.Column] * float64(time.Second))
	if broken := w.missed && at-window > w.last+clockTick; !w.on || broken {
		w.since = at
	}
	w.on, w.last, w.missed = w.Holds(value), at, false

	return value, w.on && at-w.since >= w.For
}
