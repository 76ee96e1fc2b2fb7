package diagnosis

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/reporter"
)

// The advice says how many processes were killed, and at which limit.
func TestKilledForMemory(t *testing.T) {
	t.Parallel()
	for kills, want := range map[float64]string{
		1: "The kernel killed 1 process at the memory limit of 256 MiB: ask for at least 384 MiB.",
		3: "The kernel killed 3 processes at the memory limit of 256 MiB: ask for at least 384 MiB.",
	} {
		n := &reporter.Node{Verdict: &reporter.Verdict{
			Cause: CauseOOMCgroup, Evidence: map[string]any{"limit_mb": 256.0, "limit_kills": kills},
		}}
		if f := KilledForMemory(n); f == nil || f.Text != want {
			t.Errorf("%v kills: %+v, want %q", kills, f, want)
		}
	}

	if text := crashText("SIGSEGV"); !strings.Contains(text, "segmentation fault") {
		t.Errorf("SIGSEGV: %q", text)
	}
}
