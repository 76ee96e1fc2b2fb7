//go:build e2e

package main

import (
	"runtime"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter"
)

// With twice as many busy loops as CPUs, a job with one loop gets less than one CPU, and its report has the finding.
func TestE2E_Finding_NamesNeighbourThatTakesCPU(t *testing.T) {
	clitest.Binary(t) // build before starting the loops, which are short-lived
	const loop = "while :; do :; done"
	for range 2 * runtime.NumCPU() {
		other := clitest.Command(t, "timeout", "60", "sh", "-c", loop)
		check.Must(t, other.Start())
		t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	}

	n := clitest.Run(t, "run", "--summary", "never", "--", "sh", "-c", "timeout 6 sh -c '"+loop+"'; true").Report(t).Nodes["0"]
	// Other findings may be about the busy machine or its disks.
	n.Findings = slices.DeleteFunc(n.Findings, func(f reporter.Finding) bool { return f.ID != "neighbour" })
	f := wantFinding(t, n, "neighbour")
	cpus := float64(runtime.NumCPU())
	if others := findingNumber(t, f, "others_cpus"); f.Evidence["resource"] != "cpu" || others < cpus/4 || others > cpus ||
		findingNumber(t, f, "cpus") != cpus || findingNumber(t, f, "job_cpus") > 1 || findingNumber(t, f, "waiting_pct") < 20 {
		t.Errorf("evidence %v, want resource cpu, %v CPUs, at most 1 for the job, a quarter or more for others", f.Evidence, cpus)
	}
}
