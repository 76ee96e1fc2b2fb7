package reporter

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// PerfPyRemark is the remark for readers of perf.py's numbers.
const PerfPyRemark = "totals since boot, shares of the kept samples"

// Remarks returns remarks that a reader needs to interpret the node's metrics.
func (n *Node) Remarks() []string {
	var out []string
	if n == nil {
		return nil
	}
	if n.Origin == OriginPerfPy {
		out = append(out, PerfPyRemark)
	}
	if n.Job != nil && n.Job.MaxRSSAtMost {
		out = append(out, MetricJobMaxRSS+" is an upper bound: the kernel counted the memory of perfagent, "+
			"from which the job was forked")
	}
	return out
}

// ParsePerfPy reads perf.py's JSON (node → list of samples) and computes its metrics by perf.py's own rules. cpus is
// the number of logical CPUs of each node, which is not in the file; 0 = unknown. The run's ID is a hash of the
// content, so that the same file gets the same ID.
func ParsePerfPy(data []byte, cpus int) (*Report, error) {
	file := scanner{file: bytes.NewReader(data), size: int64(len(data)), limit: maxValueSize}
	file.open()
	nodes, err := readPerfPy(file.in)
	if err == nil {
		err = file.end()
	}
	switch {
	case err != nil:
		return nil, errors.New(text.Printable(file.explain(err).Error()))
	case len(nodes) == 0:
		return nil, errors.New("is an empty object, not a report")
	}
	r := &Report{Schema: Schema, Nodes: make(map[string]*Node, len(nodes))}
	r.Run.ID = fmt.Sprintf("perfpy-%x", sha256.Sum256(data))[:len("perfpy-")+12]
	for name, samples := range nodes {
		r.Nodes[name] = newPerfPyNode(samples, cpus)
		r.Run.widenToSamples(samples)
	}
	return r, nil
}

// NewPerfPyReport returns the Report of one node from samples that were taken and thinned as perf.py does (--compat
// perf.py), by the rules of ParsePerfPy, so that the live run and its file give the same numbers. Times missing from
// run are taken from the samples.
func NewPerfPyReport(samples []collector.Sample, node, cpus int, run Run) *Report {
	columns := perfpyColumns(len(samples))
	for i := range samples {
		for c := range columns.Columns {
			columns.Columns[c][i] = samples[i].Values[c]
		}
	}
	if run.Start.IsZero() || run.End.IsZero() {
		run.Start, run.End, run.WallSeconds = Time{}, Time{}, 0
		run.widenToSamples(columns)
	}
	return &Report{Schema: Schema, Run: run, Nodes: map[string]*Node{strconv.Itoa(node): newPerfPyNode(columns, cpus)}}
}

// perfpyColumns returns columns for perf.py's twelve keys with n rows.
func perfpyColumns(n int) Samples {
	var s Samples
	for c := range collector.Column(collector.NumPerfPyKeys) {
		s.Keys = append(s.Keys, c.Key())
		s.Columns = append(s.Columns, make([]float64, n))
	}
	return s
}

// readPerfPy reads the samples of each node.
func readPerfPy(r *reader) (map[string]Samples, error) {
	nodes, cells := make(map[string]Samples), 0
	err := r.object("is not an object, and so not a report", func(quoted []byte) error {
		name := unquote(quoted)
		_, ok := parseIndex(name)
		_, twice := nodes[name]
		switch {
		case !ok:
			return fmt.Errorf("is not a report: it has no \"schema\", and the key %q is not a node of perf.py's",
				text.Printable(text.Clip(name, 40)))
		case twice:
			return fmt.Errorf("node %s appears twice", name)
		}
		samples, err := readPerfPyNode(r, cells)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		nodes[name], cells = samples, cells+samples.cells()
		return nil
	})
	return nodes, err
}

// readPerfPyNode reads the list of samples of one node; before is the number of values in earlier nodes. It returns all
// twelve columns, even if no sample has their keys, so that samples without any key count.
func readPerfPyNode(r *reader, before int) (Samples, error) {
	s := perfpyColumns(0)
	in := rowReader{reader: r, samples: &s, wanted: ColumnFilter{All: true}, columns: make(map[string]int)}
	err := r.array("is not a list of samples", func() error {
		if err := in.row(); err != nil {
			return err
		}
		if ts := s.Columns[collector.Timestamp][in.rows-1]; ts < 0 || ts > maxTimestamp {
			return fmt.Errorf("sample %d: timestamp %v is not a valid time", in.rows, ts)
		}
		if int64(before+s.cells()) > r.InputOffset()+1<<20 {
			return errMostlyEmpty
		}
		return nil
	})
	return s, err
}

// maxTimestamp is the last second that RFC 3339 can represent.
const maxTimestamp = 253402300799

// newPerfPyNode computes a node from samples by perf.py's rules: all samples have the same weight, fully busy means
// exactly 100 %, and a total is the largest value of its counter.
func newPerfPyNode(samples Samples, cpus int) *Node {
	f := &facts{
		perfpy:  true,
		cpus:    max(cpus, 0),
		summary: make([]*series.Summary, collector.NumPerfPyKeys),
	}
	for i := range f.summary {
		c := collector.Column(i)
		f.summary[c] = perfpySummary(c)
		for _, v := range samples.Column(c.Key()) {
			f.summary[c].Add(v, 1)
		}
	}

	f.wall, f.wallErr = perfpyLength(samples)
	f.whyMissing = func(c collector.Column) error {
		if samples.Len() == 0 {
			return newMissingError(PerfPyNoSample)
		}
		return &missingError{PerfPyNoValue, "no sample has " + c.Key()}
	}
	n := &Node{Origin: OriginPerfPy, Samples: samples, Missing: []Missing{}, Findings: []Finding{}}
	if cpus > 0 {
		n.Host = &Host{CPUs: cpus}
	}

	metrics, absent := f.compute()
	n.Metrics, n.Missing = metrics, append(n.Missing, absent...)
	n.Summaries = newSummaries(&collector.Recording{Summaries: f.summary})
	return n
}

func perfpySummary(c collector.Column) *series.Summary {
	switch {
	case c == collector.CPUAvg:
		return series.NewPercentSummary(20, 40, 80, 100)
	case c.IsPercent():
		return series.NewPercentSummary()
	}
	return series.NewSummary()
}

// perfpyLength returns the seconds from the first timestamp to the last.
func perfpyLength(s Samples) (float64, error) {
	known := timestamps(s)
	switch {
	case s.Len() == 0:
		return 0, newMissingError(PerfPyNoSample)
	case len(known) < 2:
		return 0, newMissingError(PerfPyTimestamps)
	case known[len(known)-1] <= known[0]:
		return 0, newMissingError(PerfPyBackwards)
	}
	return known[len(known)-1] - known[0], nil
}

// timestamps returns the known timestamps.
func timestamps(s Samples) []float64 {
	return slices.DeleteFunc(slices.Clone(s.Column(collector.Timestamp.Key())), math.IsNaN)
}

// widenToSamples widens the run to include the samples of a node.
func (r *Run) widenToSamples(s Samples) {
	known := timestamps(s)
	if len(known) == 0 {
		return
	}
	first, last := known[0], known[len(known)-1]
	from, to := unixTime(min(first, last)), unixTime(max(first, last))
	if r.Start.IsZero() || from.Before(r.Start.Time) {
		r.Start = Time{from}
	}
	if r.End.IsZero() || to.After(r.End.Time) {
		r.End = Time{to}
	}
	r.WallSeconds = r.End.Sub(r.Start.Time).Seconds()
}

// unixTime converts ts, in seconds since 1970, and rounds it to microseconds.
func unixTime(ts float64) time.Time {
	whole, part := math.Modf(ts)
	return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
}

// EncodePerfPy encodes the samples of a node exactly as perf.py's save_to does with Python's json.dump(indent=4): the
// twelve keys in perf.py's order, floats in Python's format, no newline at the end. Unmeasured values are omitted: JSON
// has no NaN.
func EncodePerfPy(node int, samples []collector.Sample) ([]byte, error) {
	data := fmt.Appendf(nil, `{"%d":[`, node)
	for i := range samples {
		if i > 0 {
			data = append(data, ',')
		}
		data = appendPerfPySample(data, &samples[i])
	}
	var out bytes.Buffer
	err := json.Indent(&out, append(data, "]}"...), "", "    ")
	return out.Bytes(), err
}

func appendPerfPySample(out []byte, s *collector.Sample) []byte {
	out = append(out, '{')
	n := 0
	for c := range collector.Column(collector.NumPerfPyKeys) {
		if v := s.Values[c]; !math.IsNaN(v) && !math.IsInf(v, 0) {
			out = appendPythonFloat(appendKey(out, n, c.Key()), v)
			n++
		}
	}
	return append(out, '}')
}

// appendPythonFloat appends a finite number in the format of Python's repr: the shortest digits
// that read back as the same number, always with a point or an exponent.
func appendPythonFloat(out []byte, v float64) []byte {
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(out, v, 'e', -1, 64)
	}
	out = strconv.AppendFloat(out, v, 'f', -1, 64)
	if v == math.Trunc(v) {
		out = append(out, ".0"...)
	}
	return out
}
