//go:build e2e

package main

import (
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// The peak memory equals the value of GNU time for the same job.
func TestE2E_Sampling_PeakMemoryEqualsGNUTime(t *testing.T) {
	t.Parallel()
	const gnuTime = "/usr/bin/time"
	if out, err := exec.Command(gnuTime, "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), "GNU") {
		testenv.SkipOrFail(t, "GNU time is missing: apt-get install time")
	}
	o := clitest.RunCommand(t, clitest.AsHelper(clitest.Perfagent(t, "run", "--", gnuTime, "-f", "%M"), "hog")) // both measure the same process
	o.Want(t, 0)
	kib, err := strconv.ParseFloat(strings.TrimSpace(o.Err), 64)
	check.Must(t, err)
	r := o.Report(t)
	got, want := r.Nodes["0"].Metrics["job_max_rss_mb"], kib/1024
	if math.Abs(got-want) > want/100 || r.Nodes["0"].Job.MaxRSSAtMost {
		t.Errorf("peak %.1f MiB (upper bound: %v), want GNU time's %.1f MiB within 1 %%",
			got, r.Nodes["0"].Job.MaxRSSAtMost, want)
	}
	if w := r.Run.WallSeconds; w < 0.3 || w > 600 {
		t.Errorf("the run took %v s, want 0.3 to 600", w)
	}
}
