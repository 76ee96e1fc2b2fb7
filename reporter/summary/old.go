package summary

import "github.com/perfagent/perfagent/reporter"

// Message is a sentence of a Conclusion.
type Message struct {
	Text  string
	Bad   bool // a bad end, or a warning
	Paste bool // a line to paste into the script or the description of the job
}

// Headline returns the cause of the conclusion.
func Headline(r *reporter.Report) string { return Conclude(r).Cause }

// Verdicts returns how the job ended.
func Verdicts(r *reporter.Report) []Message {
	if c := Conclude(r); c.How != "" {
		return []Message{{Text: c.How, Bad: c.Outcome == Failed}}
	}
	return nil
}

// Advice returns what to change.
func Advice(r *reporter.Report) []Message {
	c := Conclude(r)
	var out []Message
	if c.Paste != "" {
		out = append(out, Message{Text: c.Paste, Paste: true})
	}
	for _, words := range append([]string{c.Action}, append(c.Notes, c.Other...)...) {
		if words != "" {
			out = append(out, Message{Text: words, Bad: c.Outcome == Failed})
		}
	}
	return out
}
