package reporter

import (
	"fmt"

	"github.com/perfagent/perfagent/internal/plainjson"
)

// Encode returns the report file's bytes: JSON with one line per field, per sample
// and per envelope, so that it can be read, searched and compared by line, and
// still is small.
func Encode(r *Report) ([]byte, error) { return encode(r, len(r.Nodes)) }

// encode is Encode for a part of a report that has so many nodes.
func encode(r *Report, nodes int) ([]byte, error) {
	counted := *r
	counted.Run.Nodes = 0
	if nodes > 1 {
		counted.Run.Nodes = nodes
	}

	compact, err := plainjson.Marshal(counted)
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return indent(compact, 4), nil
}

// indent breaks compact JSON into lines down to a depth. Deeper values stay on
// their line.
func indent(in []byte, depth int) []byte {
	w := indenter{out: make([]byte, 0, len(in)+len(in)/16), depth: depth}
	for i := 0; i < len(in); i++ {
		if in[i] == '"' {
			end := stringEnd(in, i)
			w.out = append(w.out, in[i:end]...)
			i = end - 1
			continue
		}
		empty := i+1 < len(in) && in[i+1] == in[i]+2 // {} or []
		if empty && (in[i] == '{' || in[i] == '[') {
			w.out = append(w.out, in[i], in[i+1])
			i++
			continue
		}
		w.put(in[i])
	}
	return append(w.out, '\n')
}

// stringEnd returns the index behind the JSON string that begins at i.
func stringEnd(in []byte, i int) int {
	for i++; in[i] != '"'; i++ {
		if in[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// indenter is the state of indent.
type indenter struct {
	out          []byte
	level, depth int
}

// put writes one byte outside strings, with the line break that belongs to it.
func (w *indenter) put(c byte) {
	switch c {
	case '{', '[':
		w.level++
		w.out = append(w.out, c)
		w.newline()
	case '}', ']':
		w.level--
		if w.level < w.depth {
			w.breakLine()
		}
		w.out = append(w.out, c)
	case ',':
		w.out = append(w.out, c)
		w.newline()
	case ':':
		w.out = append(w.out, c)
		if w.level <= w.depth {
			w.out = append(w.out, ' ')
		}
	default:
		w.out = append(w.out, c)
	}
}

// newline breaks the line unless what follows is too deep.
func (w *indenter) newline() {
	if w.level <= w.depth {
		w.breakLine()
	}
}

func (w *indenter) breakLine() {
	w.out = append(w.out, '\n')
	for range w.level {
		w.out = append(w.out, ' ', ' ')
	}
}
