package journal

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/reporter"
)

// On this machine, the lock decides. For other machines, the silence of the journal also matters.
func TestWriterState_IsActiveDependsOnLockAndSilence(t *testing.T) {
	t.Parallel()
	node := func(boot string, interval float64) *reporter.Node {
		return &reporter.Node{Host: &reporter.Host{BootID: boot}, Sampling: &reporter.Sampling{IntervalSeconds: interval}}
	}
	here, there, slow := node("a", 1), node("b", 1), node("b", 60)
	for _, c := range []struct {
		name    string
		writer  WriterState
		node    *reporter.Node
		silence time.Duration
		want    bool
	}{
		{"lock held", WriterAlive, here, time.Hour, true},
		{"lock held, unknown node", WriterAlive, nil, time.Hour, true},
		{"lock free on this machine", WriterGone, here, 0, false},
		{"lock free on another machine", WriterGone, there, 10 * time.Second, true},
		{"lock free on another machine, silent", WriterGone, there, 11 * time.Second, false},
		{"no locks", WriterUnknown, here, 10 * time.Second, true},
		{"no locks, silent", WriterUnknown, here, 11 * time.Second, false},
		{"long interval", WriterGone, slow, 3 * time.Minute, true},
		{"long interval, silent", WriterGone, slow, 181 * time.Second, false},
		{"unknown node", WriterGone, nil, 10 * time.Second, true},
		{"unknown node, silent", WriterGone, nil, 11 * time.Second, false},
		{"interval too long for a Duration", WriterUnknown, node("b", 1e300), 11 * time.Second, false},
	} {
		if got := c.writer.IsActive(c.node, "a", c.silence); got != c.want {
			t.Errorf("%s: IsActive is %t, want %t", c.name, got, c.want)
		}
	}
}
