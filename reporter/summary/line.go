package summary

import (
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// MaxLine is the maximum length of the result of Line in bytes, including the newline.
const MaxLine = 400

// minCauseBytes and minActionBytes are how many bytes of the cause and of the action must fit next to the path. If they
// do not fit, a command replaces the path: see logLine.String.
const (
	minCauseBytes  = 60
	minActionBytes = 30
)

// Line returns one line on a run for the log of a batch job, with its newline and at most MaxLine bytes: the cause and
// the action of its conclusion, and then path, the file of the page or the report. write converts text to what the log
// can show, such as ASCII; nil = no conversion.
func Line(r *reporter.Report, path string, write func(string) string) string {
	if write == nil {
		write = func(s string) string { return s }
	}
	c := Conclude(r)
	l := logLine{cause: write(c.Cause), action: write(c.Action), cut: write("…")}
	if path != "" {
		label := "Report: "
		if strings.HasSuffix(path, ".html") {
			label = "Page: "
		}
		l.path = write(label + text.Printable(path))
		l.show = write("More: perfagent show " + text.Printable(r.Run.ID))
	}
	return l.String()
}

// logLine holds the converted parts of the line.
type logLine struct {
	cause, action, path string
	show                string // replaces a path that is too long
	cut                 string // ends a text that was cut
}

// String joins the parts. It cuts the cause first and then the action. If the path leaves too little room for them, the
// command that shows the report replaces it.
func (l logLine) String() string {
	room := MaxLine - len("perfagent: \n")
	cause, action := min(len(l.cause), minCauseBytes), min(len(l.action), minActionBytes)
	if cause+action+len(l.path)+2*len(" ") > room {
		l.path = l.show
	}
	if l.path != "" {
		room -= len(" " + l.path)
	}
	if l.action != "" {
		room -= len(" ")
	}

	l.cause = l.clip(l.cause, max(cause, room-len(l.action)))
	l.action = l.clip(l.action, room-len(l.cause))

	out := "perfagent: " + l.cause
	for _, part := range []string{l.action, l.path} {
		if part != "" {
			out += " " + part
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
