package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/internal/testenv"
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
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var took []float64
	for range b.N {
		for i := range nodes {
			data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("node-%d.json", i)))
			if err != nil {
				b.Fatal(err)
			}
			begun := time.Now()
			if err := s.Replace(b.Context(), fmt.Sprintf("large/node-%d", i), data); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begun).Seconds()*1e3)
			if err := s.Replace(b.Context(), fmt.Sprintf("run-%d/node-0", i), []byte("x")); err != nil {
				b.Fatal(err)
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms")
	b.ReportMetric(took[len(took)*9/10], "p90-ms")
}

// benchmarkCommand measures the wall time and peak memory of a command.
func benchmarkCommand(b *testing.B, args []string) {
	bin := clitest.Binary(b)
	var wall, memory []float64
	for b.Loop() {
		cmd := exec.Command(bin, args...)
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", args, err, out)
		}
		wall = append(wall, time.Since(start).Seconds())
		usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		memory = append(memory, float64(usage.Maxrss)/1024)
	}
	b.ReportMetric(clitest.Median(wall), "s")
	b.ReportMetric(clitest.Median(memory), "max-rss-MiB")
}
