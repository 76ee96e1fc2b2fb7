package reporter_test

import (
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// FuzzCombine checks that Combine returns an error or a report that can be encoded and decoded.
func FuzzCombine(f *testing.F) {
	parts := partsOf(f, plan{Rank: 0, OnNode: 2, End: 3, CPUs: 1, HostSpan: between(0, 3), Group: "/a"},
		plan{Rank: 1, OnNode: 2, Start: 0.5, End: 7, CPUs: 2, HostSpan: between(4, 7), Exit: 1},
		plan{Rank: 2, End: 5, Unfinished: true})
	a, b, c := encodedReport(f, parts[0].Report), encodedReport(f, parts[1].Report), encodedReport(f, parts[2].Report)
	f.Add(a, b)
	f.Add(b, c)
	f.Add(a, []byte(`{"schema":"perfagent.report/1","run":{"id":"x"},"nodes":{"0":{"samples":[{"timestamp":1e308},{"timestamp":-1e308},{}],`+
		`"sampling":{"holders":[{"rank":-1},{"rank":7,"start":"9999-01-01T00:00:00Z","end":"0001-01-01T00:00:00Z"}],"stride":-9,"max_length":-1},`+
		`"envelope":{"timestamp":{"min":[1,null,3],"mean":[2,2,2],"max":[null,1e308,3]},"job_cpu_cores":{"min":[1,2,3],"mean":[1e308,2,3],"max":[1,1e308,3]}},`+
		`"gpus":[{"index":5,"uuid":"x"},{"index":5,"uuid":"x"},{"index":-1}],"limits":{"cpuset_cpus":-3,"affinity_cpus":9223372036854775807},`+
		`"metrics":{"job_cpu_seconds":1e308,"wall_seconds":-1},"missing":[{"what":""},{"what":"job","of":1,"count":-9223372036854775808,"why":"x"}]}}}`))
	f.Add([]byte(`{"schema":"perfagent.report/1","run":{"id":""},"nodes":{"0":{"ranks":{"3":{"rank":9,"envelope":{"job_cpu_cores":`+
		`{"min":[1],"mean":[1],"max":[1]}}},"4":{"job":{"pids":[1]}}},"samples":[{"timestamp":5}]}}}`), a)

	f.Fuzz(func(t *testing.T, first, second []byte) {
		var parts []reporter.SourceReport
		for _, data := range [][]byte{first, second} {
			r, err := reporter.Decode(data)
			if err != nil {
				return
			}
			parts = append(parts, reporter.SourceReport{Path: "x", Report: r})
		}
		r, err := reporter.Combine(parts)
		if err != nil {
			return
		}
		if _, err := reporter.Decode(encodedReport(t, r)); err != nil {
			t.Fatal(err)
		}
	})
}
