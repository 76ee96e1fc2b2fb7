package reporter

import (
	"bytes"
	"encoding/json"
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
	nodes := make(map[string]*Node, len(samples))
	for name := range samples {
		if _, err := strconv.ParseUint(name, 10, 31); err != nil {
			return nil, fmt.Errorf("encode perf.py's JSON: node %q is not an integer",
				text.Printable(text.Clip(name, 40)))
		}
		nodes[name] = nil
	}

	data := []byte{'{'}
	for i, name := range (&Report{Nodes: nodes}).NodeNames() {
		data = append(appendKey(data, i, name), '[')
		for k := range samples[name] {
			if k > 0 {
				data = append(data, ',')
			}
			data = appendPerfPySample(data, &samples[name][k])
		}
		data = append(data, ']')
	}
	var out bytes.Buffer
	err := json.Indent(&out, append(data, '}'), "", "    ")
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
