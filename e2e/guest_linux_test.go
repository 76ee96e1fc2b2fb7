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

// guest returns the path of testdata/guest, a program for machines and containers without other programs.
func guest(t testing.TB) string {
	t.Helper()
	return clitest.BuildOnce(t, "guest", func(path string) *exec.Cmd {
		return exec.Command("go", "build", "-trimpath", "-o", path, "./testdata/guest")
	})
}

// busybox returns a statically linked shell.
func busybox(t testing.TB) string {
	t.Helper()
	return testenv.NeedsTool(t, "busybox", "apt-get install busybox-static (make e2e does it as root)")
}

// guestTruth parses the kernel's values that a job printed before and after its work.
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
	t.Fatalf("the job printed no counters of the kernel: %q", out)
	return before, after
}

// guestSource checks the source of the job's numbers, and how its memory is counted.
func guestSource(t *testing.T, n *reporter.Node, source string) {
	t.Helper()
	kind := n.Job.MemoryKind
	// If perfagent's own usage is too uncertain relative to a small job, the job's processes are the source, not its
	// group.
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

// guestKillsAlone serializes the tests with OOM kills: every perfagent of the host investigates a kill, and one in a
// group that has just run out of memory may be killed for the memory that this needs.
func guestKillsAlone(t *testing.T) {
	t.Helper()
	guestKills.Lock()
	t.Cleanup(guestKills.Unlock)
}

// guestKilled checks the verdict on a control group's limit, in MiB.
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
		t.Errorf("peak_mb %v, want about %v", v.Evidence["peak_mb"], limit)
	}
	text, _ := v.Evidence["time"].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Before(run.Start.Add(-time.Millisecond)) || at.After(run.End.Add(time.Second)) {
		t.Errorf("time of the kill %q (%v), want it between %v and %v", text, err, run.Start, run.End)
	}
}

// guestNear checks that two numbers differ by at most a share of the second.
func guestNear(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*want) {
		t.Errorf("%s is %v, want the kernel's %v", what, got, want)
	}
}

// guestCPU compares CPU seconds with the kernel's, which grow until the guest ends.
func guestCPU(t *testing.T, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 0.01*want+0.02) {
		t.Errorf("%v s of CPU time, want the kernel's %v", got, want)
	}
}

// guestMissing checks that a value is missing, for a reason with these words.
func guestMissing(t *testing.T, n *reporter.Node, what string, words ...string) {
	t.Helper()
	found := slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool {
		return m.What == what && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(m.Why, w) })
	})
	if !found {
		t.Errorf("no entry %q with %q in missing %+v", what, words, n.Missing)
	}
}
