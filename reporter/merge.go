package reporter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
)

// SourceReport is a report with the path of its file.
type SourceReport struct {
	Path   string
	Report *Report
}

// mergedSize is the maximum size of a merged report in bytes: half the size that can be read.
const mergedSize = MaxFileSize / 2

// Merge combines the nodes of several reports into one report. If several reports contain the same recording of a node,
// Merge takes the node once, even if its push states differ. If two reports contain different recordings of a node,
// Merge returns an error that contains the node and both paths.
//
// The run spans all inputs: from the earliest start to the latest end, with the first nonzero exit code of a job in the
// order of the nodes, and the tags of all inputs. If inputs disagree on a value (the run's ID, the command, a tag, the
// reason for incompleteness), the input with the lowest node wins, so neither the order of the inputs nor merging in
// several steps makes a difference.
//
// The result keeps all points; a [Merger] keeps as many as fit into 128 MiB. It has the verdicts and findings of the
// nodes, but no findings about several nodes; diagnosis.Merge adds them.
func Merge(inputs []SourceReport) (*Report, error) {
	if len(inputs) == 0 {
		return nil, errors.New("merge: no report was given")
	}

	for _, in := range inputs {
		if in.Report == nil {
			return nil, fmt.Errorf("merge: %s has no report", in.Path)
		}
	}

	inputs = slices.SortedStableFunc(slices.Values(inputs), byLowestNode)
	out := &Report{Schema: Schema, Nodes: make(map[string]*Node)}
	from := make(map[string]string, len(inputs))
	for _, in := range inputs {
		for _, name := range in.Report.NodeNames() {
			n, err := mergeNode(out.Nodes[name], in.Report.Nodes[name], in.Report.Run.Command)
			if err != nil {
				return nil, twoRecordings(name, from[name], in.Path, err)
			}
			if _, had := out.Nodes[name]; !had {
				from[name] = in.Path
			}
			out.Nodes[name] = n
		}
		out.Run.join(in.Report.Run)
	}

	out.ownCommands()
	out.Run.ExitCode, out.Run.Signal = mergedExit(inputs, out)
	return out, nil
}

// byLowestNode orders reports by their lowest node. Reports without nodes come last.
func byLowestNode(a, b SourceReport) int {
	x, y := a.Report.NodeNames(), b.Report.NodeNames()
	if len(x) == 0 || len(y) == 0 {
		return len(y) - len(x)
	}
	return CompareNodes(x[0], y[0])
}

var errTwoRecordings = errors.New("two different recordings")

// ownCommands removes the commands of nodes that equal the command of the run.
func (r *Report) ownCommands() {
	for _, n := range r.Nodes {
		if slices.Equal(n.Command, r.Run.Command) {
			n.Command = nil
		}
	}
}

// mergeNode joins have, a node from earlier reports or nil, with the same node of another report. If have is nil, the
// result is a copy of add, with the command of its run unless add has one.
func mergeNode(have, add *Node, command []string) (*Node, error) {
	if add == nil {
		add = &Node{Missing: []Missing{}}
	}

	copied := *add
	if len(copied.Command) == 0 && copied.Origin != OriginPerfPy {
		copied.Command = command
	}
	if have == nil {
		return &copied, nil
	}

	a, errHave := withoutPush(have)
	b, errAdd := withoutPush(add)
	if err := errors.Join(errHave, errAdd); err != nil {
		return nil, err
	}
	if !bytes.Equal(a, b) {
		return nil, errTwoRecordings
	}
	if pushProgress(add.Push) > pushProgress(have.Push) {
		have.Push = add.Push
	}
	return have, nil
}

// withoutPush encodes the parts of a node that come only from its recording, for comparison.
func withoutPush(n *Node) ([]byte, error) {
	bare := *n
	bare.Push, bare.Findings, bare.Command = nil, nil, nil // findings depend on other nodes of the report
	data, err := text.JSON(&bare)
	if err != nil {
		return nil, err
	}
	return withoutLogs(data, true)
}

// pushProgress ranks the states of a push, so that merging keeps the most advanced one.
func pushProgress(p *Push) int {
	if p == nil {
		return 0
	}
	return 2 + slices.Index([]string{PushPending, PushDone}, p.MLflow.State)
}

// join widens r to include o. If both have a value, r keeps its own. It does not change the exit code, which mergedExit
// sets.
func (r *Run) join(o Run) {
	r.ID, r.Incomplete = cmp.Or(r.ID, o.ID), cmp.Or(r.Incomplete, o.Incomplete)
	if len(r.Command) == 0 {
		r.Command = o.Command
	}
	if r.Platform == "" {
		r.Platform, r.MemoryPer = o.Platform, o.MemoryPer
	}
	r.widen(o)
	if len(o.Tags) > 0 {
		tags := maps.Clone(o.Tags)
		maps.Copy(tags, r.Tags)
		r.Tags = tags
	}
}

// widen widens the times of r to include o. If one run contains the other, the measured length of the longer run is
// kept, because the difference of its end and start would include the time for which the machine was suspended.
func (r *Run) widen(o Run) {
	switch {
	case o.Start.IsZero():
	case r.Start.IsZero() || r.within(o) && !o.within(*r):
		r.Start, r.End, r.WallSeconds = o.Start, o.End, o.WallSeconds
	case r.within(o): // the same span
		r.WallSeconds = max(r.WallSeconds, o.WallSeconds)
	case !o.within(*r):
		if o.Start.Before(r.Start.Time) {
			r.Start = o.Start
		}
		if o.End.After(r.End.Time) {
			r.End = o.End
		}
		r.WallSeconds = r.End.Sub(r.Start.Time).Seconds()
	}
}

// within reports whether the time of r is within the time of o.
func (r Run) within(o Run) bool {
	return !r.Start.Before(o.Start.Time) && !r.End.After(o.End.Time)
}

// mergedExit returns the first nonzero exit code of a job, in the order of the nodes, or else of an input, with its
// signal. It returns 0 if all known codes are 0, and nil if no code is known.
func mergedExit(inputs []SourceReport, out *Report) (code *int, signal string) {
	var exits []Run
	for _, n := range out.EachNode() {
		if n.Job != nil {
			exits = append(exits, Run{ExitCode: n.Job.ExitCode, Signal: n.Job.Signal})
		}
	}
	for _, in := range inputs {
		exits = append(exits, in.Report.Run)
	}

	for _, run := range exits {
		switch {
		case run.ExitCode == nil:
		case *run.ExitCode != 0:
			return run.ExitCode, run.Signal
		default:
			code = run.ExitCode
		}
	}
	return code, ""
}
