package catalog

import (
	"fmt"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/journal"
)

const (
	// clockTolerance is how far the clock of a node may be from that of the file system.
	clockTolerance = time.Second

	// journalDelay is how late a line of a journal may be on disk.
	journalDelay = 5 * time.Second

	// copyDelay is how long after the last change of its bytes a file may be renamed. A file that changed later was
	// copied, or unpacked, and its time is not that of the recording.
	copyDelay = time.Minute
)

// ClockWarnings says which clocks of nodes differ from that of the file system, and by how much.
//
// What the file system says when a file was written is later than the newest time in the file, never earlier: if it is
// earlier, the node's clock is ahead. A clock that is behind shows only while a journal is written, because a copy or a
// push makes any file look late.
func (l *Launch) ClockWarnings() []string {
	var out []string
	for i := range l.Nodes {
		n := &l.Nodes[i]
		host := ""
		if n.host != "" {
			host = " (" + n.host + ")"
		}
		for _, r := range n.Entries {
			if off := r.clockOffset(); off != 0 {
				words := "ahead of"
				if off < 0 {
					words = "behind"
				}
				out = append(out, fmt.Sprintf("the clock of node %d%s is at least %s s %s that of the file system: "+
					"times of this node are by its own clock", n.Index, host, text.Fixed(off.Abs().Seconds(), 1), words))
				break
			}
		}
	}
	return out
}

// clockOffset returns by how much the clock of a recording's node is off, at least; 0 if it is not, or not known.
func (r *Entry) clockOffset() time.Duration {
	if r.Report == "" {
		return r.journalClockOffset()
	}

	run := r.head.Run
	stepped := r.head.Sampling != nil && len(r.head.Sampling.ClockSteps) > 0
	if run.Incomplete != "" || run.End.IsZero() || stepped || wasCopied(r.Report) {
		return 0
	}
	if ahead := run.End.Sub(r.modified); ahead > clockTolerance {
		return ahead
	}

	return 0
}

// journalClockOffset is clock for a journal.
func (r *Entry) journalClockOffset() time.Duration {
	newest, written, ok := journal.NewestTimes(r.Journal)
	if !ok || wasCopied(r.Journal) {
		return 0
	}

	switch ahead := newest.Sub(written); {
	case ahead > clockTolerance:
		return ahead
	case -ahead > clockTolerance+journalDelay && r.isActive(nil):
		return ahead + journalDelay
	}

	return 0
}
