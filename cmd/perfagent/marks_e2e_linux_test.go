//go:build e2e

package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
)

// The numbers of each phase agree with the kernel's counters at the boundaries of the phase, within the usage of one
// interval per boundary.
func TestE2E_Marks_AgreeWithTheKernel(t *testing.T) {
	t.Parallel()
	const interval = 0.1
	o := mustRun(t, 0, "run", "--interval", "100ms", "--", testenv.Python(t), "-c", kernelJob)
	n := wantPhases(t, o.Report(t), "load", "wait", "train", "save")

	type numbers struct{ cpu, written, seconds float64 }
	var last numbers
	var of string
	kernel := make(map[string]numbers)
	for line := range strings.Lines(o.Out) {
		var name string
		var now numbers
		if _, err := fmt.Sscan(line, &name, &now.cpu, &now.written, &now.seconds); err != nil {
			t.Fatalf("line %q: %v, want a name and three numbers", line, err)
		}
		k := kernel[of]
		kernel[of] = numbers{k.cpu + now.cpu - last.cpu, k.written + now.written - last.written, k.seconds + now.seconds - last.seconds}
		last, of = now, name
	}

	// On a busy machine, samples may be late.
	gap := max(interval, n.Sampling.LongestGapSeconds)
	for _, p := range n.Phases {
		k, boundaries := kernel[p.Name], float64(2*p.Count)
		for _, c := range []struct {
			what             string
			got, want, slack float64
		}{
			{"CPU seconds", p.Metrics["job_cpu_seconds"], k.cpu, boundaries*gap + 0.03},
			{"seconds", p.Seconds, k.seconds, 0.05 + gap}, // a line may be written a sample after its time
			{"MiB written", p.Metrics["total_job_io_write_mb"], k.written, 1 + k.written*0.05},
		} {
			if c.what == "MiB written" && gap > 2*interval {
				continue // a late sample may contain all of the writes
			}
			if math.Abs(c.got-c.want) > c.slack {
				t.Errorf("phase %s: %v %s, want the kernel's %v within %v (longest gap %v s)",
					p.Name, c.got, c.what, c.want, c.slack, gap)
			}
		}
	}

	train, wait := n.Phase("train").Metrics["job_peak_memory_mb"], n.Phase("wait").Metrics["job_peak_memory_mb"]
	if train < 200 || wait > 100 {
		t.Errorf("peak memory %v MiB in train, %v MiB in wait; want at least 200, at most 100", train, wait)
	}
	whole := n.Metrics["job_cpu_seconds"]
	sum := 0.0
	for _, p := range n.Phases {
		sum += p.Metrics["job_cpu_seconds"]
	}
	if sum > whole+1e-3 || sum < whole-0.5 {
		t.Errorf("the phases sum to %v CPU seconds, want at most 0.5 less than the job's %v", sum, whole)
	}
}
