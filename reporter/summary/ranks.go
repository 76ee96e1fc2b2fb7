package summary

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// ranksShown is the maximum number of rows of a table of ranks.
const ranksShown = 16

// RankRow is a row of a table of ranks, in words.
type RankRow struct {
	Rank                       int
	Node                       string // the scheduler's name for the node; may be any text
	Exit                       string // "exit 3"
	CPU, Cores, Memory, Length string
	Failed                     bool // it failed, or its end is unknown
	First                      bool // the rank that failed first
	Odd                        bool // far from the median

	// End is the time when the rank ended or was last sampled; zero if unknown.
	End         time.Time
	cpu, length float64 // seconds
}

// Note returns a remark on the rank, in a word or two.
func (r *RankRow) Note() string {
	switch ended := r.Exit != text.Absent; {
	case r.First && ended:
		return "failed first"
	case r.Failed && !ended:
		return "no end"
	case r.Odd:
		return "uneven"
	}
	return ""
}

// RanksOf returns the ranks of a node in order. The verdict of run determines which rank failed first.
func RanksOf(run *reporter.Run, name string, n *reporter.Node) []RankRow {
	var out []RankRow
	first, known := EvidenceIndex(run.Verdict, "rank")
	for _, r := range n.RankList() {
		out = append(out, newRankRow(r, cmp.Or(n.HostName(), name), known && r.Rank == first))
	}
	return out
}

// EvidenceIndex returns the rank or node under key in the evidence of v, which may be nil.
func EvidenceIndex(v *reporter.Verdict, key string) (index int, ok bool) {
	if v == nil {
		return 0, false
	}
	f, ok := v.Evidence[key].(float64)
	return int(f), ok && f >= 0 && f < math.MaxInt32 && f == math.Trunc(f)
}

func newRankRow(r *reporter.Rank, node string, first bool) RankRow {
	metric := func(name string) float64 { return metricOrNaN(r.Metrics, name) }
	row := RankRow{
		Rank: r.Rank, Node: node, First: first, Exit: endText(r.ExitCode, r.Signal), End: r.End.Time,
		cpu: metric(reporter.MetricJobCPU), length: math.NaN(),
		Cores:  text.UsedCPUs(metric(reporter.MetricJobCores)),
		Memory: text.SizeText(metric(reporter.MetricJobMemoryPeak)),
		Failed: r.ExitCode != nil && *r.ExitCode != 0 || r.Incomplete != "",
	}
	if !r.Start.IsZero() && !r.End.IsZero() {
		row.length = max(0, r.End.Sub(r.Start.Time).Seconds())
	}
	row.CPU, row.Length = text.Seconds(row.cpu), text.Seconds(row.length)
	return row
}

// rankRows returns the ranks of all nodes, by rank.
func rankRows(r *reporter.Report) []RankRow {
	var out []RankRow
	for _, name := range r.NodeNames() {
		out = append(out, RanksOf(&r.Run, name, r.Nodes[name])...)
	}
	if len(out) == 0 {
		return nil
	}

	odd := make(map[int]bool)
	for rank := range diagnosis.OddRanks(r) {
		odd[rank.Rank] = true
	}
	for i := range out {
		out[i].Odd = odd[out[i].Rank]
	}
	slices.SortStableFunc(out, func(a, b RankRow) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}

// ChooseRanks returns at most limit of the ranks, and the omitted ranks. The rank that failed first is in the first
// row, and the rest are in order of rank. ChooseRanks prefers ranks that failed, the earliest first, and then uneven
// ranks.
func ChooseRanks(rows []RankRow, limit int) (shown, left []RankRow) {
	class := func(r *RankRow) int {
		switch {
		case r.First:
			return 0
		case r.Failed:
			return 1
		case r.Odd:
			return 2
		}
		return 3
	}
	byNeed := slices.SortedStableFunc(slices.Values(rows), func(a, b RankRow) int {
		if c := cmp.Compare(class(&a), class(&b)); c != 0 || !a.Failed {
			return c
		}
		return a.End.Compare(b.End)
	})

	limit = min(limit, len(rows))
	shown, left = byNeed[:limit:limit], byNeed[limit:]
	slices.SortStableFunc(shown, func(a, b RankRow) int {
		return cmp.Or(cmp.Compare(min(1, class(&a)), min(1, class(&b))), cmp.Compare(a.Rank, b.Rank))
	})
	return shown, left
}

// RestOfRanks counts omitted ranks by how they ended: "48 more: 45 succeeded, 3 SIGTERM".
func RestOfRanks(left []RankRow) string {
	if len(left) == 0 {
		return ""
	}
	counts := make(map[string]int)
	for _, r := range left {
		counts[r.Exit]++
	}
	ends := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})

	var parts []string
	for _, end := range ends {
		parts = append(parts, strconv.Itoa(counts[end])+" "+strings.Replace(end, text.Absent, "without an end", 1))
	}
	return strconv.Itoa(len(left)) + " more: " + text.List(parts, 3)
}

// rankTable returns a table of ranks.
func rankTable(rows []RankRow, short bool) *table.Table {
	t := &table.Table{HeadStyle: dim, Columns: []table.Column{
		{Head: "rank", Right: true, Min: 6, Max: 6}, {Head: "host", Min: 12, Max: 12}, {Head: "end", Min: 12, Max: 12},
		{Head: "CPU time", Right: true, Min: 8, Max: 8}, {Head: "CPUs", Right: true, Min: 6, Max: 6},
		{Head: "memory", LongHead: "peak memory", Right: true, Min: 9, Max: 9}, {Head: "time", Right: true, Min: 7, Max: 7},
		{LongHead: "remark"},
	}}
	for _, r := range rows {
		node, cpu, length := r.Node, r.CPU, r.Length
		if short {
			node, cpu, length = shortHost(text.Printable(node)), text.ShortSeconds(r.cpu), text.ShortSeconds(r.length)
		}
		row := table.Row{Cells: []table.Cell{
			table.Bare(strconv.Itoa(r.Rank)), table.Untrusted(node), table.Untrusted(r.Exit), table.Bare(cpu),
			table.Bare(r.Cores),
			table.Bare(r.Memory), table.Bare(length), {Text: r.Note()},
		}}
		if r.Failed {
			row.Style = alarm
		}
		t.Rows = append(t.Rows, row)
	}

	return t
}

// ranks writes the table of ranks, if there are any.
func (p *terminalWriter) ranks(r *reporter.Report) {
	rows := rankRows(r)
	if len(rows) == 0 {
		return
	}

	p.gap()
	shown, left := ChooseRanks(rows, ranksShown)
	p.table("", rankTable(shown, true), 1)
	if rest := RestOfRanks(left); rest != "" {
		p.line(dim, text.PadRight("", len("  rank "))+rest)
	}
	p.gap()
}

// ranks writes the table of ranks, if there are any.
func (m *markdownWriter) ranks(r *reporter.Report) {
	shown, left := ChooseRanks(rankRows(r), ranksShown)
	remark := ""
	if rest := RestOfRanks(left); rest != "" {
		remark = "And " + table.CodeSpan(rest) + "."
	}
	m.table(rankTable(shown, false), remark)
}
