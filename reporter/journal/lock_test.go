package journal

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/reporter"
)

// The lock decides on this machine; on others it is silence, too.
func TestWriter_AtWork(t *testing.T) {
	t.Parallel()
	node := func(boot string, interval float64) *reporter.Node {
		return &reporter.Node{Host: &reporter.Host{BootID: boot}, Sampling: &reporter.Sampling{IntervalSeconds: interval}}
	}
	here, there, slow := node("a", 1), node("b", 1), node("b", 60)
	for _, c := range []struct {
		name    string
		writer  Writer
		node    *reporter.Node
		silence time.Duration
		want    bool
	}{
		{"its lock is held", Alive, here, time.Hour, true},
		{"its lock is held, nothing is known", Alive, nil, time.Hour, true},
		{"its lock is free here", Gone, here, 0, false},
		{"free, but perhaps invisible", Gone, there, 10 * time.Second, true},
		{"free, and silent", Gone, there, 11 * time.Second, false},
		{"no locks", Unknown, here, 10 * time.Second, true},
		{"no locks, and silent", Unknown, here, 11 * time.Second, false},
		{"a long interval", Gone, slow, 3 * time.Minute, true},
		{"silent for a long interval", Gone, slow, 181 * time.Second, false},
		{"no first line", Gone, nil, 10 * time.Second, true},
		{"no first line, and silent", Gone, nil, 11 * time.Second, false},
		{"an interval that no Duration holds", Unknown, node("b", 1e300), 11 * time.Second, false},
	} {
		if got := c.writer.AtWork(c.node, "a", c.silence); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
