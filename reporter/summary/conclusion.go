package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// An Outcome is the way in which a run ended.
type Outcome int

// The outcomes.
const (
	Ended     Outcome = iota // nothing is known about the end, or there was no job
	Succeeded                // green
	Odd                      // succeeded, but something went wrong: amber
	Stopped                  // the job was asked to end: amber
	Failed                   // red
	Running                  // still running, or lost
)

// A Conclusion describes how a run ended and what to do about it. It is the same in all outputs. All texts are
// printable.
type Conclusion struct {
	Outcome Outcome
	Cause   string   // a sentence: "Out of memory: killed at the limit of 256 MiB after 5.9 s."
	Action  string   // what to do; the words before the first ":" are its lead; "" = nothing
	Paste   string   // the line for the scheduler or the container; "" = none
	How     string   // details: process, time, control group, ends of other jobs; "" = none
	Notes   []string // further findings that concern the end of the job or its request, in order
	Other   []string // all other findings
	Subject string   // the resource that explains the end: "memory", "disk_space", "disk", "gpu", "cpu" or ""
}

// Conclude returns the conclusion on a run or, if r contains a single node, on that node.
func Conclude(r *reporter.Report) Conclusion {
	e := endOf(r)
	c := e.conclusion()
	e.addFindings(&c)
	c.Paste = requestLine(r)
	c.How = text.Clip(strings.TrimSpace(strings.Join(append([]string{c.How}, e.remarks(c.Action)...), " ")), maxHow)
	return c
}

// maxHow bounds the length of Conclusion.How for a hostile report, in cells.
const maxHow = 1000

// end holds the facts about the end of a run: of the job that failed first, or else of all jobs.
type end struct {
	*reporter.Report
	verdict *reporter.Verdict // never nil
	node    *reporter.Node    // never nil
	log     *reporter.LogTail // nil if there is none
	who     string            // "rank 3 on node1", if it is one of several jobs
	others  string            // how many other jobs succeeded; "" = irrelevant
	code    *int
	signal  string
	length  float64 // seconds
}

// endOf returns the end of r.
func endOf(r *reporter.Report) *end {
	e := &end{Report: r, node: onlyNode(r), verdict: r.Run.Verdict, code: r.Run.ExitCode, signal: r.Run.Signal,
		length: r.Run.Wall()}
	if v := e.node.Verdict; len(r.Nodes) == 1 && v != nil {
		e.verdict = v
		if j := e.node.Job; j != nil && j.ExitCode != nil {
			e.code, e.signal = j.ExitCode, j.Signal
		}
	}
	if !e.findRank() {
		e.findNode()
	}
	e.log = cmp.Or(e.log, e.node.LogTail)

	if e.verdict == nil {
		e.verdict = &reporter.Verdict{}
		switch {
		case e.signal != "":
			e.verdict.Cause = diagnosis.CauseSignal
		case e.code != nil:
			e.verdict.Cause = diagnosis.CauseExited
		}
	}
	return e
}

// findRank makes e the end of the rank that failed first. It returns false if no rank is known to have failed.
func (e *end) findRank() bool {
	number, ok := EvidenceIndex(e.verdict, "rank")
	if !ok {
		return false
	}
	good, all, found := 0, 0, false
	for name, n := range e.EachNode() {
		for _, rank := range n.RankList() {
			all++
			if rank.ExitCode != nil && *rank.ExitCode == 0 {
				good++
			}
			if rank.Rank == number && rank.ExitCode != nil && *rank.ExitCode != 0 {
				found, e.node, e.log, e.who = true, n, rank.LogTail, fmt.Sprintf("rank %d", number)
				e.code, e.signal = rank.ExitCode, rank.Signal
				e.length = max(0, rank.End.Sub(rank.Start.Time).Seconds())
				if len(e.Nodes) > 1 {
					e.who += " on " + plainName(n, name)
				}
			}
		}
	}
	if found && all > 1 {
		e.others = fmt.Sprintf("%d of %d ranks succeeded.", good, all)
	}
	return found
}

// findNode makes e the end of the first failed node, if the report has several nodes and one of them failed.
func (e *end) findNode() {
	name, good := firstFailedNode(e.Report)
	if name == "" || e.Run.Incomplete != "" {
		return
	}
	n := e.Nodes[name]
	e.node, e.who, e.length = n, shortNode(name), n.Wall()
	e.code, e.signal = n.Job.ExitCode, n.Job.Signal
	e.others = fmt.Sprintf("%d of %d nodes succeeded.", good, len(e.Nodes))
	if e.verdict == nil {
		e.verdict = n.Verdict
	}
}

// conclusion returns the conclusion without the findings.
func (e *end) conclusion() Conclusion {
	first, _, _ := strings.Cut(e.verdict.Text, "; ")
	switch cause := e.verdict.Cause; {
	case e.Run.Incomplete != "" && e.who == "":
		return Conclusion{Outcome: Running, How: sentence(e.Run.Incomplete),
			Cause: "Still running or lost; the last sample is from " + text.Seconds(e.length) + " after the start."}
	case diagnosis.IsOutOfMemory(cause):
		return e.outOfMemory()
	case cause == diagnosis.CauseStopped:
		return e.stoppedByRule()
	case cause == diagnosis.CauseTimeLimit:
		return e.timeLimit()
	case cause == diagnosis.CauseDiskFull:
		return e.diskFull()
	case cause == diagnosis.CauseSignal:
		return e.killedBySignal()
	case cause == diagnosis.CauseChildDied:
		return e.childDied()
	case e.code == nil, cause == diagnosis.CauseUnknown && e.who == "": // then the exit code is perfagent's own, 255
		return e.unknown(sentence(first))
	case *e.code == 0:
		return e.succeeded()
	case cause == diagnosis.CauseExited || cause == diagnosis.CauseUnknown:
		return e.failed()
	}
	c := e.failed() // a cause that a later version added
	c.Action, c.How = "", sentence(first)
	return c
}

// clause returns a clause on the job: "killed …", or, for one of several jobs, "rank 3 on node1 was killed …".
func (e *end) clause(was, words string) string {
	if e.who == "" {
		return words
	}
	return e.who + was + words
}

// ofJob returns the name of the job in the middle of a sentence.
func (e *end) ofJob() string {
	return cmp.Or(e.who, "the job")
}

// after returns the length of the job for a sentence: " after 5.9 s".
func (e *end) after() string {
	if !(e.length >= 0) || math.IsInf(e.length, 0) {
		return ""
	}
	return " after " + text.Seconds(e.length)
}

// failure returns how the job ended: "failed (exit 3)".
func (e *end) failure() string {
	switch {
	case e.signal != "":
		return "was killed by " + e.signalName()
	case e.code != nil:
		return fmt.Sprintf("failed (exit %d)", *e.code)
	}
	return "failed"
}

// signalName returns the printable name of the signal that ended the job.
func (e *end) signalName() string { return text.Clip(text.Printable(e.signal), 20) }

// words returns the printable text under key in the evidence.
func (e *end) words(key string) string {
	s, _ := e.verdict.Evidence[key].(string)
	return text.Printable(s)
}

// at returns the time under key in the evidence: " at 01:45:06 UTC"; "" if it is unknown.
func (e *end) at(key string) string {
	t, err := time.Parse(time.RFC3339Nano, e.words(key))
	if err != nil {
		return ""
	}
	return " at " + t.UTC().Format("15:04:05") + " UTC"
}

// saidElsewhere lists the beginnings of remarks in the text of a verdict that other parts of the conclusion contain.
var saidElsewhere = []string{
	"peak ", "the heaviest is ", "it was a limit of its control group", "the kernel does not say",
}

// remarks returns the remarks after the first clause of the verdict's text, unless action contains them, what happened
// before the end, and a sentence on the other jobs.
func (e *end) remarks(action string) (out []string) {
	for _, words := range strings.Split(text.Printable(e.verdict.Text), "; ")[1:] {
		said := func(start string) bool { return strings.HasPrefix(words, start) }
		inAction := strings.HasPrefix(words, "its log ends") && strings.Contains(action, "which ends")
		if !slices.ContainsFunc(saidElsewhere, said) && !inAction {
			out = append(out, sentence(words))
		}
	}
	for _, words := range e.verdict.Beside[:min(len(e.verdict.Beside), maxFacts)] {
		out = append(out, sentence(words))
	}
	if e.others != "" {
		out = append(out, e.others)
	}
	if g := e.Run.Gather; g != nil && g.NodesExpected > len(e.Nodes) {
		out = append(out, fmt.Sprintf("%d of %d nodes are here.", len(e.Nodes), g.NodesExpected))
	}
	return out
}

// logEnd returns what the job's log ends with, as a clause: ", which ends with a bus error"; "" if that is not known.
func (e *end) logEnd() string {
	if err := e.verdict.LogError; err != nil && diagnosis.LogErrorWords(err.Kind) != "" {
		return ", which ends with " + diagnosis.LogErrorWords(err.Kind)
	}
	return ""
}

// maxFacts is greater than the number of sentences that a verdict has on other facts. It bounds the cost of a hostile
// report.
const maxFacts = 10

// sentence returns words as a sentence; "" stays "".
func sentence(words string) string {
	if words = strings.TrimRight(text.Printable(words), ". "); words == "" {
		return ""
	}
	return capital(words) + "."
}

// capital returns words with a capital letter at the beginning, except for the program's name.
func capital(words string) string {
	first, size := utf8.DecodeRuneInString(words)
	if strings.HasPrefix(words, "perfagent") {
		return words
	}
	return string(unicode.ToUpper(first)) + words[size:]
}
