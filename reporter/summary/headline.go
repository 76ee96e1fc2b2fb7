package summary

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Tags returns the run's tags as KEY=VALUE, sorted and printable.
func Tags(r *reporter.Run) []string {
	var out []string
	for k, v := range r.Tags {
		out = append(out, text.Printable(k+"="+v))
	}
	slices.Sort(out)
	return out
}

// plainName returns the short host name of the node if it has only letters, digits and hyphens. Otherwise it returns a
// text with name, because some programs show the conclusion as Markdown.
func plainName(n *reporter.Node, name string) string {
	host, _, _ := strings.Cut(n.HostName(), ".")
	odd := func(c rune) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}
	if host == "" || len(host) > 40 || strings.ContainsFunc(host, odd) {
		return shortNode(name)
	}
	return host
}

// firstFailedNode returns one of several nodes: the failed node in the run's verdict, or else the first failed node,
// preferably with the run's exit code. name is "" if no node failed. good is the number of nodes that ended with exit
// code 0.
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
	for _, s := range commands {
		if len(commands) > 1 {
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
type nodeMessages []nodeMessage

// add adds node to the nodes of the given text.
func (s *nodeMessages) add(words, node string) {
	i := slices.IndexFunc(*s, func(m nodeMessage) bool { return m.text == words })
	if i < 0 {
		i, *s = len(*s), append(*s, nodeMessage{text: words})
	}
	(*s)[i].nodes = append((*s)[i].nodes, node)
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
	words := text.Parts{cmp.Or(text.Clip(text.Printable(r.Run.ID), 34), text.Absent)}
	switch names := r.NodeNames(); {
	case r.Run.Gather != nil && r.Run.Gather.NodesExpected > len(names):
		words.Add(true, "%d of %d nodes", len(names), r.Run.Gather.NodesExpected)
	case len(names) == 1:
		words = append(words, shortNode(names[0]))
	default:
		words.Add(true, "%d nodes", len(names))
	}
	words.Add(!r.Run.Start.IsZero(), "%s", r.Run.Start.UTC().Format("2006-01-02 15:04 MST"))
	return words.String()
}

// shortNode returns the name of a node for a sentence or a heading: "node 3".
func shortNode(name string) string { return "node " + text.Clip(text.Printable(name), 10) }
