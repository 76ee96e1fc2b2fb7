package summary

import (
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// push writes the results of the nodes' pushes to MLflow and into stores, if any were requested. At the end of a run
// both pushes are still pending, and push writes nothing.
func (p *terminalWriter) push(r *reporter.Report) {
	p.pushStates(r, "MLflow", func(push *reporter.Push) string { return pushText(push.MLflow) })
	p.pushStates(r, "store", func(push *reporter.Push) string { return storeText(push.Store) })
}

// pushStates writes a line for each different state of the pushes to one destination, with its number of nodes.
func (p *terminalWriter) pushStates(r *reporter.Report, label string, textOf func(*reporter.Push) string) {
	var states nodeMessages
	for name, n := range r.EachNode() {
		if n.Push == nil {
			continue
		}
		if words := textOf(n.Push); words != "" {
			states.add(words, name)
		}
	}

	for i, s := range states {
		if i == 3 { // each of a thousand nodes may have failed for a different reason
			p.text(plain, "", fmt.Sprintf("and %d more answers", len(states)-i))
			return
		}
		look := plain
		if !strings.HasPrefix(s.text, pushDonePrefix) {
			look = alarm
		}
		if len(r.Nodes) > 1 {
			s.text = fmt.Sprintf("%d of %d nodes: %s", len(s.nodes), len(r.Nodes), s.text)
		}
		p.wrapped(look, label, s.text, 5)
		label = ""
	}
}

// pushDonePrefix begins the text on a finished push.
const pushDonePrefix = "done: "

// storeText returns the location of a report in a store, or the reason why it is not there; "" if there is nothing to
// report. The location ends with the run, so that all nodes in a store have the same text.
func storeText(s *reporter.StoreState) string {
	switch {
	case s == nil:
		return ""
	case s.State == reporter.PushDone:
		run, _, _ := strings.Cut(s.Reference, "/node-")
		return pushDonePrefix + text.Printable(run)
	case s.Error == "":
		return ""
	}
	return "pending (perfagent push --store puts it there): " + text.Printable(s.Error)
}

// pushText returns the state of a push, or "" if there is nothing to report.
func pushText(s reporter.PushState) string {
	why := text.Printable(s.Error)
	switch {
	case s.State == reporter.PushDone:
		done := fmt.Sprintf("%srun %s at %s", pushDonePrefix, text.Printable(s.RunID), text.Printable(s.URI))
		return strings.TrimSuffix(done+"; "+why, "; ")
	case s.Error == "":
		return ""
	case s.State == reporter.PushPending:
		return "pending (perfagent push sends it): " + why
	}
	return "off: " + why
}

// pushDetails returns the state of a push and its destination, or "" if no push was requested.
func pushDetails(s reporter.PushState) string {
	var words text.Parts
	add := func(label, value string) { words.Add(value != "", "%s%s", label, text.Printable(value)) }
	add("run ", s.RunID)
	add("at ", s.URI)
	add("experiment ", s.ExperimentName)
	add("experiment ", s.ExperimentID)
	add("", s.Error)
	if len(words) == 0 && s.State != reporter.PushPending {
		return ""
	}
	return strings.Join(append([]string{text.Printable(s.State)}, words...), "; ")
}
