package summary

import (
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// fence writes lines of any text as a block that they cannot end, and the number of omitted lines. It cuts each line to
// width cells.
func (m *markdownWriter) fence(lines []string, width int) {
	if len(lines) == 0 {
		return
	}
	m.block("", lines, width)
	m.line("")
}

// alert writes lines of any text as one of GitHub's alerts: a quotation with a coloured heading.
func (m *markdownWriter) alert(kind string, lines []string) {
	if len(lines) == 0 {
		return
	}
	m.line("> [!" + kind + "]")
	m.block("> ", lines, markdownWidth)
	m.line("")
}

// block writes a fenced block with mark before each line.
func (m *markdownWriter) block(mark string, lines []string, width int) {

	left := max(0, len(lines)-markdownLines)
	lines = lines[:len(lines)-left]
	words := make([]string, len(lines))
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			line = "    " + line // GitHub ends any block at 255 backticks, unless they are indented
		}
		words[i] = text.Clip(text.Printable(line), width)
	}

	fence := "```"
	for all := strings.Join(words, "\n"); strings.Contains(all, fence); {
		fence += "`"
	}
	m.line(mark + fence + "text")
	for _, line := range words {
		m.line(mark + line)
	}
	if left > 0 {
		m.line(mark + fmt.Sprintf("and %d more, see the report", left))
	}
	m.line(mark + fence)
}
