package diagnosis

import (
	"fmt"
	"path"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// heaviestText returns the words that name the process with the highest peak memory, such as "the
// heaviest is python3 (14448) with 1.7 GiB", or "" if none is known.
func heaviestText(n *reporter.Node) string {
	p, ok := n.Heaviest()
	if !ok {
		return ""
	}
	return fmt.Sprintf("the heaviest is %s (%d) with %s", programOf(p), p.PID, text.SizeText(p.PeakMemoryMB))
}

// programOf returns the name of the program that a process executes.
func programOf(p reporter.Process) string {
	words := strings.Fields(strings.Trim(p.Command, "[]"))
	if len(words) == 0 {
		return "a process"
	}
	return text.Clip(text.Printable(path.Base(words[0])), 40)
}

// noteHeaviest adds the heaviest process to the evidence of a kill for memory, and returns the words for
// it.
func (q *verdictInput) noteHeaviest() string {
	words := heaviestText(q.node)
	if words == "" {
		return ""
	}
	p, _ := q.node.Heaviest()
	q.evidence["heaviest"] = programOf(p)
	q.note("heaviest_pid", float64(p.PID))
	q.note("heaviest_mb", p.PeakMemoryMB)
	return "; " + words
}
