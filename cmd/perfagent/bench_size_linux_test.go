package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// BenchmarkSize measures commands on the reports of 1,000 nodes, each with 1,000 samples of 78 series (1 GB of JSON in
// total), stored as one run and as 1,000 runs of one node.
func BenchmarkSize(b *testing.B) {
	testenv.SkipIfShort(b, "1,000 reports of 1 MB")
	bin, dir := clitest.Binary(b), b.TempDir()
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
		b.Run(c.name, func(b *testing.B) {
			var wall, cpu, memory []float64
			for b.Loop() {
				cmd := exec.Command(bin, c.args...)
				start := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %v\n%s", c.args, err, out)
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
		})
	}
}

// largeRuns writes a run named large below dir/out, and each of its nodes as a separate run below dir/runs.
func largeRuns(b *testing.B, dir string, nodes int) {
	b.Helper()
	for i := range nodes {
		r, err := diagnosis.Merge([]reporter.SourceReport{{Report: reportertest.Large(i, nodes, 1000)}}) // with findings
		if err != nil {
			b.Fatal(err)
		}
		data, err := reporter.Encode(r)
		if err != nil {
			b.Fatal(err)
		}

		name := fmt.Sprintf("node-%d.json", i)
		run, alone := filepath.Join(dir, "out/large"), filepath.Join(dir, "runs", fmt.Sprint("r", i))
		for _, err := range []error{
			os.MkdirAll(run, 0o755), os.MkdirAll(alone, 0o755), os.WriteFile(filepath.Join(run, name), data, 0o644),
			os.Link(filepath.Join(run, name), filepath.Join(alone, name)),
		} {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
