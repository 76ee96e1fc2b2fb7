package summary

import (
	"strconv"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// LogLines returns at most limit of the last lines of the log of the job that failed first, printable, and a title for
// them. It returns "" and nil if there are none.
func LogLines(r *reporter.Report, limit int) (title string, lines []string) {
	log := endOf(r).log
	if log == nil || len(log.Lines) == 0 {
		return "", nil
	}
	for _, line := range log.Lines[max(0, len(log.Lines)-limit):] {
		lines = append(lines, text.Clip(text.Printable(text.Prefix(line, 4*reporter.MaxLogLine)), reporter.MaxLogLine))
	}

	title = "Last line"
	if n := len(lines); n > 1 {
		title = "Last " + strconv.Itoa(n) + " lines"
	}
	stream := text.Clip(text.Printable(log.Stream), 20)
	if log.Stream == reporter.LogBoth {
		stream = "stdout and stderr"
	}
	title += " of " + stream + ", " + text.ClipStart(text.Printable(log.File), markdownWidth)
	if log.Shared {
		title += ", where others may have written, too"
	}
	return title, lines
}

// log writes the last lines of the log of the job that failed first, each on at most four lines.
func (p *terminalWriter) log(r *reporter.Report) {
	title, lines := LogLines(r, reporter.MaxLogLines)
	if title == "" {
		return
	}
	p.gap()
	p.block(dim, "", title, 4)
	for _, line := range lines {
		p.block(plain, "  ", line, 4)
	}
}

// log writes the last lines of the log of the job that failed first.
func (m *markdownWriter) log(r *reporter.Report) {
	if title, lines := LogLines(r, markdownLines); title != "" {
		m.paragraph(m.prose(title + ":"))
		m.fence(lines, markdownWidth)
	}
}
