package catalog

import (
	"fmt"
	"time"

	"github.com/perfagent/perfagent/internal/text"
)

const (
	// clockTolerance is how far the clock of a node may be from that of the file system.
	clockTolerance = time.Second

	// copyDelay is how long after the last change of its bytes a file may be renamed. A file that changed later was
	// copied, or unpacked, and its time is not that of the recording.
	copyDelay = time.Minute
)

// Clocks says which clocks of nodes are ahead of that of the file system, by how much, as far as reports show it.
//
// What the file system says when a report was written is later than the end of the run in it, never earlier: if it is
// earlier, the node's clock is ahead. A clock that is behind does not show: a copy or a push makes any file look late.
func (l *Launch) Clocks() []string {
	var out []string
	for i := range l.Nodes {
		n := &l.Nodes[i]
		host := ""
		if n.host != "" {
			host = " (" + n.host + ")"
		}
		for _, r := range n.Pieces {
			if ahead := r.clock(); ahead > 0 {
				out = append(out, fmt.Sprintf("the clock of node %d%s is at least %s s ahead of that of the file system: "+
					"times of this node are by its own clock", n.Index, host, text.Fixed(ahead.Seconds(), 1)))
				break
			}
		}
	}
	return out
}

// clock returns by how much the clock of a recording's node is ahead, at least; 0 if it is not, or not known.
func (r *Recording) clock() time.Duration {
	run := r.head.Run
	stepped := r.head.Sampling != nil && len(r.head.Sampling.ClockSteps) > 0
	if r.Report == "" || run.Incomplete != "" || run.End.IsZero() || stepped || wasCopied(r.Report) {
		return 0
	}
	if ahead := run.End.Sub(r.modified); ahead > clockTolerance {
		return ahead
	}

	return 0
}
