//go:build e2e

package e2e

import (
	"encoding/json"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

const guestMiB = 1 << 20

// guest returns the path of the program in testdata/guest, which is for machines and containers without other programs.
func guest(t testing.TB) string {
	t.Helper()
	return clitest.BuildOnce(t, "guest", func(path string) *exec.Cmd {
		return exec.Command("go", "build", "-trimpath", "-o", path, "./testdata/guest")
	})
}

// busybox returns the path of a statically linked shell.
func busybox(t testing.TB) string {
	t.Helper()
	return testenv.NeedsTool(t, "busybox", "apt-get install busybox-static (make e2e does it as root)")
}

// guestTruth parses the kernel's counters that a job printed: before and after its work.
func guestTruth(t *testing.T, out string) (before, after clitest.Counters) {
	t.Helper()
	for line := range strings.Lines(out) {
		text, found := strings.CutPrefix(line, "truth ")
		if !found {
			continue
		}
		var both [2]clitest.Counters
		if err := json.Unmarshal([]byte(text), &both); err != nil {
			t.Fatal(err)
		}
		return both[0], both[1]
	}
	t.Fatalf("the job did not print the kernel's counters: %q", out)
	return before, after
}

// guestSource checks the source of the job's numbers, and the kind of its memory.
func guestSource(t *testing.T, n *reporter.Node, source string) {
	t.Helper()
	kind := n.Job.MemoryKind
	// If perfagent's own usage is too uncertain relative to a small job, the source is the job's processes instead of
	// its group.
	_, known := n.Metrics["job_peak_memory_mb"]
	if n.Job.Source != source || kind == host.MemoryGroup && source == host.JobFromTree || known != (n.Job.PeakMemoryMB > 0) {
		t.Errorf("source %q, memory %q, want source %q; missing: %+v", n.Job.Source, n.Job.MemoryKind, source, n.Missing)
	}
}

// guestLimits checks the limits of the job; 0 = none.
func guestLimits(t *testing.T, n *reporter.Node, cpus, memory float64) {
	t.Helper()
	if n.Limits == nil || n.Limits.CPUs != cpus || float64(n.Limits.MemoryMB) != memory {
		t.Errorf("limits %+v, want %v CPUs and %v MiB", n.Limits, cpus, memory)
	}
}

var guestKills sync.Mutex

// guestKillsAlone serializes the tests with OOM kills. Every perfagent on the host investigates each kill, which takes
// memory. In a group that has just run out of memory, perfagent itself may be killed for this.
func guestKillsAlone(t *testing.T) {
	t.Helper()
	guestKills.Lock()
	t.Cleanup(guestKills.Unlock)
}

// guestKilled checks the verdict on a job that was killed at the limit of a control group. limit is in MiB.
func guestKilled(t *testing.T, n *reporter.Node, run reporter.Run, limit float64) {
	t.Helper()
	v := n.Verdict
	if v == nil || v.Cause != "oom_cgroup" {
		t.Fatalf("verdict %+v, want oom_cgroup", v)
	}
	if v.Evidence["limit_mb"] != limit || v.Evidence["oom_kills"] != 1.0 {
		t.Errorf("evidence %v, want limit_mb %v and oom_kills 1", v.Evidence, limit)
	}
	// The kernel may charge a few pages more than the limit.
	if peak, ok := v.Evidence["peak_mb"].(float64); !ok || peak > 1.01*limit || peak < 0.95*limit {
		t.Errorf("peak_mb = %v, want about %v", v.Evidence["peak_mb"], limit)
	}
	text, _ := v.Evidence["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Before(run.Start.Add(-time.Millisecond)) || at.After(run.End.Add(time.Minute)) {
		t.Errorf("time of the kill = %q (%v), want a time between %v and %v", text, err, run.Start, run.End)
	}
}

// guestNear checks that got differs from want by at most share*want.
func guestNear(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*want) {
		t.Errorf("%s = %v, want the kernel's %v", what, got, want)
	}
}

// guestCPU compares the job's CPU time with the kernel's counter, which grows until the guest ends. Both are in
// seconds.
func guestCPU(t *testing.T, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 0.01*want+0.02) {
		t.Errorf("CPU time = %v s, want the kernel's %v s", got, want)
	}
}

// guestMissing checks that a value is missing, for a reason that contains all words.
func guestMissing(t *testing.T, n *reporter.Node, what string, words ...string) {
	t.Helper()
	found := slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
		return m.What == what && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(m.Why, w) })
	})
	if !found {
		t.Errorf("missing has no entry %q with %q: %+v", what, words, n.Missing)
	}
}
