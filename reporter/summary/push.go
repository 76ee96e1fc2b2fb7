package summary

import (
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// push writes what became of the nodes' pushes to MLflow and of their puts into stores, if they were wanted. At the end
// of a run both are still to come, and push writes nothing.
func (p *layout) push(r *reporter.Report) {
	p.sink(r, "MLflow", func(push *reporter.Push) (said string, done bool) {
		return pushText(push.MLflow), push.MLflow.State == reporter.PushDone
	})
	p.sink(r, "store", func(push *reporter.Push) (said string, done bool) {
		return storeText(push.Store), push.Store != nil && push.Store.State == reporter.PushDone
	})
}

// sink writes what there is to say of where nodes went: each answer once.
func (p *layout) sink(r *reporter.Report, label string, textOf func(*reporter.Push) (said string, done bool)) {
	states := make(map[string][]string) // nodes by what is to be said
	allDone := make(map[string]bool)
	var order []string
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil || n.Push == nil {
			continue
		}
		said, done := textOf(n.Push)
		if said == "" {
			continue
		}
		if states[said] == nil {
			order = append(order, said)
		}
		states[said] = append(states[said], name)
		allDone[said] = done
	}

	for i, said := range order {
		s := plain
		if !allDone[said] {
			s = alarm
		}
		if len(r.Nodes) > 1 {
			said = fmt.Sprintf("%d of %d nodes: %s", len(states[said]), len(r.Nodes), said)
		}
		if i == 3 { // each of a thousand nodes may have failed in its own way
			p.text(plain, "", fmt.Sprintf("and %d more answers", len(order)-i))
			return
		}
		for _, part := range text.Wrap(said, max(20, p.width-labelWidth), 5) {
			p.line(s, text.PadRight(label, labelWidth)+part)
			label = ""
		}
	}
}

// storeText returns where in a store a report is, or why it is not there; "" if there is nothing to report. Of many
// nodes in one store it names the run.
func storeText(s *reporter.StoreState) string {
	switch {
	case s == nil:
		return ""
	case s.State == reporter.PushDone:
		run, _, _ := strings.Cut(s.Reference, "/node-")
		return "done: " + text.Printable(run)
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
		done := fmt.Sprintf("done: run %s at %s", text.Printable(s.RunID), text.Printable(s.URI))
		if why != "" {
			done += "; " + why
		}
		return done
	case s.Error == "":
		return ""
	case s.State == reporter.PushPending:
		return "pending (perfagent push sends it): " + why
	}
	return "off: " + why
}

// wholePush returns the state of a push and its destination, or "" if no push was wanted.
func wholePush(s reporter.PushState) string {
	var words []string
	add := func(label, value string) {
		if value != "" {
			words = append(words, label+text.Printable(value))
		}
	}
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
