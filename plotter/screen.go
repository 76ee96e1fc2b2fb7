package plotter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/summary"
)

// ScreenOptions say how the live view looks.
type ScreenOptions struct {
	// Width and Height are how many cells and lines there are.
	Width, Height int
	ASCII, Color  bool // only ASCII; colours
	// Node is shown in full; the others get a line each.
	Node string
	// Live is what is known of the nodes beside the report.
	Live map[string]LiveNode
	// More is how many nodes go on that are not in the report; Ended how many have ended.
	More, Ended int
	// Footer is the last line: how to leave.
	Footer string
}

// LiveNode is what is known of a node of a run that goes on, beside its report.
type LiveNode struct {
	// State says how it stands: "running for 3 min 20 s"; it is at its End with "exit 0
	// after 12.3 s".
	State string
	Alarm bool // the state is none that was wished for
	// Trouble is what keeps us from knowing more; "" = nothing.
	Trouble string
	End     bool
	// Newest is the newest sample by collector.Column, NaN = not measured; nil = unknown.
	Newest []float64
}

// The layout of a screen: label, picture, two numbers.
const (
	screenLabel  = 11
	screenNumber = 12
)

// screenLine is a line of a screen. Where there is no room, the greatest ranks go first.
type screenLine struct {
	rank  int
	style string // as in SGR (ECMA-48), "" = plain
	text  string
}

// Styles of lines where colours are allowed.
const (
	screenBold  = "1"
	screenDim   = "2"
	screenAlarm = "1;31"
)

// Screen draws a run that goes on as at most Height lines of at most Width cells: how
// it stands, CPU, memory, disk and network of one node and what its job and its GPUs do,
// with the newest value and the peak, perfagent's own cost, and a line for each other node. Pictures show the
// greatest value of each cell. Nothing in the report can make it hold control
// characters other than the colours asked for.
func Screen(r *reporter.Report, o ScreenOptions) []string {
	footer := screenFooter(o)
	others := screenOthers(r, o)
	room := o.Height - len(footer)
	lines := screenFit(screenNode(r, o), room-min(len(others), max(1, room/3)))
	lines = append(lines, screenCut(others, o, room-len(lines))...)
	lines = append(lines, footer...)
	out := make([]string, 0, len(lines))
	for _, l := range lines[:max(0, min(len(lines), o.Height))] {
		out = append(out, l.render(o))
	}
	return out
}

// screenFit leaves out the least important lines until the others fit.
func screenFit(lines []screenLine, room int) []screenLine {
	for len(lines) > max(0, room) {
		last := 0
		for i, l := range lines {
			if l.rank >= lines[last].rank {
				last = i
			}
		}
		lines = append(lines[:last:last], lines[last+1:]...)
	}
	return lines
}

// screenCut keeps as many of the other nodes as there is room for, and counts the rest
// in the last line, which others has when any are counted already.
func screenCut(others []screenLine, o ScreenOptions, room int) []screenLine {
	if len(others) <= room || room < 1 {
		return others[:min(len(others), max(0, room))]
	}
	if o.More+o.Ended > 0 {
		others = others[:len(others)-1]
	}
	kept := others[: room-1 : room-1]
	o.More += len(others) - len(kept)
	return append(kept, screenRest(o))
}

// screenRest counts the nodes that have no line.
func screenRest(o ScreenOptions) screenLine {
	var words []string
	if o.More > 0 {
		words = append(words, fmt.Sprintf("%d more", o.More))
	}
	if o.Ended > 0 {
		words = append(words, fmt.Sprintf("%d ended before", o.Ended))
	}
	return screenLine{style: screenDim, text: screenPad("nodes", screenLabel) + strings.Join(words, ", ")}
}

// render cuts a line to the screen and dresses it.
func (l screenLine) render(o ScreenOptions) string {
	words := l.text
	if o.ASCII {
		words = screenASCII(words)
	}
	words = strings.TrimRight(screenClip(words, o.Width), " ")
	if o.ASCII {
		words = strings.ReplaceAll(words, "…", "~")
	}
	if o.Color && l.style != "" && words != "" {
		return "\x1b[" + l.style + "m" + words + "\x1b[0m"
	}
	return words
}

// screenClip cuts text to a width, but no number in two, nor from its unit: what is left
// would look like another number.
func screenClip(words string, width int) string {
	if text.Width(words) <= width {
		return words
	}
	kept := strings.TrimSuffix(text.Clip(words, width), "…")
	whole, rest := strings.TrimRight(kept, " "), strings.TrimLeft(words[len(kept):], " ")
	const digits = "0123456789."
	less := strings.TrimRight(whole, digits)
	if less != whole && rest != "" && (strings.ContainsRune(digits+"%", rune(rest[0])) || rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z') {
		kept = less
	}
	return text.Clip(kept+"…", width)
}

// screenASCII writes our own signs with ASCII's, and what else is beyond it as escapes.
func screenASCII(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case r == '–':
			out.WriteByte('-')
		case r == '×':
			out.WriteByte('x')
		case r == '…':
			out.WriteByte('~')
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// screenFooter is the last line, where there is one.
func screenFooter(o ScreenOptions) []screenLine {
	if o.Footer == "" || o.Height < 3 {
		return nil
	}
	return []screenLine{{style: screenDim, text: o.Footer}}
}

// screenNode is all but the other nodes and the footer.
func screenNode(r *reporter.Report, o ScreenOptions) []screenLine {
	n, live := r.Nodes[o.Node], o.Live[o.Node]
	if n == nil {
		n = &reporter.Node{}
	}
	title := screenLine{0, screenBold, screenTitle(r, o.Node, live)}
	if live.Alarm {
		title.style = screenAlarm
	}
	lines := []screenLine{title}
	if live.Trouble != "" {
		lines = append(lines, screenLine{1, screenAlarm, text.Printable(live.Trouble)})
	}
	if len(r.Run.Command) > 0 {
		lines = append(lines, screenLine{4, "", screenPad("command", screenLabel) + screenCommand(r.Run.Command, o.Width)})
	}
	if host := screenHost(n.Host); host != "" {
		lines = append(lines, screenLine{8, "", screenPad("host", screenLabel) + host})
	}
	lines = append(lines, screenLine{rank: 20})
	lines = append(lines, screenRows(n, live, o)...)
	lines = append(lines, screenLine{rank: 21})
	if cost := screenCost(n, r.Run.WallSeconds); cost != "" {
		lines = append(lines, screenLine{3, screenDim, screenPad("perfagent", screenLabel) + cost})
	}
	return append(lines, screenLine{rank: 22})
}

// screenTitle says how the node stands and which it is.
func screenTitle(r *reporter.Report, node string, live LiveNode) string {
	state := live.State
	if state == "" {
		state = sparkAbsent
	}
	words := text.Printable(state) + "   run " + text.Clip(text.Printable(r.Run.ID), 40) + ", node " + text.Clip(text.Printable(node), 10)
	if !r.Run.Start.IsZero() {
		words += ", " + r.Run.Start.UTC().Format("2006-01-02 15:04 MST")
	}
	return words
}

// screenCommand is the beginning of a command's line: the rest of a megabyte of words
// is not looked at.
func screenCommand(command []string, width int) string {
	short, left := make([]string, 0, min(len(command), width+1)), 4*max(0, width)
	for _, word := range command {
		if left < 0 {
			break
		}
		if len(word) > left {
			word = word[:left] // what is cut in the middle of a character is off the screen
		}
		short, left = append(short, word), left-len(word)-1
	}
	return summary.CommandLine(short)
}

// screenHost names the machine.
func screenHost(h *reporter.Host) string {
	if h == nil {
		return ""
	}
	var words []string
	if h.Hostname != "" {
		words = append(words, text.Clip(text.Printable(h.Hostname), 40))
	}
	if h.CPUs > 0 {
		words = append(words, fmt.Sprintf("%d CPUs", h.CPUs))
	}
	if h.MemoryMB > 0 {
		words = append(words, text.SizeText(h.MemoryMB)+" memory")
	}
	return strings.Join(words, ", ")
}

// screenCost says what the measuring cost so far, and how it goes.
func screenCost(n *reporter.Node, wall float64) string {
	var words []string
	if a := n.Agent; a != nil && a.CPUSeconds > 0 {
		cost := "own cost " + text.Seconds(a.CPUSeconds) + " of CPU"
		if share := 100 * a.CPUSeconds / wall; share > 0 && share < 1e6 {
			cost += fmt.Sprintf(" (%.2g %%)", share)
		}
		words = append(words, cost)
	}
	if s := n.Sampling; s != nil && s.IntervalSeconds > 0 && s.IntervalSeconds < 1e9 {
		words = append(words, fmt.Sprintf("%d × %v s sampled, %d missed", s.Samples, s.IntervalSeconds, s.MissedTicks))
	}
	return strings.Join(words, ", ")
}

// screenRow is a row of a screen: what it is called and where it is from.
type screenRow struct {
	rank   int
	label  string
	column collector.Column
}

// screenColumns lists the rows from top to bottom: those of the node always, those of the
// job, of its limits and of the GPUs where something was measured.
func screenColumns(n *reporter.Node, live LiveNode) []screenRow {
	rows := []screenRow{
		{1, "CPU", collector.CPUAvg},
		{9, "busiest", collector.CPUMax},
		{1, "memory", collector.MemPercent},
	}
	for _, row := range append([]screenRow{
		{1, "job CPU", collector.JobCPU},
		{1, "job memory", collector.JobMemory},
		{1, "mem limit", collector.LimitMemoryPercent},
		{2, "throttled", collector.JobThrottled},
	}, screenGPUs(n)...) {
		if now, peak := screenNumbers(n, live, row.column); !math.IsNaN(now) || !math.IsNaN(peak) {
			rows = append(rows, row)
		}
	}
	return append(rows, []screenRow{
		{2, "disk read", collector.DiskReadRate},
		{2, "disk write", collector.DiskWriteRate},
		{2, "net recv", collector.NetExtRecvRate},
		{2, "net sent", collector.NetExtSentRate},
		{10, "loop recv", collector.NetLoRecvRate},
		{10, "loop sent", collector.NetLoSentRate},
		{11, "disk fill", collector.DiskPercent},
	}...)
}

// screenGPUs are the rows of the job's GPUs; where it has none, of all that the node has.
// Of several the later ones go first, where there is no room.
func screenGPUs(n *reporter.Node) []screenRow {
	gpus := n.GPUs[:min(len(n.GPUs), collector.MaxGPUs)]
	own := slices.ContainsFunc(gpus, func(g reporter.GPU) bool { return g.OfJob })
	var rows []screenRow
	for i, g := range gpus {
		if own && !g.OfJob {
			continue
		}
		name, rank := "GPU "+strconv.Itoa(i), len(rows)/2
		rows = append(rows, screenRow{min(2+rank, 8), name, collector.GPUColumn(i, collector.GPUUtilization)},
			screenRow{min(5+rank, 8), name + " mem", collector.GPUColumn(i, collector.GPUMemoryUsed)})
	}
	return rows
}

// screenTop is the upper end of a row's picture: 100 of a percent; what there is of a thing
// that has a bound, where that is known; else the greatest value.
func screenTop(n *reporter.Node, c collector.Column, values []float64) float64 {
	bound := 0.0
	device, key, isGPU := c.GPU()
	switch {
	case c.Percent():
		return 100
	case c == collector.JobCPU && n.Limits != nil:
		bound = n.Limits.CPUs
	case c == collector.JobMemory && n.Limits != nil:
		bound = n.Limits.MemoryMB
	case isGPU && key == collector.GPUMemoryUsed && device < len(n.GPUs):
		bound = n.GPUs[device].MemoryMB
	}
	return max(leastRate, sparkPeak(values), bound)
}

// screenRows are the pictures with their numbers, and what they mean above them.
func screenRows(n *reporter.Node, live LiveNode, o ScreenOptions) []screenLine {
	cells, numbers := o.Width-screenLabel-2*screenNumber-1, 2
	if cells < leastPicture {
		cells, numbers = cells+screenNumber, 1
	}
	if cells < leastPicture {
		cells = 0
	}
	if o.Width < screenLabel+screenNumber {
		return screenNarrow(n, live, o)
	}
	lines := []screenLine{{6, screenDim, screenHeader(n, live, cells, numbers)}}
	for _, row := range screenColumns(n, live) {
		values := sparkValues(n, row.column)
		words := screenPad(row.label, screenLabel)
		if cells > 0 {
			words += screenPad(Spark(values, cells, 0, screenTop(n, row.column, values), o.ASCII), cells) + " "
		}
		now, peak := screenNumbers(n, live, row.column)
		for _, v := range []float64{now, peak}[:numbers] {
			words += screenPadLeft(screenValue(row.column, v, screenNumber-1), screenNumber)
		}
		lines = append(lines, screenLine{row.rank, "", words})
	}
	return lines
}

// screenNarrow are the rows where there is no room for a picture, nor for the blanks
// between label and number.
func screenNarrow(n *reporter.Node, live LiveNode, o ScreenOptions) []screenLine {
	lines := []screenLine{{6, screenDim, screenPadLeft(screenFirst(live), o.Width)}}
	for _, row := range screenColumns(n, live) {
		now, _ := screenNumbers(n, live, row.column)
		room := o.Width - text.Width(row.label)
		words := row.label
		if room > 1 {
			words += screenPadLeft(screenValue(row.column, now, room-1), room)
		}
		lines = append(lines, screenLine{row.rank, "", words})
	}
	return lines
}

// screenHeader stands above the rows: the time that the pictures span, and what the
// numbers are.
func screenHeader(n *reporter.Node, live LiveNode, cells, numbers int) string {
	words := strings.Repeat(" ", screenLabel)
	if cells > 0 {
		axis := ""
		if used := min(n.Samples.Len(), cells); used > 0 {
			from, to := sparkSpan(n)
			axis = sparkAxis(to-from, used)
		}
		words += screenPad(axis, cells) + " "
	}
	for _, word := range []string{screenFirst(live), "peak"}[:numbers] {
		words += screenPadLeft(word, screenNumber)
	}
	return words
}

// screenFirst says what the first number is.
func screenFirst(live LiveNode) string {
	switch {
	case live.End:
		return "mean"
	case live.Alarm:
		return "last"
	}
	return "now"
}

// screenNumbers gives the newest value of a column, or at the end its mean, and its
// peak; NaN = not known.
func screenNumbers(n *reporter.Node, live LiveNode, c collector.Column) (now, peak float64) {
	now, peak = math.NaN(), math.NaN()
	q, ok := n.Summaries[c.Key()]
	if ok {
		peak = q.Max
	}
	switch {
	case live.End && ok:
		now = q.Mean
	case !live.End && int(c) < len(live.Newest):
		now = live.Newest[c]
	}
	return now, peak
}

// screenValue writes a value of a column in so many cells: where there is no room for
// the blank and the unit, without; where there is none for all digits, as … alone.
func screenValue(c collector.Column, v float64, room int) string {
	for _, words := range screenForms(c, v) {
		if text.Width(words) <= room {
			return words
		}
	}
	return "…"
}

// screenForms are the ways to write a value, the longest first. Only MiB may be left out
// of a rate: it is what a number without a unit is taken for.
func screenForms(c collector.Column, v float64) []string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []string{sparkAbsent}
	}
	if c.Percent() {
		number, unit, _ := strings.Cut(text.Percent(v), " ")
		return []string{number + " " + unit, number + unit, number}
	}
	switch c.Unit() {
	case collector.JobCPU.Unit():
		number := screenCPUs(v)
		return []string{number + " CPUs", number}
	case collector.JobMemory.Unit():
		number, unit := screenSize(v)
		return []string{number + " " + unit, number + unit, number + unit[:1]}
	}
	number, unit := screenRate(v)
	forms := []string{number + " " + unit, number + unit, number + unit[:1]}
	if unit == "MiB/s" {
		forms = append(forms, number)
	}
	return forms
}

// screenCPUs writes a number of CPUs.
func screenCPUs(v float64) string {
	if a := math.Abs(v); a < 99.995 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	} else if a < 99999.5 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}

// screenSize writes MiB with the binary unit that keeps it short.
func screenSize(v float64) (number, unit string) {
	if math.Abs(v) < 999.95 {
		number, unit = strconv.FormatFloat(v, 'f', 1, 64), "MiB/s"
	} else {
		number, unit = screenRate(v)
	}
	return number, strings.TrimSuffix(unit, "/s")
}

// screenRate writes MiB per second with the binary unit that keeps it short: at most
// 999.9 GiB/s.
func screenRate(v float64) (number, unit string) {
	if math.Abs(v) < 999.95 {
		number, unit, _ = strings.Cut(text.Rate(v), " ")
		return number, unit
	}
	units := [...]string{"MiB/s", "GiB/s", "TiB/s", "PiB/s", "EiB/s"}
	i := 0
	for ; math.Abs(v) >= 1023.5 && i < len(units)-1; i++ {
		v /= 1024
	}
	switch a := math.Abs(v); {
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64), units[i]
	case a < 999.95:
		return strconv.FormatFloat(v, 'f', 1, 64), units[i]
	case a < 9999.5:
		return strconv.FormatFloat(v, 'f', 0, 64), units[i]
	}
	return strconv.FormatFloat(v, 'e', 1, 64), units[i]
}

// screenOthers are the lines of the other nodes, and the count of those without one.
func screenOthers(r *reporter.Report, o ScreenOptions) []screenLine {
	var lines []screenLine
	words := 0 // the same for all, so that the pictures are of one time axis
	for name, live := range o.Live {
		if name != o.Node && (live.End || live.Alarm) {
			words = min(30, max(words, 2+text.Width(live.State)))
		}
	}
	for _, name := range r.NodeNames() {
		if name == o.Node {
			continue
		}
		n, live := r.Nodes[name], o.Live[name]
		if n == nil {
			n = &reporter.Node{}
		}
		style := ""
		if live.Alarm {
			style = screenAlarm
		}
		lines = append(lines, screenLine{style: style, text: screenOther(name, n, live, o, min(40, o.Width-screenLabel-31-words))})
	}
	if o.More+o.Ended > 0 {
		lines = append(lines, screenRest(o))
	}
	return lines
}

// screenOther is the line of another node: CPU with its picture of so many cells,
// memory, and how it stands unless it goes on.
func screenOther(name string, n *reporter.Node, live LiveNode, o ScreenOptions, cells int) string {
	label := "node " + text.Clip(text.Printable(name), 10)
	words := screenPad(label, screenLabel)
	if cells >= leastPicture {
		words += screenPad(Spark(sparkValues(n, collector.CPUAvg), cells, 0, 100, o.ASCII), cells) + " "
	}
	value := func(c collector.Column) string {
		v, _ := screenNumbers(n, live, c)
		return screenValue(c, v, 7)
	}
	cpu, memory := value(collector.CPUAvg), value(collector.MemPercent)
	words += "CPU " + screenPadLeft(cpu, 7) + "  memory " + screenPadLeft(memory, 7)
	if live.End || live.Alarm {
		if text.Width(words)+2 >= o.Width { // then how it stands is what matters
			return label + " " + text.Printable(live.State)
		}
		return words + "  " + text.Printable(live.State)
	}
	for _, shorter := range []string{words, label + " CPU " + cpu + " memory " + memory, label + " CPU " + cpu} {
		if text.Width(shorter) <= o.Width {
			return shorter
		}
	}
	return label + " …"
}

// ScreenLine says in one line what a screen shows of a node: for a log, or a terminal
// that can do no more.
func ScreenLine(r *reporter.Report, o ScreenOptions) string {
	n, live := r.Nodes[o.Node], o.Live[o.Node]
	if n == nil {
		n = &reporter.Node{}
	}
	value := func(c collector.Column) string {
		now, _ := screenNumbers(n, live, c)
		return screenForms(c, now)[0]
	}
	_, peak := screenNumbers(n, live, collector.CPUAvg)
	words := fmt.Sprintf("%s: CPU %s (peak %s), memory %s, disk read %s, written %s, network received %s, sent %s",
		text.Printable(live.State), value(collector.CPUAvg), screenForms(collector.CPUAvg, peak)[0], value(collector.MemPercent),
		value(collector.DiskReadRate), value(collector.DiskWriteRate), value(collector.NetExtRecvRate), value(collector.NetExtSentRate))
	for _, row := range screenColumns(n, live) {
		if now, _ := screenNumbers(n, live, row.column); row.column >= collector.JobCPU && !math.IsNaN(now) {
			words += ", " + row.label + " " + screenForms(row.column, now)[0]
		}
	}
	if live.Trouble != "" {
		words += "; " + text.Printable(live.Trouble)
	}
	if o.ASCII {
		return screenASCII(words)
	}
	return words
}

// screenPad fills text up to a width in cells; screenPadLeft does so on the other side.
func screenPad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-text.Width(s)))
}

func screenPadLeft(s string, width int) string {
	return strings.Repeat(" ", max(0, width-text.Width(s))) + s
}
