package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// VerdictText returns how a job ended and what slowed it down, as printable text, and whether the end was bad. The text
// is empty if it would only repeat the exit code, which is shown elsewhere.
func VerdictText(v *reporter.Verdict) (line string, bad bool) {
	if v == nil {
		return "", false
	}

	code := v.Number("exit_code")
	line, bad = text.Printable(v.Text), v.Cause != diagnosis.CauseExited || code != 0
	switch {
	case line == "":
		line = causeText(v.Cause)
	case v.Cause == diagnosis.CauseExited && onlyCode(line, code) && len(v.Conditions) == 0:
		return "", bad
	}

	var conditions []string
	lower := strings.ToLower(line)
	for _, c := range v.Conditions[:min(len(v.Conditions), maxConditions)] {
		if words := conditionText(c); !strings.Contains(lower, words) {
			conditions = append(conditions, words)
		}
	}

	if len(conditions) > 0 {
		line = strings.TrimRight(line, ". ") + "; on the way: " + text.List(conditions, 5)
	}
	return line, bad
}

// onlyCode reports whether a sentence contains only the exit code, of a job or of all ranks of a node.
func onlyCode(line string, code float64) bool {
	exited := "exited with code " + text.Fixed(code, 0)
	return line == exited || strings.HasPrefix(line, "all ") && strings.HasSuffix(line, " ranks "+exited)
}

// causeText returns a cause in a word or two.
func causeText(cause string) string {
	if diagnosis.IsOutOfMemory(cause) {
		return "out of memory"
	}
	return cmp.Or(map[string]string{
		diagnosis.CauseSignal: "killed", diagnosis.CauseTimeLimit: "time limit", diagnosis.CauseDiskFull: "disk full",
		diagnosis.CauseStopped: "stopped by a rule",
	}[cause], text.Printable(cause))
}

// conditionText returns a condition in words.
func conditionText(condition string) string {
	return cmp.Or(map[string]string{
		"memory_starved": "starved for memory", "io_wait": "waiting for I/O", "gpu_idle": "GPU idle",
	}[condition], text.Printable(condition))
}

// Message is a verdict or a piece of advice for people, as printable text.
type Message struct {
	Text  string
	Bad   bool // a bad end, or a warning
	Paste bool // a line to paste into the script or the description of the job
}

const (
	// maxConditions is more than there are; it bounds the cost of a hostile report.
	maxConditions = 20
	// maxVerdicts is the maximum number of different ends in a summary of several nodes.
	maxVerdicts = 3
	// adviceShown is the maximum number of pieces of advice in a summary.
	adviceShown = 5
	// The maximum number of lines of a verdict and of a piece of advice.
	verdictLines = 4
	adviceLines  = 3
)

// messages writes the messages in list after label, each in at most lines lines. Bad messages have the style bad, the
// rest good.
func (p *terminalWriter) messages(label string, list []Message, bad, good style, lines int) {
	for _, m := range list {
		look := good
		if m.Bad {
			look = bad
		}
		p.wrapped(look, label, m.Text, lines)
		label = ""
	}
}

// shownVerdicts returns the verdicts that add something to the first line of a summary. For several nodes these are the
// worst ones, one for each cause.
func shownVerdicts(r *reporter.Report) []Message {
	list, title := Verdicts(r), ""
	if name, _ := firstFailedNode(r); name != "" {
		title = fmt.Sprintf("node %s: exited with code %d", text.Printable(name), *r.Nodes[name].Job.ExitCode)
	}
	if v := r.Run.Verdict; v != nil && failedRank(r) != "" && v.Cause == diagnosis.CauseExited &&
		strings.HasSuffix(v.Text, fmt.Sprintf(" exited with code %v", v.Number("exit_code"))) {
		title = text.Printable(v.Text)
	}
	return slices.DeleteFunc(list, func(m Message) bool { return m.Text == title })
}

// Verdicts returns how the job ended: the verdict of a single node or, for several nodes, at most three causes with
// their nodes. The run's own verdict comes first, even if it is only an exit code.
//
// For a run with ranks it returns only the run's verdict, which also describes how the other ranks ended.
func Verdicts(r *reporter.Report) []Message {
	if _, ok := firstRank(r.Run.Verdict); ok && len(r.Nodes) > 1 {
		if r.Run.Incomplete != "" && knowsNothing(r.Run.Verdict) { // the headline has it
			return nil
		}
		words, bad := VerdictText(r.Run.Verdict)
		return []Message{{Text: words, Bad: bad}}
	}
	return nodeVerdicts(r)
}

// nodeVerdicts returns a verdict for each cause, with its nodes.
func nodeVerdicts(r *reporter.Report) []Message {
	var list []nodesVerdict
	at, run := make(map[string]int), verdictKey(r.Run.Verdict, true)
	for name, n := range r.EachNode() {
		words, bad := VerdictText(n.Verdict)
		key := verdictKey(n.Verdict, bad)
		ends := key
		if words == "" && bad && key == run && len(r.Nodes) > 1 { // an exit code that explains the run
			words, ends = text.Printable(n.Verdict.Text), "only "+key
		}
		if words == "" || r.Run.Incomplete != "" && knowsNothing(n.Verdict) { // the headline has it
			continue
		}
		if i, seen := at[ends]; seen {
			list[i].nodes = append(list[i].nodes, name)
			continue
		}
		at[ends] = len(list)
		list = append(list, nodesVerdict{Message{Text: words, Bad: bad}, key, []string{name}})
	}

	slices.SortStableFunc(list, func(a, b nodesVerdict) int { return a.priority(run) - b.priority(run) })
	var out []Message
	for _, v := range list[:min(len(list), maxVerdicts)] {
		if len(r.Nodes) > 1 {
			v.Text = "node " + text.Printable(text.List(v.nodes, 2)) + ": " + v.Text
		}
		out = append(out, v.Message)
	}
	return out
}

// knowsNothing reports whether v contains nothing but an unknown end.
func knowsNothing(v *reporter.Verdict) bool {
	if v.Cause != diagnosis.CauseUnknown || len(v.Conditions) > 0 {
		return false
	}
	for key := range v.Evidence {
		if !slices.Contains([]string{"rank", "node", "host", "others_alike", "others_lost"}, key) {
			return false
		}
	}
	return true
}

// nodesVerdict is a message about the nodes that ended in the same way.
type nodesVerdict struct {
	Message
	key   string // by verdictKey
	nodes []string
}

// verdictKey returns a key that is equal for verdicts that can represent each other: with the same cause and, if known,
// the same signal and exit code. The rest of the text is about one node.
func verdictKey(v *reporter.Verdict, bad bool) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(bad, v.Cause, v.Evidence["signal"], v.Number("exit_code"))
}

// priority orders the run's own cause first, and good ends last.
func (v *nodesVerdict) priority(run string) int {
	switch {
	case !v.Bad:
		return 2
	case v.key != run:
		return 1
	}
	return 0
}
