package summary

import (
	"strings"

	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// Outcome is how a run ended.
type Outcome int

// The outcomes.
const (
	Succeeded Outcome = iota
	Odd               // succeeded, but…
	Stopped
	Failed
	Running
)

// A Conclusion is how a run ended and what to do about it, the same in all outputs.
type Conclusion struct {
	Outcome Outcome
	Cause   string   // a sentence
	Action  string   // what to do; the words before the first ":" are its lead
	Paste   string   // the line for the scheduler or container; "" = none
	How     string   // process, time, control group, others' endings
	Notes   []string // further findings that concern the job's fate or its request
	Other   []string // findings that do not concern its fate
	Subject string   // "memory", "disk", "gpu", "cpu" or ""
}

// Conclude returns how the run ended.
func Conclude(r *reporter.Report) Conclusion {
	c := Conclusion{Cause: Headline(r)}
	if r.Run.Incomplete != "" {
		c.How = r.Run.Incomplete
	}
	var how []string
	for _, v := range Verdicts(r) {
		how = append(how, v.Text)
	}
	c.How = strings.Join(how, " ")
	for _, a := range Advice(r) {
		switch {
		case a.Paste:
			c.Paste = a.Text
		case c.Action == "":
			c.Action = a.Text
		default:
			c.Notes = append(c.Notes, a.Text)
		}
	}
	v := r.Run.Verdict
	if n := onlyNode(r); v == nil && n != nil && len(r.Nodes) == 1 {
		v = n.Verdict
	}
	switch {
	case v != nil && diagnosis.IsOutOfMemory(v.Cause):
		c.Outcome, c.Subject = Failed, "memory"
		c.Cause = "Out of memory: " + c.Cause
	case v != nil && v.Cause == diagnosis.CauseDiskFull:
		c.Outcome, c.Subject = Failed, "disk"
	case r.Run.ExitCode != nil && *r.Run.ExitCode != 0:
		c.Outcome = Failed
	case r.Run.Incomplete != "":
		c.Outcome = Running
	default:
		c.Cause = strings.Replace(c.Cause, "exit 0 after", "Succeeded after", 1)
	}
	return c
}
