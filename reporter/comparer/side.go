package comparer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/reporter"
)

// Side is one of the two sets of runs. Of its reports only what is known of the runs
// and the nodes' metrics is read: a caller that has many may drop the series.
type Side struct {
	Name    string // how the set was given, for people
	Reports []reporter.Source
}

// run is one run of the job, on one node or on many.
type run struct {
	reporter.Run
	path  string // of its first report
	nodes []node // by index
	// failed is the exit code of the run, 0 when it succeeded or has none.
	failed int
}

type node struct {
	name string
	*reporter.Node
}

// runsOf puts the reports of one side together into runs. Reports of one run id that
// hold different nodes are one run. Where a node was recorded several times under one
// id, the first recordings of all nodes are the first run, the second ones the next,
// and so on; the order is that of their starts. A report without a run id, like
// perf.py's, is a run.
func runsOf(reports []reporter.Source) []*run {
	reports = slices.SortedStableFunc(slices.Values(reports), func(a, b reporter.Source) int {
		return a.Report.Run.Start.Compare(b.Report.Run.Start.Time)
	})

	var all []*run
	byID := make(map[string][]*run)
	for _, src := range reports {
		id := src.Report.Run.ID
		var home *run
		for _, r := range byID[id] {
			if id != "" && !r.hasAny(src.Report) {
				home = r
				break
			}
		}

		if home == nil {
			home = &run{Run: src.Report.Run, path: src.Path}
			all, byID[id] = append(all, home), append(byID[id], home)
		}

		home.add(src.Report)
	}

	for _, r := range all {
		slices.SortFunc(r.nodes, byIndex)
	}

	return all
}

// byIndex orders nodes by their index, which is a decimal number without leading zeros.
func byIndex(a, b node) int {
	return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
}

// hasAny tells whether the run has one of the report's nodes already.
func (r *run) hasAny(report *reporter.Report) bool {
	return slices.ContainsFunc(r.nodes, func(n node) bool { return report.Nodes[n.name] != nil })
}

// add takes the nodes of a report into the run.
func (r *run) add(report *reporter.Report) {
	for _, name := range report.NodeNames() {
		if n := report.Nodes[name]; n != nil {
			r.nodes = append(r.nodes, node{name, n})
		}
	}

	if r.Incomplete == "" {
		r.Incomplete = report.Run.Incomplete
	}
	if code := report.Run.ExitCode; code != nil && r.failed == 0 {
		r.failed = *code
	}
}

// remarks says what a reader must know of the runs of a side to read the comparison
// rightly.
func remarks(name string, runs []*run) []string {
	var out []string
	say := func(what string, is func(*run) bool) {
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
			out = append(out, fmt.Sprintf("%s: %d of %d runs %s: %s%s", name, count, len(runs), what, first.path, andMore(count)))
		}
	}

	say("ended with an error", func(r *run) bool { return r.failed != 0 })
	say("have no end (still going on, or cut off)", func(r *run) bool { return r.Incomplete != "" })
	say("are perf.py's (shares of the kept samples)", func(r *run) bool { return r.any(fromPerfPy) })
	say("tell only an upper bound of job_max_rss_mb", func(r *run) bool { return r.any(boundedRSS) })
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

// differences says what is not alike in the runs of the two sides, but for what was
// measured: how many nodes they had, and of which size.
func differences(a, b []*run) []string {
	var out []string
	for _, d := range []struct {
		what string
		of   func(*run) []int
	}{
		{"nodes a run", func(r *run) []int { return []int{len(r.nodes)} }},
		{"CPUs a node", nodeCPUs},
	} {
		inA, inB := distinct(a, d.of), distinct(b, d.of)
		if all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(inA, inB)))); len(all) > 1 {
			out = append(out, fmt.Sprintf("not the same number of %s: A has %s, B has %s", d.what, numbers(inA), numbers(inB)))
		}
	}

	return out
}

// nodeCPUs are the numbers of CPUs of a run's nodes, as far as known.
func nodeCPUs(r *run) []int {
	var out []int
	for _, n := range r.nodes {
		if n.Host != nil && n.Host.CPUs > 0 {
			out = append(out, n.Host.CPUs)
		}
	}
	return out
}

// distinct collects what runs have, each number once, sorted.
func distinct(runs []*run, of func(*run) []int) []int {
	var out []int
	for _, r := range runs {
		out = append(out, of(r)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// numbers writes a few of them.
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

// recording identifies what was recorded: copies of a report have the same.
type recording struct{ id, start, nodes string }

// repeated names recordings that are there several times, as if they were several
// runs; no noise is seen between them.
func repeated(a, b Side) []string {
	type place struct{ side, path string }
	at := make(map[recording][]place)
	for _, s := range []struct {
		name string
		Side
	}{{"A", a}, {"B", b}} {
		for _, src := range s.Reports {
			if r := src.Report; !r.Run.Start.IsZero() {
				key := recording{r.Run.ID, r.Run.Start.String(), strings.Join(r.NodeNames(), ",")}
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
	return []string{fmt.Sprintf("recordings that are there more than once, and count as often: %d, %s (%s) = %s (%s)%s",
		len(found), first[0].path, first[0].side, first[1].path, first[1].side, andMore(len(found)))}
}
