package summary

import (
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// push says how the nodes' pushes to MLflow stand, where one was wanted. While a run
// ends its first push is still to come, and nothing is said.
func (p *layout) push(r *reporter.Report) {
	states := make(map[string][]string) // nodes by what is to be said
	done := make(map[string]bool)
	var order []string
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil || n.Push == nil {
			continue
		}
		said := pushText(n.Push.MLflow)
		if said == "" {
			continue
		}
		if states[said] == nil {
			order = append(order, said)
		}
		states[said] = append(states[said], name)
		done[said] = n.Push.MLflow.State == reporter.PushDone
	}

	for i, said := range order {
		label, s := "MLflow", plain
		if i > 0 {
			label = ""
		}
		if !done[said] {
			s = alarm
		}
		if len(r.Nodes) > 1 {
			said = fmt.Sprintf("%d of %d nodes: %s", len(states[said]), len(r.Nodes), said)
		}
		if i == 3 { // of a thousand nodes each may have failed in its own way
			p.text(plain, "", fmt.Sprintf("and %d more answers", len(order)-i))
			return
		}
		for _, part := range text.Wrap(said, max(20, p.width-labelWidth), 5) {
			p.line(s, text.PadRight(label, labelWidth)+part)
			label = ""
		}
	}
}

// pushText says how a push stands; "" if there is nothing to say.
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

// wholePush says how a push stands and where it goes; "" if none was asked for.
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
