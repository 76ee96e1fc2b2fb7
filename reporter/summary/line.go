package summary

import (
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// MaxLine is the maximum length of the result of Line in bytes, including the newline.
const MaxLine = 400

// Line returns one line on a run for the log of a batch job, with its newline and at most MaxLine bytes: the cause and
// the action of its conclusion, and then path, the file of the page or the report. write converts text to characters
// that the log can show, such as ASCII; nil = no conversion.
//
// Line cuts the cause first and then the action. If the path leaves too little room for them, it is replaced with the
// command that shows the report, with the directory or else the ID of the run.
func Line(r *reporter.Report, path string, write func(string) string) string {
	if write == nil {
		write = func(s string) string { return s }
	}
	clip := func(s string, limit int) string { // cuts between two characters
		if cut := write("…"); len(s) > limit {
			return text.Prefix(s, max(0, limit-len(cut))) + cut
		}
		return s
	}
	c := Conclude(r)
	words, action := write(c.Cause), write(c.Action)
	room := MaxLine - len("perfagent: \n")
	cause := min(len(words), minCauseBytes)
	if path != "" {
		label := "Report: "
		if strings.HasSuffix(path, ".html") {
			label = "Page: "
		}
		for _, where := range []string{label + text.Printable(path), "More: " + showCommand(r, Options{Path: path}),
			"More: perfagent show " + text.Printable(r.Run.ID) + ", with the same --out"} {
			if path = " " + write(where); cause+min(len(action), minActionBytes)+len(path)+len(" ") <= room {
				break
			}
		}
	}
	if room -= len(path); action != "" {
		room -= len(" ")
	}

	words = clip(words, max(cause, room-len(action)))
	if action = clip(action, room-len(words)); action != "" {
		action = " " + action
	}
	return "perfagent: " + words + action + path + "\n"
}

// minCauseBytes and minActionBytes are the numbers of bytes of the cause and of the action that must fit next to the
// path.
const minCauseBytes, minActionBytes = 60, 30
