package comparer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/reporter"
)

// Side is one of the two sets of runs. Compare does not use the series of the reports, so a caller with many reports
// may drop them.
type Side struct {
	Name    string // the user's name for the set
	Reports []reporter.SourceReport
}

// run is one run of the job, on one node or on many.
type run struct {
	reporter.Run
	path  string // path of the first report
	nodes []node // sorted by index
	// operations holds the operations, pooled over all nodes; nil if they were not recorded.
	operations *reporter.Operations
	// exitCode is the exit code of the run; 0 if the run succeeded or has no exit code.
	exitCode int
}

type node struct {
	name string
	*reporter.Node
}

// runsOf groups the reports of one side into runs. Reports with the same run ID and different nodes are one run. If a
// node was recorded several times with the same ID, the first recordings of all nodes form the first run, the second
// recordings the second run, and so on, in the order of their starts. Each report without a run ID, such as perf.py's,
// is a separate run.
func runsOf(reports []reporter.SourceReport) []*run {
	reports = slices.SortedStableFunc(slices.Values(reports), func(a, b reporter.SourceReport) int {
		return a.Report.Run.Start.Compare(b.Report.Run.Start.Time)
	})

	var all []*run
	byID := make(map[string][]*run)
	for _, src := range reports {
		id := src.Report.Run.ID
		var target *run
		for _, r := range byID[id] {
			if id != "" && !r.hasAny(src.Report) {
				target = r
				break
			}
		}

		if target == nil {
			target = &run{Run: src.Report.Run, path: src.Path}
			all, byID[id] = append(all, target), append(byID[id], target)
		}

		target.add(src.Report)
	}

	for _, r := range all {
		slices.SortFunc(r.nodes, func(a, b node) int { return reporter.CompareNodes(a.name, b.name) })
		r.operations = operationsOf(r.nodes)
	}

	return all
}

// hasAny reports whether the run already has one of the report's nodes.
func (r *run) hasAny(report *reporter.Report) bool {
	return slices.ContainsFunc(r.nodes, func(n node) bool { return report.Nodes[n.name] != nil })
}

// add adds the nodes of report to the run.
func (r *run) add(report *reporter.Report) {
	for _, name := range report.NodeNames() {
		if n := report.Nodes[name]; n != nil {
			r.nodes = append(r.nodes, node{name, n})
		}
	}

	if r.Incomplete == "" {
		r.Incomplete = report.Run.Incomplete
	}
	if code := report.Run.ExitCode; code != nil && r.exitCode == 0 {
		r.exitCode = *code
	}
}

// remarks returns the remarks about the runs of a side that are needed to interpret the comparison.
func remarks(name string, runs []*run) []string {
	var out []string
	add := func(what string, is func(*run) bool) {
		count, first := 0, (*run)(nil)
		for _, r := range runs {
			if !is(r) {
				continue
			}
			if count++; first == nil {
				first = r
			}
		}

		if count > 0 {
			out = append(out, fmt.Sprintf("%s: %d of %d runs %s: %s%s",
				name, count, len(runs), what, first.path, andMore(count)))
		}
	}

	add("ended with an error", func(r *run) bool { return r.exitCode != 0 })
	add("have no end (still running, or cut off)", func(r *run) bool { return r.Incomplete != "" })
	add("are perf.py's (shares computed from the kept samples)", func(r *run) bool { return r.any(fromPerfPy) })
	add("have only an upper bound of the memory of the largest process", func(r *run) bool { return r.any(boundedRSS) })
	add("lost some of what the job said: counts and sums are lower bounds", (*run).hasDroppedOperations)
	return out
}

func andMore(count int) string {
	if count < 2 {
		return ""
	}
	return ", …"
}

func (r *run) any(is func(*reporter.Node) bool) bool {
	return slices.ContainsFunc(r.nodes, func(n node) bool { return is(n.Node) })
}

func fromPerfPy(n *reporter.Node) bool { return n.Origin == reporter.OriginPerfPy }
func boundedRSS(n *reporter.Node) bool { return n.Job != nil && n.Job.MaxRSSAtMost }

// differences describes how the sides differ, apart from metrics: in the number of nodes, and in the CPUs of the nodes.
func differences(a, b []*run) []string {
	var out []string
	for _, d := range []struct {
		what string
		of   func(*run) []int
	}{
		{"nodes per run", func(r *run) []int { return []int{len(r.nodes)} }},
		{"CPUs per node", nodeCPUs},
	} {
		inA, inB := distinct(a, d.of), distinct(b, d.of)
		if all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(inA, inB)))); len(all) > 1 {
			out = append(out, fmt.Sprintf("the number of %s differs: A has %s, B has %s",
				d.what, numbers(inA), numbers(inB)))
		}
	}

	return out
}

// nodeCPUs returns the known CPU counts of the nodes of r.
func nodeCPUs(r *run) []int {
	var out []int
	for _, n := range r.nodes {
		if n.Host != nil && n.Host.CPUs > 0 {
			out = append(out, n.Host.CPUs)
		}
	}
	return out
}

// distinct returns the numbers that numbersOf returns for runs, sorted and without duplicates.
func distinct(runs []*run, numbersOf func(*run) []int) []int {
	var out []int
	for _, r := range runs {
		out = append(out, numbersOf(r)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// numbers formats the first few numbers of list.
func numbers(list []int) string {
	if len(list) == 0 {
		return "unknown"
	}

	words := make([]string, 0, 4)
	for _, n := range list[:min(3, len(list))] {
		words = append(words, fmt.Sprint(n))
	}

	if len(list) > 3 {
		words = append(words, "…")
	}

	return strings.Join(words, ", ")
}

// recordingKey identifies a recording. Copies of a report have the same key.
type recordingKey struct{ id, start, nodes string }

// repeated returns a note on recordings that were given several times. Although Compare treats them as separate runs,
// there is no noise between them.
func repeated(a, b Side) []string {
	type place struct{ side, path string }
	at := make(map[recordingKey][]place)
	for _, s := range []struct {
		name string
		Side
	}{{"A", a}, {"B", b}} {
		for _, src := range s.Reports {
			if r := src.Report; !r.Run.Start.IsZero() {
				key := recordingKey{r.Run.ID, r.Run.Start.String(), strings.Join(r.NodeNames(), ",")}
				at[key] = append(at[key], place{s.name, src.Path})
			}
		}
	}

	var found [][]place
	for _, places := range at {
		if len(places) > 1 {
			found = append(found, places)
		}
	}

	if len(found) == 0 {
		return nil
	}

	first := slices.MinFunc(found, func(x, y []place) int { return cmp.Compare(x[0].path, y[0].path) })

	return []string{fmt.Sprintf("recordings given more than once, each counted every time: %d, %s (%s) = %s (%s)%s",
		len(found), first[0].path, first[0].side, first[1].path, first[1].side, andMore(len(found)))}
}
