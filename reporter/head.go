package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Head is what the beginning of a report or a journal tells: which run, and which part of it.
type Head struct {
	Run  Run
	Node string // the key of the first node

	Identity *Identity // nil if nothing but the host told it
	Host     *Host     // nil in a journal without samples
	Sampling *Sampling // nil in a journal

	// Ranked reports whether the first node has ranks. Rank is the rank of a journal, as decimal text; "" if its
	// process seemed to be alone.
	Ranked bool
	Rank   string
}

// errEnough ends the reading of a head.
var errEnough = errors.New("all is known")

// ReadHead reads the head of a report. It reads up to the numbers of the first node, if Encode wrote the report: then
// its members are in our order. The error is ErrForeign for what is not a report.
func ReadHead(file io.Reader) (*Head, error) {
	h := headReading{in: newReader(file)}
	if h.in.PeekKind() != '{' {
		return nil, ErrForeign
	}

	err := h.in.object("not an object", h.member)
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return nil, fmt.Errorf("the beginning is damaged: %w", err)
	case h.schema == "":
		return nil, ErrForeign
	}

	return &h.head, nil
}

// A headReading is the reading of a head in progress.
type headReading struct {
	in     *reader
	head   Head
	schema string
	run    bool // has been read
	ours   bool // Encode wrote the report
}

// member reads a member of the report.
func (h *headReading) member(quoted []byte) error {
	switch key := canonical(unquote(quoted)); key {
	case "schema":
		if err := h.read(&h.schema); err != nil {
			return err
		}
		return CheckSchema(h.schema, Schema)
	case "run":
		h.run = true
		return h.read(&h.head.Run)
	case "nodes":
		return h.in.object("nodes are not an object", h.node)
	}

	return h.in.skip()
}

// node reads the head of the first node, and skips the others.
func (h *headReading) node(quoted []byte) error {
	if h.head.Node != "" {
		return h.in.skip()
	}
	h.head.Node = unquote(quoted)

	err := h.in.object("not an object", h.nodeMember)
	if err == nil && h.schema != "" && h.run {
		err = errEnough
	}
	return err
}

// nodeMember reads a member of the first node. In our order all that a head has stands before the metrics.
func (h *headReading) nodeMember(quoted []byte) error {
	ours := h.ours && h.schema != "" && h.run
	switch key := strings.ToLower(unquote(quoted)); {
	case key == "identity":
		return h.read(&h.head.Identity)
	case key == "host":
		return h.read(&h.head.Host)
	case key == "sampling":
		data, err := h.in.value()
		if err != nil {
			return err
		}
		h.ours = isEncoded(data)
		return json.Unmarshal(data, &h.head.Sampling)
	case key == "ranks":
		if h.head.Ranked = h.in.PeekKind() == '{'; ours {
			return errEnough
		}
	case key == "metrics" && ours:
		return errEnough
	}

	return h.in.skip()
}

// isEncoded reports whether Encode wrote the sampling part of a node, which stands before all numbers: its members have
// lines of their own, and a list is on one line. Other programs write both on one line, or neither, and their members
// may be in any order.
func isEncoded(sampling []byte) bool {
	before, list, found := bytes.Cut(sampling, []byte(`": [`))
	return found && bytes.IndexByte(before, '\n') >= 0 && len(list) > 0 && bytes.IndexByte([]byte("\r\n]"), list[0]) < 0
}

// read reads a value that is not large.
func (h *headReading) read(into any) error {
	data, err := h.in.value()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
