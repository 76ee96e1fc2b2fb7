package reporter

import (
	"fmt"
	"io"

	"github.com/perfagent/perfagent/internal/plainjson"
)

//go:generate go run ../scripts/jsongen.go Report Job Ranks Band Gather StoreState

const (
	// lineDepth is how deep values have lines of their own: fields, samples and envelopes.
	lineDepth = 4
	// shortReport is more than the report of a short run takes.
	shortReport = 16 << 10
)

// Encode returns the report file's bytes: JSON with one line per field, per sample
// and per envelope, so that it can be read, searched and compared by line, and
// still is small.
func Encode(r *Report) ([]byte, error) { return encode(r, len(r.Nodes)) }

// encode is Encode for a part of a report that has so many nodes.
func encode(r *Report, nodes int) ([]byte, error) {
	w := plainjson.Writer{Out: make([]byte, 0, shortReport), Depth: lineDepth}
	if r.write(&w, nodes); w.Err != nil {
		return nil, fmt.Errorf("encode report: %w", w.Err)
	}
	return w.Out, nil
}

// EncodeTo writes what Encode returns, of which it holds only a part in memory.
func EncodeTo(to io.Writer, r *Report) error {
	w := plainjson.Writer{Out: make([]byte, 0, shortReport), To: to, Depth: lineDepth}
	r.write(&w, len(r.Nodes))
	w.Flush()
	return w.Err
}

func (r *Report) write(w *plainjson.Writer, nodes int) {
	counted := *r
	counted.Run.Nodes = 0
	if nodes > 1 {
		counted.Run.Nodes = nodes
	}

	counted.writeJSON(w)
	w.Out = append(w.Out, '\n')
}

// compact returns a value on one line, as MarshalJSON does.
func compact(v interface{ writeJSON(*plainjson.Writer) }) ([]byte, error) {
	var w plainjson.Writer
	v.writeJSON(&w)
	return w.Out, w.Err
}
