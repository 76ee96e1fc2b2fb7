package catalog

import (
	"fmt"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter/journal"
)

const (
	// clockTolerance is the tolerated difference between the clocks of a node and of the file system.
	clockTolerance = time.Second

	// journalDelay is the maximum time before a line of a journal is on disk.
	journalDelay = 5 * time.Second

	// copyDelay is the maximum time between the last write to a file and its renaming. If the inode changed later, the
	// file was copied or unpacked, and its modification time is unrelated to the recording.
	copyDelay = time.Minute
)

// ClockWarnings returns warnings for nodes with a clock that differs from the file system's.
//
// A file's modification time should be later than the newest time in the file. If it is earlier, the node's clock is
// ahead. A clock that is behind can be detected only while a journal is being written, because a later copy or push
// gives the file a later modification time.
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

// clockOffset returns a lower bound of how far the clock of the recording's node is ahead. It is negative if the clock
// is behind, and 0 if the clock is right or the offset is unknown.
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

// journalClockOffset returns the clockOffset of a recording that has only a journal.
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
