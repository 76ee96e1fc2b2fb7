package journal

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/reporter"
)

// On this machine the lock decides; on others the silence does, too.
func TestWriterState_IsActive(t *testing.T) {
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
		{"its lock is held", WriterAlive, here, time.Hour, true},
		{"its lock is held, nothing is known", WriterAlive, nil, time.Hour, true},
		{"its lock is free here", WriterGone, here, 0, false},
		{"free, but perhaps invisible", WriterGone, there, 10 * time.Second, true},
		{"free, and silent", WriterGone, there, 11 * time.Second, false},
		{"no locks", WriterUnknown, here, 10 * time.Second, true},
		{"no locks, and silent", WriterUnknown, here, 11 * time.Second, false},
		{"a long interval", WriterGone, slow, 3 * time.Minute, true},
		{"silent for a long interval", WriterGone, slow, 181 * time.Second, false},
		{"no first line", WriterGone, nil, 10 * time.Second, true},
		{"no first line, and silent", WriterGone, nil, 11 * time.Second, false},
		{"an interval that no Duration holds", WriterUnknown, node("b", 1e300), 11 * time.Second, false},
	} {
		if got := c.writer.IsActive(c.node, "a", c.silence); got != c.want {
			t.Errorf("%s: IsActive is %t, want %t", c.name, got, c.want)
		}
	}
}
