package reporter

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/perfagent/perfagent/internal/text"
)

// lineDepth is the deepest level of nesting at which each value has a separate line: fields, samples and envelopes.
const lineDepth = 4

// Encode returns the content of the report file: JSON with one line per field, per sample and per envelope, which is
// small but can be read, searched and compared line by line.
func Encode(r *Report) ([]byte, error) { return encode(r, len(r.Nodes)) }

// encode is like Encode, but treats r as a part of a report with the given number of nodes.
func encode(r *Report, nodes int) ([]byte, error) {
	var out bytes.Buffer
	if err := r.write(&out, nodes); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return out.Bytes(), nil
}

// EncodeTo writes the output of Encode without holding all of it in memory.
func EncodeTo(to io.Writer, r *Report) error { return r.write(to, len(r.Nodes)) }

func (r *Report) write(to io.Writer, nodes int) error {
	counted := *r
	counted.Run.Nodes = 0
	if nodes > 1 {
		counted.Run.Nodes = nodes
	}

	lines := lineBreaker{out: bufio.NewWriterSize(to, 16<<10)}
	if err := text.WriteJSON(&lines, &counted); err != nil {
		return err
	}
	_ = lines.out.WriteByte('\n') // Flush returns the error
	return lines.out.Flush()
}

// A lineBreaker writes compact JSON with line breaks: down to lineDepth, each member is on a separate line.
type lineBreaker struct {
	out     *bufio.Writer
	level   int
	opened  bool // just after an opening brace or bracket
	quoted  bool // in a string
	escaped bool // after a backslash in a string
}

// Write implements io.Writer.
func (l *lineBreaker) Write(data []byte) (int, error) {
	from := 0 // start of the unwritten bytes
	for i, c := range data {
		switch {
		case l.quoted:
			l.quoted, l.escaped = c != '"' || l.escaped, c == '\\' && !l.escaped
			continue
		case c >= '-' && c <= '9' && !l.opened: // most bytes are parts of numbers
			continue
		}

		closes := c == '}' || c == ']'
		if closes {
			l.level--
		}
		if l.opened && !closes && l.level <= lineDepth || closes && !l.opened && l.level < lineDepth {
			_, _ = l.out.Write(data[from:i])
			l.breakLine()
			from = i
		}
		l.opened = false

		switch c {
		case '"':
			l.quoted = true
		case '{', '[':
			l.level, l.opened = l.level+1, true
		case ',', ':':
			if l.level > lineDepth {
				continue
			}
			_, _ = l.out.Write(data[from : i+1])
			if from = i + 1; c == ',' {
				l.breakLine()
			} else {
				_ = l.out.WriteByte(' ')
			}
		}
	}

	_, err := l.out.Write(data[from:])
	return len(data), err
}

func (l *lineBreaker) breakLine() {
	const indents = "\n        " // for lineDepth levels
	_, _ = l.out.WriteString(indents[:1+2*l.level])
}
