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

// metricTypes maps the name on a TYPE line to the type.
var metricTypes = map[string]MetricType{
	"untyped": Untyped, "counter": CounterMetric, "gauge": GaugeMetric, "histogram": HistogramMetric,
	"summary": SummaryMetric,
}

// A Part is the part of a metric to which a sample belongs.
type Part uint8

// The parts. Counters and gauges have only a Whole.
const (
	Whole    Part = iota
	Bucket        // of a histogram: number of observations up to Sample.Bound
	Quantile      // of a summary
	Sum
	Count
)

// A Sample is a line of a body with a number. The next Sample overwrites its slices.
type Sample struct {
	Name   []byte // name on the TYPE line, or on the sample's line if there is no TYPE line
	Type   MetricType
	Part   Part
	Series []byte  // Name with the labels except le and quantile; nil if Reason is not Accepted
	Bound  float64 // le
	Value  float64 // may be NaN or infinite
	Reason Reason  // TooLong if the name or the labels exceed the limits

	labels []tag
}

// Label returns the value of the label with the given name, or nil if there is no such label.
func (s *Sample) Label(name string) []byte {
	for _, l := range s.labels {
		if string(l.key) == name {
			return l.value
		}
	}
	return nil
}

// maxBodyLine is the maximum length of a line that is read completely, and the size of the buffer for a line.
const maxBodyLine = 32 << 10

// A PrometheusReader reads a body in Prometheus' text format 0.0.4 sample by sample, like bufio.Scanner. Create one
// with [NewPrometheusReader].
type PrometheusReader struct {
	Sample Sample

	lines   *bufio.Reader
	line    int
	long    bool   // only the beginning of the current line is known
	family  []byte // name on the last TYPE line
	kind    MetricType
	builder seriesBuilder
	err     error
}

// NewPrometheusReader returns a PrometheusReader at the beginning of a body.
func NewPrometheusReader(body io.Reader) *PrometheusReader {
	t := &PrometheusReader{lines: bufio.NewReaderSize(nil, maxBodyLine)}
	t.Reset(body)
	return t
}

// Reset restarts the reader with another body, and keeps its memory.
func (t *PrometheusReader) Reset(body io.Reader) {
	t.lines.Reset(body)
	*t = PrometheusReader{lines: t.lines, family: t.family[:0], builder: seriesBuilder{out: t.builder.out}}
}

// Err returns the error at which Next stopped, or nil at the end of the body. It is an error from reading the body, or
// a syntax error with the line number.
func (t *PrometheusReader) Err() error { return t.err }

// Next reads the next sample into t.Sample. It returns false at the end of the body and at the first error.
func (t *PrometheusReader) Next() bool {
	for t.err == nil {
		line, ok := t.nextLine()
		switch {
		case !ok:
			return false
		case len(line) == 0:
		case line[0] == '#':
			t.fail(t.comment(line[1:]))
		default:
			t.fail(t.sample(line))
			return t.err == nil
		}
	}

	return false
}

// nextLine returns the next line without surrounding white space, or the beginning of a line that is too long. It
// reports false at the end of the body.
func (t *PrometheusReader) nextLine() (line []byte, ok bool) {
	line, err := t.lines.ReadSlice('\n')
	if err == io.EOF && len(line) == 0 {
		return nil, false
	}

	t.line++
	if t.long = err == bufio.ErrBufferFull; t.long {
		line = bytes.Clone(line[:MaxText+1])
	}
	for err == bufio.ErrBufferFull {
		_, err = t.lines.ReadSlice('\n')
	}
	switch err {
	case nil:
		return bytes.Trim(line, " \t\r\n"), true
	case io.EOF:
		t.fail(errors.New("the last line has no end"))
	default:
		t.err = err
	}
	return nil, false
}

// fail records an error with the line number.
func (t *PrometheusReader) fail(err error) {
	if err != nil {
		t.err = fmt.Errorf("line %d: %w", t.line, err)
	}
}

// comment parses the text after "#". It ignores everything except a TYPE line.
func (t *PrometheusReader) comment(line []byte) error {
	keyword, rest := word(line)
	if string(keyword) != "TYPE" || t.long {
		return nil
	}

	name, rest := word(rest)
	kind, rest := word(rest)
	if nameLength(name, ':') != len(name) || len(name) == 0 || len(rest) > 0 {
		return errors.New("a TYPE line is not \"# TYPE NAME TYPE\"")
	}
	known := false
	if t.kind, known = metricTypes[string(kind)]; !known {
		return fmt.Errorf("%q is not a type of the text format 0.0.4", short(kind))
	}
	t.family = append(t.family[:0], name...) // copied, because the line will be overwritten

	return nil
}

// sample parses NAME{LABELS} VALUE [TIMESTAMP]. Of a line that is too long, it parses only the name.
func (t *PrometheusReader) sample(line []byte) error {
	n := nameLength(line, ':')
	if n == 0 {
		return fmt.Errorf("%q is not the name of a metric", short(line))
	}
	name, rest := line[:n], skipSpace(line[n:])

	s := &t.Sample
	*s = Sample{Bound: math.NaN()}
	if t.long {
		s.Name, s.Reason = name, TooLong
		return nil
	}
	t.builder.n = 0
	t.identify(name)
	if len(rest) > 0 && rest[0] == '{' {
		var err error
		if rest, err = t.labels(rest[1:]); err != nil {
			return err
		}
	} else if len(line) == n || len(rest) == len(line)-n {
		return errors.New("the name of a metric is not followed by a space")
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

// identify sets the name, type and part of a sample from its name and the last TYPE line.
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

// labels parses the labels between "{" and "}", and returns the rest of the line. It is called with the text after "{".
func (t *PrometheusReader) labels(rest []byte) ([]byte, error) {
	for {
		rest = skipSpace(rest)
		if len(rest) > 0 && rest[0] == '}' {
			return rest[1:], nil
		}

		n := nameLength(rest, '_')
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

// label adds a label to the series, or sets the bound of a bucket. A label with an empty value is treated as absent.
func (t *PrometheusReader) label(name, value []byte) error {
	s := &t.Sample
	switch {
	case s.Part == Bucket && string(name) == "le":
		bound, err := parseNumber(value)
		if err != nil || math.IsNaN(bound) {
			return fmt.Errorf("%q is not the bound of a bucket", short(value))
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

// labelValue parses the value of a label from its opening quotation mark, and returns the value and the rest of the
// line.
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
				return nil, nil, fmt.Errorf(`\%c is not an escape in the value of a label`, rest[i])
			}
		}
	}

	return nil, nil, errors.New("the value of a label has no end")
}

// unescaped replaces the three escape sequences.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// numbers parses the value of a sample, and the optional time, which is not used.
func (t *PrometheusReader) numbers(rest []byte) error {
	value, rest := word(rest)
	v, err := parseNumber(value)
	if err != nil {
		return fmt.Errorf("%q is not a value", short(value))
	}
	t.Sample.Value = v

	at, rest := word(rest)
	if len(at) > 0 {
		if at[0] == '-' || at[0] == '+' {
			at = at[1:]
		}
		if digits(at) != len(at) || len(at) == 0 {
			return fmt.Errorf("%q is not a time in milliseconds", short(at))
		}
	}
	if len(rest) > 0 {
		return errors.New("there is more text after the value and time")
	}

	return nil
}

// word returns the first word of b and the rest, without the white space between them.
func word(b []byte) (first, rest []byte) {
	b = skipSpace(b)
	end := 0
	for end < len(b) && b[end] != ' ' && b[end] != '\t' {
		end++
	}
	return b[:end], skipSpace(b[end:])
}

// skipSpace returns b without leading spaces and tabs.
func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// nameLength returns the length of the name at the beginning of b. A name consists of letters, "_", the character
// another and, except at its beginning, digits.
func nameLength(b []byte, another byte) int {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && c != '_' && c != another && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(b)
}

// short truncates text for an error message.
func short(b []byte) []byte { return b[:min(len(b), 40)] }
