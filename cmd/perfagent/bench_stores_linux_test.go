package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/store"
)

// BenchmarkStores measures stores with the reports of 1,000 nodes, each of 1,000 samples and 1 MB: a directory, and a
// Redis server and an S3 server on this machine. It puts single reports, merges all of them in full and by reference,
// and reads the result.
func BenchmarkStores(b *testing.B) {
	testenv.SkipIfShort(b, "1,000 reports of 1 MB in three stores")
	const nodes = 1000
	files := b.TempDir()
	largeRuns(b, files, nodes)
	for _, kind := range []struct{ name, address string }{
		{"directory", "file://" + b.TempDir()}, {"Redis", "redis://" + storetest.Redis(b)}, {"S3", storetest.S3(b).Address("large")},
	} {
		b.Run(kind.name, func(b *testing.B) {
			b.Run("put", func(b *testing.B) { benchmarkPut(b, kind.address, filepath.Join(files, "out/large"), nodes) })
			dir := b.TempDir()
			lazy := filepath.Join(dir, "lazy.json")
			for _, c := range []struct {
				name string
				args []string
			}{
				{"merge", []string{"merge", kind.address + "#large", "--to", filepath.Join(dir, "merged.json"), "--force", "--no-page"}},
				{"merge lazy", []string{"merge", kind.address + "#large", "--lazy", "--to", lazy, "--force"}},
				{"show lazy", []string{"show", lazy}},
				{"plot lazy", []string{"plot", lazy, "--node", "3", "--to", filepath.Join(dir, "3.svg"), "--force"}},
				{"ls", []string{"ls", kind.address}},
			} {
				b.Run(c.name, func(b *testing.B) {
					benchmarkCommand(b, c.args)
					if st, err := os.Stat(lazy); err == nil && c.name == "merge lazy" {
						b.ReportMetric(float64(st.Size())/nodes/1e3, "kB/node")
					}
				})
			}
		})
	}
}

// benchmarkPut stores the reports of all nodes as one run, and one byte for each of 1,000 other runs.
func benchmarkPut(b *testing.B, address, dir string, nodes int) {
	s, err := store.Open(address, store.Options{})
	check.Must(b, err)
	defer s.Close()
	var took []float64
	for range b.N {
		for i := range nodes {
			data := []byte(clitest.Read(b, filepath.Join(dir, fmt.Sprintf("node-%d.json", i))))
			begun := time.Now()
			check.Must(b, s.Replace(b.Context(), fmt.Sprintf("large/node-%d", i), data))
			took = append(took, time.Since(begun).Seconds()*1e3)
			check.Must(b, s.Replace(b.Context(), fmt.Sprintf("run-%d/node-0", i), []byte("x")))
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms")
	b.ReportMetric(took[len(took)*9/10], "p90-ms")
}

// BenchmarkSize measures commands on the reports of 1,000 nodes, each with 1,000 samples of 78 series (1 GB of JSON in
// total), stored as one run and as 1,000 runs of one node.
func BenchmarkSize(b *testing.B) {
	testenv.SkipIfShort(b, "1,000 reports of 1 MB")
	dir := b.TempDir()
	largeRuns(b, dir, 1000)
	merged := filepath.Join(dir, "merged.json")

	for _, c := range []struct {
		name string
		args []string
	}{
		{"merge", []string{"merge", "--out", dir + "/out", "large", "--to", merged, "--force"}},
		{"show", []string{"show", "--out", dir + "/out", "large"}},
		{"show merged", []string{"show", merged}},
		{"ls", []string{"ls", "--out", dir + "/runs"}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkCommand(b, c.args) })
	}
}

// benchmarkCommand measures the wall time, CPU time and peak memory of a command.
func benchmarkCommand(b *testing.B, args []string) {
	bin := clitest.Binary(b)
	var wall, cpu, memory []float64
	for b.Loop() {
		cmd := exec.Command(bin, args...)
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", args, err, out)
		}
		wall = append(wall, time.Since(start).Seconds())
		cpu = append(cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
		// The kernel includes the memory of this process, from which the child was forked.
		usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		memory = append(memory, float64(usage.Maxrss)/1024)
	}
	b.ReportMetric(clitest.Median(wall), "s")
	b.ReportMetric(clitest.Median(cpu), "cpu-s")
	b.ReportMetric(clitest.Median(memory), "max-rss-MiB")
}

// largeRuns writes a run named large below dir/out, and each of its nodes as a separate run below dir/runs.
func largeRuns(b *testing.B, dir string, nodes int) {
	b.Helper()
	for i := range nodes {
		r, err := diagnosis.Merge([]reporter.SourceReport{{Report: reportertest.Large(i, nodes, 1000)}}) // with findings
		check.Must(b, err)
		name := fmt.Sprintf("node-%d.json", i)
		path, alone := filepath.Join(dir, "out/large", name), filepath.Join(dir, "runs", fmt.Sprint("r", i))
		writeReport(b, path, r)
		check.Must(b, errors.Join(os.MkdirAll(alone, 0o755), os.Link(path, filepath.Join(alone, name))))
	}
}
