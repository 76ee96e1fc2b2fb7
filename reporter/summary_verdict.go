package reporter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// VerdictText says how a job ended and what it suffered from, as printable text, and
// whether that is bad. It is empty where that is no more than an exit code, which is said
// elsewhere.
func VerdictText(v *Verdict) (line string, bad bool) {
	if v == nil {
		return "", false
	}
	code := evidenceNumber(v.Evidence["exit_code"])
	line, bad = text.Printable(v.Text), v.Cause != CauseExited || code != 0
	switch {
	case line == "":
		line = causeText(v.Cause)
	case v.Cause == CauseExited && line == "exited with code "+text.Fixed(code, 0) && len(v.Conditions) == 0:
		return "", bad
	}
	var suffered []string
	said := strings.ToLower(line)
	for _, c := range v.Conditions[:min(len(v.Conditions), maxConditions)] {
		if words := conditionText(c); !strings.Contains(said, words) {
			suffered = append(suffered, words)
		}
	}
	if len(suffered) > 0 {
		line = strings.TrimRight(line, ". ") + "; on the way: " + listed(suffered, 5)
	}
	return line, bad
}

// evidenceNumber is a number of the evidence, as New made it or as a file has it; 0 where
// there is none.
func evidenceNumber(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// causeText is a cause in a word or two.
func causeText(cause string) string {
	switch cause {
	case CauseSignal:
		return "killed"
	case CauseOOMCgroup, CauseOOMHost:
		return "out of memory"
	case CauseTimeLimit:
		return "time limit"
	case CauseDiskFull:
		return "disk full"
	}
	return text.Printable(cause)
}

// conditionText is a condition in words.
func conditionText(condition string) string {
	switch condition {
	case "memory_starved":
		return "starved for memory"
	case "io_wait":
		return "waiting for I/O"
	case "gpu_idle":
		return "GPU idle"
	}
	return text.Printable(condition)
}

// Said is something for people: a verdict or a piece of advice, as printable text.
type Said struct {
	Text string
	Bad  bool // a bad end, or a warning
}

const (
	// maxConditions is more than there are: those of a hostile report are not all looked at.
	maxConditions = 20
	// maxVerdicts is how many different ends a summary of several nodes tells of.
	maxVerdicts = 3
	// The most lines that one of them, or a piece of advice, takes.
	verdictLines = 4
	adviceLines  = 3
)

// verdict writes how the job ended where that says more than the first line does: of one
// node or, of several, the worst ones, each cause once.
func (p *page) verdict(r *Report) {
	label := "verdict"
	for _, s := range Verdicts(r) {
		look := bold
		if s.Bad {
			look = alarm
		}
		p.words(look, label, s.Text, verdictLines)
		label = ""
	}
}

// Verdicts are what there is to say of how the job ended: of one node its verdict, of
// several each cause once with the nodes that have it, the run's own first, even if it is
// no more than an exit code. There are no more than three.
func Verdicts(r *Report) []Said {
	var list []nodesVerdict
	at, run := make(map[string]int), r.Run.Verdict.key(true)
	for _, name := range r.NodeNames() {
		n := r.Nodes[name]
		if n == nil {
			continue
		}
		words, bad := VerdictText(n.Verdict)
		key := n.Verdict.key(bad)
		ends := key
		if words == "" && bad && key == run && len(r.Nodes) > 1 { // an exit code that explains the run
			words, ends = text.Printable(n.Verdict.Text), "only "+key
		}
		if words == "" || n.Verdict.Cause == CauseUnknown && r.Run.Incomplete != "" && len(n.Verdict.Evidence)+len(n.Verdict.Conditions) == 0 { // which is said
			continue
		}
		if i, seen := at[ends]; seen {
			list[i].nodes = append(list[i].nodes, name)
			continue
		}
		at[ends] = len(list)
		list = append(list, nodesVerdict{Said{words, bad}, key, []string{name}})
	}
	slices.SortStableFunc(list, func(a, b nodesVerdict) int { return a.rank(run) - b.rank(run) })
	var out []Said
	for _, v := range list[:min(len(list), maxVerdicts)] {
		if len(r.Nodes) > 1 {
			v.Text = "node " + text.Printable(listed(v.nodes, 2)) + ": " + v.Text
		}
		out = append(out, v.Said)
	}
	return out
}

// nodesVerdict is what is said of the nodes that ended in one way.
type nodesVerdict struct {
	Said
	cause string // key of the verdict
	nodes []string
}

// key is equal for verdicts of which one may stand for the other: the same cause and, as
// far as that goes, the same signal and exit code. The rest of the text is one node's.
func (v *Verdict) key(bad bool) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(bad, v.Cause, v.Evidence["signal"], evidenceNumber(v.Evidence["exit_code"]))
}

// rank puts the run's own cause first, and what is not bad last.
func (v *nodesVerdict) rank(run string) int {
	switch {
	case !v.Bad:
		return 2
	case v.cause != run:
		return 1
	}
	return 0
}

// AdviceSaid is what to change, the most important first: of several nodes each finding
// once, with the nodes that have it.
func AdviceSaid(r *Report) []Said {
	var out []Said
	if len(r.Nodes) <= 1 {
		for _, f := range r.only().Findings {
			out = append(out, Said{text.Printable(f.Text), f.Severity == SeverityWarning})
		}
	} else {
		for _, a := range r.Advice() {
			out = append(out, Said{"node " + text.Printable(listed(a.Nodes, 2)) + ": " + text.Printable(a.Text), a.Severity == SeverityWarning})
		}
	}
	return slices.DeleteFunc(out, func(s Said) bool { return strings.TrimSpace(s.Text) == "" })
}

// advice writes what to change.
func (p *page) advice(r *Report) {
	list := AdviceSaid(r)
	if len(list) == 0 {
		return
	}
	p.gap()
	label := "advice"
	for _, a := range list[:min(len(list), FindingsShown)] {
		look := plain
		if a.Bad {
			look = bold
		}
		p.words(look, label, a.Text, adviceLines)
		label = ""
	}
	if left := len(list) - FindingsShown; left > 0 {
		p.text(plain, "", fmt.Sprintf("and %d more, see the report", left))
	}
}
