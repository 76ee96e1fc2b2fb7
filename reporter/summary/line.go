package summary

import (
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// MaxLine is the maximum length of the result of Line in bytes, including the newline.
const MaxLine = 400

// minVerdictBytes and minAdviceBytes are how many bytes of the verdict and of the advice must fit next to the path. If
// they do not fit, a command replaces the path: see logLine.String.
const (
	minVerdictBytes = 60
	minAdviceBytes  = 30
)

// Line returns one line on a run for the log of a batch job, with its newline and at most MaxLine bytes: after a
// failure the verdict and the most important advice, otherwise the usage, and then path, the file of the page or the
// report. write converts text to what the log can show, such as ASCII; nil = no conversion.
func Line(r *reporter.Report, path string, write func(string) string) string {
	if write == nil {
		write = func(s string) string { return s }
	}
	verdict, advice := successText(r), ""
	if HasFailed(r) {
		verdict, advice = Headline(r), ShortAdvice(r)
		if v := r.Run.Verdict; v != nil && v.Text != "" {
			verdict = diagnosis.ShortVerdict(v)
		}
	}

	l := logLine{verdict: write(text.Printable(verdict)), advice: write(text.Printable(advice)), cut: write("…")}
	if path != "" {
		l.path = write(text.Printable(path))
		l.show = write("perfagent show " + text.Printable(r.Run.ID))
	}
	return l.String()
}

// successText returns how a run that did not fail ended, and what it used.
func successText(r *reporter.Report) string {
	words := []string{Headline(r)}
	if wall := r.Run.Wall(); wall >= 600 && wall < 3600 && r.Run.Incomplete == "" {
		words[0] = strings.Replace(words[0], text.Seconds(wall), text.Fixed(wall/60, 0)+" min", 1)
	}
	for _, b := range Bars(r) {
		if b.Key != BarGPUMemory {
			words = append(words, b.words())
		}
	}
	return strings.Join(words, "; ")
}

// words formats the bar: "CPU 1.44 of 4 (36 %)".
func (b Bar) words() string {
	switch {
	case b.Key == BarGPU:
		return b.Label + " " + b.Share()
	case b.Key == BarCPU:
		return fmt.Sprintf("%s %s of %s (%s)", b.Label, text.UsedCPUs(b.Used), b.of(text.CPUs), b.Share())
	case b.changedLimit != "":
		return fmt.Sprintf("%s %s of %s (%s)", b.Label, text.SizeText(b.Used), b.changedLimit, b.Share())
	}
	return fmt.Sprintf("%s %s (%s)", b.Label, usedOf(b.Used, b.Of), b.Share())
}

// usedOf formats MiB used out of a capacity: "1.5 of 8.0 GiB".
func usedOf(used, of float64) string {
	u, o := text.Size(used), text.Size(of)
	if u.Unit == o.Unit { // write the unit once
		return u.Number + " of " + o.String()
	}
	return u.String() + " of " + o.String()
}

// logLine holds the converted parts of the line.
type logLine struct {
	verdict, advice, path string
	show                  string // replaces a path that is too long
	cut                   string // ends a text that was cut
}

// String joins the parts. It cuts the verdict first and then the advice. If the path leaves too little room for them,
// the command that shows the report replaces it.
func (l logLine) String() string {
	room := MaxLine - len("perfagent: \n")
	verdict, advice := min(len(l.verdict), minVerdictBytes), min(len(l.advice), minAdviceBytes)
	if verdict+advice+len(l.path)+2*len("; ") > room {
		l.path = l.show
	}
	if l.path != "" {
		room -= len("; " + l.path)
	}
	if l.advice != "" {
		room -= len("; ")
	}

	l.verdict = l.clip(l.verdict, max(verdict, room-len(l.advice)))
	l.advice = l.clip(l.advice, room-len(l.verdict))

	out := "perfagent: " + l.verdict
	for _, part := range []string{l.advice, l.path} {
		if part != "" {
			out += "; " + part
		}
	}
	return out + "\n"
}

// clip cuts s to at most limit bytes, between two characters.
func (l logLine) clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return text.Prefix(s, max(0, limit-len(l.cut))) + l.cut
}
