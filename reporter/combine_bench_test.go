package reporter_test

import (
	"runtime"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// manyRanks returns the encoded reports of n ranks with the given number of samples. Rank 0 measures the host. The
// values differ from sample to sample, like real values.
func manyRanks(t testing.TB, n, samples int) [][]byte {
	t.Helper()
	var out [][]byte
	for rank := range n {
		p := reportertest.RankPlan{
			Rank: rank, OnNode: n, Start: 0.003 * float64(rank), End: float64(samples), CPUs: 1.25, Group: "/job",
			Memory: func(at float64) float64 { return 1000 + float64(int(at*7919)%1000)/8 },
		}
		if rank == 0 {
			p.HostSpan = [2]float64{0, float64(samples)}
		}
		out = append(out, encodedReport(t, reporter.New(reportertest.RankInput(p))))
	}
	return out
}

func decodedParts(t testing.TB, data [][]byte) []reporter.SourceReport {
	t.Helper()
	var out []reporter.SourceReport
	for _, part := range data {
		out = append(out, reporter.SourceReport{Report: readBack(t, part)})
	}
	return out
}

// BenchmarkCombine combines 64 ranks of 1,000 samples each. It must take at most 0.3 s.
func BenchmarkCombine(b *testing.B) {
	parts := decodedParts(b, manyRanks(b, 64, 1000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reporter.Combine(parts); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCombine_ReadAndWrite reads the files of 64 ranks and writes the combined file, as the last rank of a node
// does. It must take at most 0.5 s.
func BenchmarkCombine_ReadAndWrite(b *testing.B) {
	data := manyRanks(b, 64, 1000)
	size := 0
	for _, d := range data {
		size += len(d)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		r, err := reporter.Combine(decodedParts(b, data))
		check.Must(b, err)
		b.ReportMetric(float64(len(encodedReport(b, r))), "bytes-out")
	}
}

// Combining 64 ranks allocates little more memory than the result takes.
func TestCombine_LimitsAllocations(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU to build 64 ranks")
	parts := decodedParts(t, manyRanks(t, 64, 1000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := reporter.Combine(parts); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 64 {
		t.Errorf("Combine allocated %d MiB for 64 ranks, want at most 64", mib)
	}
}
