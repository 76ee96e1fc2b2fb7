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
	m.line(fence + "text")
	for _, line := range words {
		m.line(line)
	}
	if left > 0 {
		m.line(fmt.Sprintf("and %d more, see the report", left))
	}
	m.line(fence)
	m.line("")
}
