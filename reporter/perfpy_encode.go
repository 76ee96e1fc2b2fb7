package reporter

import (
	"fmt"
	"math"
	"strconv"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// EncodePerfPy writes samples by node exactly as perf.py's save_to does with
// Python's json.dump(indent=4): the twelve keys in perf.py's order, floats as
// Python writes them, no newline at the end. What was not measured is left out:
// JSON has no word for it. A node that is not an integer is an error.
func EncodePerfPy(samples map[string][]collector.Sample) ([]byte, error) {
	if len(samples) == 0 {
		return []byte("{}"), nil
	}

	nodes := make(map[string]*Node, len(samples))
	for name := range samples {
		if _, err := strconv.ParseUint(name, 10, 31); err != nil {
			return nil, fmt.Errorf("encode perf.py's JSON: node %q is not an integer",
				text.Printable(text.Clip(name, 40)))
		}
		nodes[name] = nil
	}

	out := []byte("{")
	for i, name := range (&Report{Nodes: nodes}).NodeNames() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, "\n    \""+name+"\": "...)
		out = appendPerfPyList(out, samples[name])
	}
	return append(out, "\n}"...), nil
}

func appendPerfPyList(out []byte, list []collector.Sample) []byte {
	if len(list) == 0 {
		return append(out, "[]"...)
	}
	out = append(out, '[')
	for i := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, "\n        "...)
		out = appendPerfPySample(out, &list[i])
	}
	return append(out, "\n    ]"...)
}

func appendPerfPySample(out []byte, s *collector.Sample) []byte {
	out = append(out, '{')
	empty := true
	for c := range collector.Column(collector.NumPerfPyKeys) {
		v := s.Values[c]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if !empty {
			out = append(out, ',')
		}
		empty = false
		out = append(out, "\n            \""+c.Key()+"\": "...)
		out = appendPythonFloat(out, v)
	}

	if !empty {
		out = append(out, "\n        "...)
	}
	return append(out, '}')
}

// appendPythonFloat writes a finite number as Python's repr: the shortest digits
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
