package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter"
)

// findingGroups creates cgroup v1 groups with settings of the form CONTROLLER/FILE=VALUE. It returns a shell script
// that enters the groups and executes perfagent run, and the directories by controller.
func findingGroups(t *testing.T, settings ...string) (enter string, dirs map[string]string) {
	t.Helper()
	name := fmt.Sprintf("perfagent-finding-%d-%s", os.Getpid(), strings.ToLower(filepath.Base(t.Name())))
	dirs = make(map[string]string)
	for _, s := range settings {
		path, value, _ := strings.Cut(s, "=")
		controller, file, _ := strings.Cut(path, "/")
		dir := dirs[controller]
		if dir == "" {
			dir = filepath.Join("/sys/fs/cgroup", controller, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Skipf("cannot create a cgroup v1 group for %s (run as root on a system with cgroup v1): %v", controller, err)
			}
			t.Cleanup(func() {
				clitest.WaitUntil(t, dir+" is gone", func() bool { return unix.Rmdir(dir) == nil || !clitest.Exists(dir) })
			})
			dirs[controller], enter = dir, enter+"echo $$ > "+dir+"/cgroup.procs && "
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
			t.Skipf("%s: %v", s, err)
		}
	}
	return enter + `exec "$P" run --disk-path /dev -- "$@"`, dirs
}

// findingJob runs a Python job with the script of findingGroups. It returns the report of the node and the job's
// output.
func findingJob(t *testing.T, enter string, lines ...string) (n *reporter.Node, out string) {
	t.Helper()
	o := mustExit(t, 0, clitest.Script(t, "sh", enter, clitest.Python(t, lines...)...))
	n = o.Report(t).Nodes["0"]
	// Findings about a stalled or shared machine do not depend on the job.
	n.Findings = slices.DeleteFunc(n.Findings, func(f reporter.Finding) bool {
		return f.ID == "neighbour" || f.ID == "sampling_gaps" && n.Sampling.MissedTicks > 0
	})
	t.Logf("job %+v\nlimits %+v\nmetrics %v\nfindings %+v", n.Job, n.Limits, n.Metrics, n.Findings)
	return n, o.Out
}

// wantFinding checks that the node has exactly one finding, with the given ID and words, and returns it.
func wantFinding(t *testing.T, n *reporter.Node, id string, words ...string) reporter.Finding {
	t.Helper()
	if len(n.Findings) != 1 || n.Findings[0].ID != id {
		t.Fatalf("findings %+v, want only %s", n.Findings, id)
	}
	f := n.Findings[0]
	for _, w := range words {
		if !strings.Contains(f.Text, w) {
			t.Errorf("finding %s lacks %q: %s", id, w, f.Text)
		}
	}
	return f
}

func findingNumber(t *testing.T, f reporter.Finding, key string) float64 {
	t.Helper()
	v, ok := f.Evidence[key].(float64)
	if !ok {
		t.Errorf("evidence of finding %s lacks the number %s: %v", f.ID, key, f.Evidence)
	}
	return v
}

// busy is Python code that keeps a CPU busy for some seconds.
const busy = `
import os, time
def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
`

// A real job under a real limit has exactly the finding for it, and a job that fits its limits has none.
func TestFindings_RealJobHasOnlyExpectedFinding(t *testing.T) {
	t.Parallel()

	const weight = "cpu/cpu.shares=262144" // a large weight gives the group its CPUs under any load
	t.Run("OneThread", func(t *testing.T) {
		t.Parallel()
		enter, _ := findingGroups(t, weight)
		var n *reporter.Node
		for trial := 1; ; trial++ {
			var out string
			var share float64 // CPU share of the job by its own clocks
			n, out = findingJob(t, enter, busy, "began = time.monotonic()", "busy(6)", "print(time.process_time() / (time.monotonic() - began))")
			_, err := fmt.Sscan(out, &share)
			check.Must(t, err)
			if share >= 0.95 || trial == 5 {
				break
			}
			t.Logf("trial %d: other processes took the CPU, and the job used only %.2f of one", trial, share)
		}
		if n.Limits.CPUs < 2 {
			t.Skipf("needs at least two CPUs, has %v", n.Limits.CPUs)
		}
		f := wantFinding(t, n, "one_busy_thread", fmt.Sprintf(" of its %v CPUs", n.Limits.CPUs), "in parallel")
		if v := findingNumber(t, f, "avg_cpus"); v < 0.85 || v > 1.15 {
			t.Errorf("avg_cpus %v, want 0.85 to 1.15", v)
		}
	})

	t.Run("UnusedMemory", func(t *testing.T) {
		t.Parallel()
		enter, _ := findingGroups(t, weight, "memory/memory.limit_in_bytes=1073741824")
		var n *reporter.Node
		for trial := 1; ; trial++ {
			n, _ = findingJob(t, enter, "import time", "held = bytearray(40 << 20)", "time.sleep(6)")
			if n.Job.UnownedMB < 50 || trial == 5 {
				break
			}
			t.Logf("trial %d: shared memory grew by %v MiB, which may be the job's or another process's", trial, n.Job.UnownedMB)
		}
		f := wantFinding(t, n, "memory_unused", "Set the limit to ", " instead of 1 GiB")
		peak, ask := findingNumber(t, f, "peak_mb"), findingNumber(t, f, "ask_mb")
		if limit := findingNumber(t, f, "limit_mb"); limit != 1024 || peak < 40 || ask < 2*peak || ask >= limit/2*1.25 {
			t.Errorf("peak_mb %v, ask_mb %v, limit_mb %v; want limit 1024, peak at least 40, ask between 2x peak and 640",
				peak, ask, limit)
		}
	})

	t.Run("Throttled", func(t *testing.T) {
		t.Parallel()
		enter, dirs := findingGroups(t, weight, "cpu/cpu.cfs_period_us=100000", "cpu/cpu.cfs_quota_us=50000")
		stat := fmt.Sprintf("if child: print(open(%q).read())", dirs["cpu"]+"/cpu.stat")
		n, out := findingJob(t, enter, busy, "child = os.fork()", stat, "busy(6)", "if child: os.wait()", stat)
		whole := clitest.Read(t, dirs["cpu"]+"/cpu.stat") // the group is new, so these counters cover only the job
		halves := strings.SplitAfterN(out, "\n\n", 2)     // print adds an empty line
		if len(halves) != 2 {
			t.Fatalf("the job printed %q, want cpu.stat twice", out)
		}
		clitest.WantThrottled(t, n, findingCounters(t, halves[0]), findingCounters(t, halves[1]), findingCounters(t, whole))
		f := wantFinding(t, n, "throttled", "Ask for more CPUs", "quota of 0.5 CPUs")
		if got := findingNumber(t, f, "throttled_periods_pct"); math.Abs(got-n.Metrics["job_throttled_periods_pct"]) > 0.001 || got < 50 {
			t.Errorf("throttled_periods_pct = %v, want %v, as in the metric, and at least 50", got, n.Metrics["job_throttled_periods_pct"])
		}
	})

	t.Run("JobFitsLimits", func(t *testing.T) {
		t.Parallel()
		enter, _ := findingGroups(t, weight, "cpuset/cpuset.mems=0", "cpuset/cpuset.cpus=0", "memory/memory.limit_in_bytes=268435456")
		n, _ := findingJob(t, enter, busy, "held = bytearray(150 << 20)", "for i in range(6):", "    busy(0.3)", "    time.sleep(0.7)")
		if n.Limits.CPUs != 1 || n.Limits.MemoryMB != 256 || n.Findings == nil || len(n.Findings) > 0 {
			t.Errorf("limits %+v, findings %#v; want 1 CPU, 256 MiB, and an empty list of findings", n.Limits, n.Findings)
		}
	})
}

// findingCounters parses the cpu.stat of a cgroup v1 group.
func findingCounters(t *testing.T, stat string) clitest.Counters {
	t.Helper()
	value := make(map[string]float64)
	for line := range strings.Lines(stat) {
		var key string
		var v float64
		if n, _ := fmt.Sscan(line, &key, &v); n == 2 {
			value[key] = v
		}
	}
	if len(value) < 3 {
		t.Fatalf("counters of cpu.stat lack usage, periods or throttled time: %q", stat)
	}
	return clitest.Counters{Periods: value["nr_periods"], Throttled: value["nr_throttled"], ThrottledFor: value["throttled_time"] / 1e9}
}
