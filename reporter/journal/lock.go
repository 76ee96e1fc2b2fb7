package journal

import (
	"time"

	"github.com/perfagent/perfagent/reporter"
)

// A WriterState is the state of the agent that writes a journal, according to the journal's lock.
type WriterState int

// WriterUnknown means that the file system has no locks, or keeps them local to each machine.
const (
	WriterUnknown WriterState = iota
	WriterAlive               // the agent holds the lock
	WriterGone                // the lock is free; an agent on another machine may not be visible
)

// IsLocked reports whether an agent on this machine is still writing the journal.
func IsLocked(journal string) bool { return ReadWriterState(journal) == WriterAlive }

// IsActive reports whether an agent seems to be writing a journal that has not grown for the duration silence. n is the
// node from the journal, or nil if unknown. boot is the boot ID of this machine.
//
// The state of the lock is certain if the node is this machine. A lock that another machine holds may be invisible; the
// agent then counts as active until its journal has been silent for longer than MaxSilence.
func (w WriterState) IsActive(n *reporter.Node, boot string, silence time.Duration) bool {
	here := n != nil && n.Host != nil && n.Host.BootID != "" && n.Host.BootID == boot
	return w == WriterAlive || !(w == WriterGone && here) && silence <= MaxSilence(n)
}

// MaxSilence returns the time for which a journal may stay unchanged while its agent is active: three intervals, and at
// least 10 s, because a shared file system shows the changes of other machines late. n may be nil.
func MaxSilence(n *reporter.Node) time.Duration {
	const least, longest = 10 * time.Second, 1e9 // seconds that fit in a Duration
	if n == nil || n.Sampling == nil || !(n.Sampling.IntervalSeconds < longest) {
		return least
	}
	return max(least, time.Duration(3*n.Sampling.IntervalSeconds*float64(time.Second)))
}
