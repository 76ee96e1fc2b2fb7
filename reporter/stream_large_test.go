package reporter_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// streamPage selects the columns that a page of many nodes needs.
func streamPage() reporter.ColumnFilter {
	w := reporter.ColumnFilter{Samples: []string{"timestamp"}, Envelope: []string{"timestamp"}}
	for c := range collector.NumColumns {
		if c.IsPercent() || c.Info().EnvelopeOnly {
			w.Envelope = append(w.Envelope, c.Key())
		}
	}
	return w
}

// streamLarge writes a large report.
func streamLarge(t testing.TB, nodes, buckets int) (path string, size int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "large.json")
	f, err := os.Create(path)
	check.Must(t, err)
	separator := ""
	for i := range nodes {
		head, node, _ := strings.Cut(string(encodedReport(t, reportertest.Large(i, nodes, buckets))), `"nodes": {`)
		if i == 0 {
			separator = head + `"nodes": {`
		}
		n, err := f.WriteString(separator + strings.TrimSuffix(node, "\n  }\n}\n"))
		check.Must(t, err)
		separator, size = ",", size+int64(n)
	}
	n, err := f.WriteString("\n  }\n}\n")
	check.Must(t, errors.Join(err, f.Close()))
	return path, size + int64(n)
}

// streamScan reads the columns that a page needs from a file.
func streamScan(t testing.TB, path string, node func(*reporter.Run, string, *reporter.Node) error) (*reporter.Run, error) {
	t.Helper()
	f, err := os.Open(path)
	check.Must(t, err)
	defer f.Close()
	st, err := f.Stat()
	check.Must(t, err)
	return reporter.Scan(f, st.Size(), streamPage(), node)
}

func TestScan_KeepsBurstInEnvelope(t *testing.T) {
	const nodes, buckets = 8, 500
	path, _ := streamLarge(t, nodes, buckets)
	next := 0
	run, err := streamScan(t, path, func(run *reporter.Run, name string, n *reporter.Node) error {
		band := n.Envelope["cpu_pct_per_cpu_avg"]
		at := slices.Index(band.Max, 100)
		burst := name == strconv.Itoa(reportertest.BurstNode(nodes))
		if name != strconv.Itoa(next) || len(band.Max) != buckets || burst != (at >= 0) || burst && at != reportertest.BurstBucket(buckets) {
			t.Errorf("node %s has %d points, want %d; burst in bucket %d, want %d on node %d and -1 on other nodes",
				name, len(band.Max), buckets, at, reportertest.BurstBucket(buckets), reportertest.BurstNode(nodes))
		}
		wantValues(t, "node "+name+": bands, columns and length of the samples, CPUs, metrics",
			fmt.Sprint("12 1 ", buckets, " 64 29"), len(n.Envelope), len(n.Samples.Keys), n.Samples.Len(), n.Host.CPUs,
			len(n.Metrics))
		next++
		return nil
	})
	check.Must(t, err)
	wantValues(t, "number of nodes, run ID", fmt.Sprint(nodes, " large"), next, run.ID)
}

// BenchmarkScan1000Nodes reads the columns for a page of 1,000 nodes × 1,000 buckets from a file of 1 GB.
func BenchmarkScan1000Nodes(b *testing.B) {
	testenv.SkipIfShort(b, "a file of 1 GB")
	path, size := streamLarge(b, 1000, 1000)
	b.SetBytes(size)
	// This write makes Linux reset the peak memory of the process.
	forgotten := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	for b.Loop() {
		if _, err := streamScan(b, path, func(*reporter.Run, string, *reporter.Node) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	if _, peak, ok := bytes.Cut(status, []byte("VmHWM:")); ok && forgotten == nil {
		kib, _ := strconv.ParseFloat(strings.Fields(string(peak))[0], 64)
		b.ReportMetric(kib/1024, "MiB-peak")
	}
}

// BenchmarkRead100Nodes reads a whole report of 100 nodes.
func BenchmarkRead100Nodes(b *testing.B) {
	path, size := streamLarge(b, 100, 1000)
	b.SetBytes(size)
	for b.Loop() {
		data, err := os.ReadFile(path)
		check.Must(b, err)
		if _, err := reporter.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
