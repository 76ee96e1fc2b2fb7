package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// Headline returns how the run ended and how long it took, in a few words: "exit 0 after 9.6 s".
func Headline(r *reporter.Report) string {
	_, words := ending(r)
	return words
}

// Tags returns the run's tags as KEY=VALUE, sorted and printable.
func Tags(r *reporter.Run) []string {
	var out []string
	for k, v := range r.Tags {
		out = append(out, text.Printable(k+"="+v))
	}
	slices.Sort(out)
	return out
}

// ending returns how the run ended and how long it took.
func ending(r *reporter.Report) (style, string) {
	run, length := r.Run, text.Seconds(r.Run.Wall())
	if words := failedRank(r); words != "" { // even if other ranks have no known end
		return alarm, words
	}
	if words := failedNode(r); words != "" && run.Incomplete == "" {
		return alarm, words
	}
	switch {
	case run.Incomplete != "":
		return alarm, "still running or lost; last sample at " + length
	case run.Signal != "" && run.ExitCode != nil:
		signal := text.Clip(text.Printable(run.Signal), 20)
		return alarm, fmt.Sprintf("killed by %s (exit %d) after %s", signal, *run.ExitCode, length)
	case run.ExitCode != nil && *run.ExitCode != 0:
		return alarm, fmt.Sprintf("failed (exit %d) after %s", *run.ExitCode, length)
	case run.ExitCode != nil:
		return bold, "exit 0 after " + length
	case len(r.Nodes) > 0 && len(perfpyNodes(r)) == len(r.Nodes):
		return bold, "perf.py's samples of " + length
	}
	if v := run.Verdict; v != nil && v.Cause == diagnosis.CauseUnknown { // an attached job's exit code
		return bold, "ended after " + length
	}
	return bold, "sampled for " + length
}

// failedRank describes the first failed rank and how the other ranks ended: "rank 3 on node1 failed: exit 137 after
// 18.8 s; 4 of 8 ranks ended with exit 0". It returns "" without ranks, or if none is known to have failed.
func failedRank(r *reporter.Report) string {
	number, ok := firstRank(r.Run.Verdict)
	if !ok {
		return ""
	}

	var first *reporter.Rank
	var where string
	good, all := 0, 0
	for name, n := range r.EachNode() {
		for _, rank := range n.RankList() {
			all++
			if rank.ExitCode != nil && *rank.ExitCode == 0 {
				good++
			}
			if rank.Rank == number {
				first, where = rank, plainName(n, name)
			}
		}
	}
	if first == nil || first.ExitCode == nil || *first.ExitCode == 0 {
		return ""
	}

	words := fmt.Sprintf("rank %d", number)
	if len(r.Nodes) > 1 {
		words += " on " + where
	}
	words += fmt.Sprintf(" failed: exit %d after %s", *first.ExitCode,
		text.Seconds(max(0, first.End.Sub(first.Start.Time).Seconds())))
	if all > 1 {
		words += fmt.Sprintf("; %d of %d ranks ended with exit 0", good, all)
	}
	return words
}

// plainName returns the name of the node's host if it looks like a host name, and otherwise name, because some readers
// show the headline as Markdown.
func plainName(n *reporter.Node, name string) string {
	host, _, _ := strings.Cut(n.HostName(), ".")
	odd := func(c rune) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}
	if host == "" || len(host) > 40 || strings.ContainsFunc(host, odd) {
		return "node " + text.Clip(text.Printable(name), 10)
	}
	return host
}

// failedNode describes the failed one of several nodes and how the other nodes ended: "node 1 failed: exit 5 after 2.0
// s; 2 of 3 nodes ended with exit 0". It returns "" for one node, or if no node is known to have failed.
func failedNode(r *reporter.Report) string {
	name, good := firstFailedNode(r)
	if name == "" {
		return ""
	}
	n := r.Nodes[name]
	return fmt.Sprintf("node %s failed: exit %d after %s; %d of %d nodes ended with exit 0",
		text.Clip(text.Printable(name), 10), *n.Job.ExitCode, text.Seconds(n.Wall()), good, len(r.Nodes))
}

// firstFailedNode returns the one of several nodes that the run's verdict names, or else the first failed node,
// preferably with the run's exit code; and how many nodes ended with exit code 0.
func firstFailedNode(r *reporter.Report) (name string, good int) {
	if len(r.Nodes) < 2 {
		return "", 0
	}
	first := -1
	if index, ok := EvidenceIndex(r.Run.Verdict, "node"); ok {
		first = index
	}

	ofRun := func(code int) bool { return r.Run.ExitCode != nil && code == *r.Run.ExitCode }
	for at, n := range r.EachNode() {
		switch {
		case n.Job == nil || n.Job.ExitCode == nil:
		case *n.Job.ExitCode == 0:
			good++
		case at == strconv.Itoa(first):
			name = at
		case name == strconv.Itoa(first):
		case name == "" || ofRun(*n.Job.ExitCode) && !ofRun(*r.Nodes[name].Job.ExitCode):
			name = at
		}
	}
	return name, good
}

// maxCommands is the maximum number of different commands in a summary of several nodes.
const maxCommands = 3

// commandLines returns the command of a run or, if nodes have different commands, a line for each command with its
// nodes.
func commandLines(r *reporter.Report) []string {
	if len(r.Nodes) == 0 && len(r.Run.Command) > 0 {
		return []string{CommandLine(r.Run.Command)}
	}

	var commands nodeMessages
	for _, name := range r.NodeNames() {
		command := r.Run.Command
		if n := r.Nodes[name]; n != nil && len(n.Command) > 0 {
			command = n.Command
		}
		if len(command) > 0 {
			commands.add(CommandLine(command), name)
		}
	}

	var lines []string
	for _, s := range commands.list {
		if len(commands.list) > 1 {
			s.text = text.Plural(len(s.nodes), "node ", "nodes ") + text.Printable(text.List(s.nodes, 3)) + ": " + s.text
		}
		lines = append(lines, s.text)
	}
	if left := len(lines) - maxCommands; left > 0 {
		lines = append(lines[:maxCommands], text.Count(left, "more command", "more commands"))
	}
	return lines
}

// nodeMessage is a text about some nodes.
type nodeMessage struct {
	text  string
	nodes []string
}

// nodeMessages holds texts about nodes, in the order of their first nodes.
type nodeMessages struct {
	list  []nodeMessage
	index map[string]int // by text
}

// add adds node to the nodes of the given text.
func (s *nodeMessages) add(words, node string) {
	i, known := s.index[words]
	if !known {
		if s.index == nil {
			s.index = make(map[string]int)
		}
		i, s.list = len(s.list), append(s.list, nodeMessage{text: words})
		s.index[words] = i
	}
	s.list[i].nodes = append(s.list[i].nodes, node)
}

// CommandLine returns command as one line of printable text. It quotes arguments that are empty or have spaces.
func CommandLine(command []string) string {
	words := make([]string, len(command))
	for i, arg := range command {
		words[i] = text.Printable(arg)
		if arg == "" || strings.Contains(arg, " ") {
			words[i] = "'" + words[i] + "'"
		}
	}
	return strings.Join(words, " ")
}

// runLine returns the name of the run, its node or number of nodes, and its start.
func runLine(r *reporter.Report) string {
	words := []string{cmp.Or(text.Clip(text.Printable(r.Run.ID), 34), text.Absent)}
	switch names := r.NodeNames(); {
	case r.Run.Gather != nil && r.Run.Gather.NodesExpected > len(names):
		words = append(words, fmt.Sprintf("%d of %d nodes", len(names), r.Run.Gather.NodesExpected))
	case len(names) == 1:
		words = append(words, "node "+text.Clip(text.Printable(names[0]), 10))
	default:
		words = append(words, fmt.Sprintf("%d nodes", len(names)))
	}
	if !r.Run.Start.IsZero() {
		words = append(words, r.Run.Start.UTC().Format("2006-01-02 15:04 MST"))
	}
	return strings.Join(words, ", ")
}
