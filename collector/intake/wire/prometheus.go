package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// A MetricType is the type on a TYPE line.
type MetricType uint8

// The types. A sample without a TYPE line is untyped.
const (
	Untyped MetricType = iota
	CounterMetric
	GaugeMetric
	HistogramMetric
	SummaryMetric
)

// metricTypes has the types by their names on TYPE lines.
var metricTypes = map[string]MetricType{
	"untyped": Untyped, "counter": CounterMetric, "gauge": GaugeMetric, "histogram": HistogramMetric,
	"summary": SummaryMetric,
}

// A Part says which number of a metric a sample is.
type Part uint8

// The parts. Counters and gauges have only a Whole.
const (
	Whole    Part = iota
	Bucket        // of a histogram: how many observations are at most Sample.Bound
	Quantile      // of a summary
	Sum
	Count
)

// A Sample is one line of a body with a number. What its slices hold changes with the next one.
type Sample struct {
	Name   []byte // the name on the TYPE line, or the line's own if there is none
	Type   MetricType
	Part   Part
	Series []byte  // Name with the labels, but for le and quantile; nil if Reason is not Accepted
	Bound  float64 // le
	Value  float64 // may be NaN or infinite
	Reason Reason  // TooLong for a name or labels beyond the bounds

	labels []tag
}

// Label returns the value of a label, or nil.
func (s *Sample) Label(name string) []byte {
	for _, l := range s.labels {
		if string(l.key) == name {
			return l.value
		}
	}
	return nil
}

// pieceSize is how much of a body is in memory at a time, and the length of the longest line that is read whole.
const pieceSize = 32 << 10

// A PrometheusReader reads a body in Prometheus' text format 0.0.4, sample by sample, as bufio.Scanner reads lines.
// Create one with [NewPrometheusReader].
type PrometheusReader struct {
	Sample Sample

	lines   *bufio.Reader
	line    int
	family  []byte // of the last TYPE line
	kind    MetricType
	long    []byte // the beginning of a line that is too long
	builder seriesBuilder
	err     error
}

// NewPrometheusReader returns a Text at the beginning of a body.
func NewPrometheusReader(body io.Reader) *PrometheusReader {
	t := &PrometheusReader{lines: bufio.NewReaderSize(nil, pieceSize)}
	t.Reset(body)
	return t
}

// Reset goes to the beginning of a body, and keeps the memory that was used for another one.
func (t *PrometheusReader) Reset(body io.Reader) {
	t.lines.Reset(body)
	*t = PrometheusReader{lines: t.lines, family: t.family[:0], long: t.long[:0],
		builder: seriesBuilder{out: t.builder.out}}
}

// Err returns the error that ended Next before the body's end: that of the reader, or one that names the line.
func (t *PrometheusReader) Err() error { return t.err }

// Next reads the next sample into t.Sample. It reports false at the end, and at the first line that cannot be read.
func (t *PrometheusReader) Next() bool {
	for t.err == nil {
		line, whole, ok := t.nextLine()
		switch {
		case !ok:
			return false
		case len(line) == 0:
		case line[0] == '#' && whole:
			t.fail(t.comment(line[1:]))
		case line[0] == '#': // a HELP line of any length is nothing of use
		default:
			t.fail(t.sample(line, whole))
			return t.err == nil
		}
	}

	return false
}

// nextLine returns the next line without the white space around it, or the beginning of one that is too long to be
// whole. It reports false at the end of the body.
func (t *PrometheusReader) nextLine() (line []byte, whole, ok bool) {
	line, err := t.lines.ReadSlice('\n')
	if whole = !errors.Is(err, bufio.ErrBufferFull); !whole {
		t.long = append(t.long[:0], line[:MaxText+1]...)
		line = t.long
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = t.lines.ReadSlice('\n')
		}
	}
	switch {
	case err == io.EOF && len(line) == 0:
		return nil, false, false
	case err == io.EOF:
		t.line++
		t.fail(errors.New("the last line does not end"))
		return nil, false, false
	case err != nil:
		t.err = err
		return nil, false, false
	}
	t.line++

	return bytes.Trim(line, " \t\r\n"), whole, true
}

// fail notes an error with the line that has it.
func (t *PrometheusReader) fail(err error) {
	if err != nil {
		t.err = fmt.Errorf("line %d: %w", t.line, err)
	}
}

// comment reads what comes after "#": the type of the metric that follows, or nothing of use.
func (t *PrometheusReader) comment(line []byte) error {
	keyword, rest := word(line)
	if string(keyword) != "TYPE" {
		return nil
	}

	name, rest := word(rest)
	kind, rest := word(rest)
	if metricNameLen(name) != len(name) || len(name) == 0 || len(rest) > 0 {
		return errors.New("a TYPE line is not \"# TYPE NAME TYPE\"")
	}
	known := false
	if t.kind, known = metricTypes[string(kind)]; !known {
		return fmt.Errorf("%q is no type of the text format 0.0.4", short(kind))
	}
	t.family = append(t.family[:0], name...) // the line goes

	return nil
}

// sample reads NAME{LABELS} VALUE [TIMESTAMP], or the name of a line that is not whole.
func (t *PrometheusReader) sample(line []byte, whole bool) error {
	n := metricNameLen(line)
	if n == 0 {
		return fmt.Errorf("%q is no name of a metric", short(line))
	}
	name, rest := line[:n], skipSpace(line[n:])

	s := &t.Sample
	*s = Sample{Bound: math.NaN()}
	if !whole {
		s.Name, s.Reason = name, TooLong
		return nil
	}
	t.builder.reset()
	t.identify(name)
	if len(rest) > 0 && rest[0] == '{' {
		var err error
		if rest, err = t.labels(rest[1:]); err != nil {
			return err
		}
	} else if len(line) == n || len(rest) == len(line)-n {
		return errors.New("there is no space after the name of a metric")
	}
	if err := t.numbers(rest); err != nil {
		return err
	}
	if s.Part == Bucket && math.IsNaN(s.Bound) {
		return errors.New("a bucket has no label le")
	}
	if s.Reason == Accepted {
		s.labels = t.builder.tags[:t.builder.n]
		s.Series, s.Reason = t.builder.series(s.Name)
	}

	return nil
}

// identify finds out what a sample is from its name and the TYPE line before.
func (t *PrometheusReader) identify(name []byte) {
	s := &t.Sample
	s.Name = name
	suffix, ours := bytes.CutPrefix(name, t.family)
	if !ours || len(t.family) == 0 {
		return
	}

	s.Name, s.Type = t.family, t.kind
	distributed := t.kind == HistogramMetric || t.kind == SummaryMetric
	switch {
	case len(suffix) == 0 && t.kind == SummaryMetric:
		s.Part = Quantile
	case len(suffix) == 0 && t.kind != HistogramMetric:
	case string(suffix) == "_sum" && distributed:
		s.Part = Sum
	case string(suffix) == "_count" && distributed:
		s.Part = Count
	case string(suffix) == "_bucket" && t.kind == HistogramMetric:
		s.Part = Bucket
	default:
		s.Name, s.Type = name, Untyped
	}
}

// labels reads what comes after "{", to "}", and returns what follows.
func (t *PrometheusReader) labels(rest []byte) ([]byte, error) {
	for {
		rest = skipSpace(rest)
		if len(rest) > 0 && rest[0] == '}' {
			return rest[1:], nil
		}

		n := labelNameLen(rest)
		name := rest[:n]
		rest = skipSpace(rest[n:])
		if n == 0 || len(rest) == 0 || rest[0] != '=' {
			return nil, errors.New("a label is not NAME=\"VALUE\"")
		}
		value, after, err := labelValue(skipSpace(rest[1:]))
		if err != nil {
			return nil, err
		}
		if err := t.label(name, value); err != nil {
			return nil, err
		}

		rest = skipSpace(after)
		switch {
		case len(rest) > 0 && rest[0] == ',':
			rest = rest[1:]
		case len(rest) == 0 || rest[0] != '}':
			return nil, errors.New("labels do not end with \"}\"")
		}
	}
}

// label takes a label to the series, or le to the bucket. An empty value is as good as no label.
func (t *PrometheusReader) label(name, value []byte) error {
	s := &t.Sample
	switch {
	case s.Part == Bucket && string(name) == "le":
		bound, err := parseNumber(value)
		if err != nil || math.IsNaN(bound) {
			return fmt.Errorf("%q is no bound of a bucket", short(value))
		}
		s.Bound = bound
	case s.Part == Quantile && string(name) == "quantile", len(value) == 0:
	default:
		if reason := t.builder.add(name, value); reason != Accepted {
			s.Reason = reason
		}
	}

	return nil
}

// labelValue reads a value from its quotation mark on, and returns what follows.
func labelValue(rest []byte) (value, after []byte, err error) {
	if len(rest) == 0 || rest[0] != '"' {
		return nil, nil, errors.New("the value of a label is not between quotation marks")
	}

	escaped := false
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			if value = rest[1:i]; escaped {
				value = []byte(unescaped.Replace(string(value)))
			}
			if !utf8.Valid(value) {
				return nil, nil, errors.New("the value of a label is not UTF-8")
			}
			return value, rest[i+1:], nil
		case '\\':
			escaped = true
			i++
			if i < len(rest) && !strings.ContainsRune(`\"n`, rune(rest[i])) {
				return nil, nil, fmt.Errorf(`\%c is no escape in the value of a label`, rest[i])
			}
		}
	}

	return nil, nil, errors.New("the value of a label has no end")
}

// unescaped replaces the three escapes.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// numbers reads the value, and the time if there is one, which is not used.
func (t *PrometheusReader) numbers(rest []byte) error {
	value, rest := word(rest)
	v, err := parseNumber(value)
	if err != nil {
		return fmt.Errorf("%q is no value", short(value))
	}
	t.Sample.Value = v

	at, rest := word(rest)
	if len(at) > 0 {
		if at[0] == '-' || at[0] == '+' {
			at = at[1:]
		}
		if digits(at) != len(at) || len(at) == 0 {
			return fmt.Errorf("%q is no time in milliseconds", short(at))
		}
	}
	if len(rest) > 0 {
		return errors.New("there is more after value and time")
	}

	return nil
}

// word returns the first word and what follows, without the white space between.
func word(b []byte) (first, rest []byte) {
	b = skipSpace(b)
	end := 0
	for end < len(b) && b[end] != ' ' && b[end] != '\t' {
		end++
	}
	return b[:end], skipSpace(b[end:])
}

// skipSpace returns b without the spaces and tabs that it begins with.
func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// metricNameLen returns how many bytes of a name b begins with.
func metricNameLen(b []byte) int { return nameLength(b, ':') }

// labelNameLen returns how many bytes of a label's name b begins with.
func labelNameLen(b []byte) int { return nameLength(b, '_') }

// nameLength returns how many bytes of a name b begins with: letters, digits but for the first, "_" and another one.
func nameLength(b []byte, another byte) int {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && c != '_' && c != another && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(b)
}

// short cuts text for an error.
func short(b []byte) []byte { return b[:min(len(b), 40)] }
