package reporter

import (
	"bytes"
	"cmp"
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
func ReadHead(file io.ReaderAt, size int64) (*Head, error) {
	s := scan{file: file, size: size, limit: maxValueSize, seen: make(map[string]bool)}
	head := new(Head)
	err := s.all(func(name string) error {
		head.Node = name
		return cmp.Or(head.readNode(&s), errEnough)
	})
	switch {
	case errors.Is(err, errEnough):
		head.Run = s.report.Run
		return head, nil
	case errors.Is(err, ErrForeign):
		return nil, ErrForeign
	}
	return nil, fmt.Errorf("the beginning is damaged: %w", s.explain(err))
}

// readNode reads the head of a node. In our order all that a head has stands before the metrics.
func (h *Head) readNode(s *scan) error {
	ours := false
	return s.in.object("not an object", func(quoted []byte) error {
		switch strings.ToLower(unquote(quoted)) {
		case "identity":
			return s.read(&h.Identity)
		case "host":
			return s.read(&h.Host)
		case "sampling":
			data, err := s.in.value()
			if err != nil {
				return err
			}
			ours = isEncoded(data)
			return json.Unmarshal(data, &h.Sampling)
		case "ranks":
			if h.Ranked = s.in.PeekKind() == '{'; ours {
				return errEnough
			}
		case "metrics":
			if ours {
				return errEnough
			}
		}
		return s.in.skip()
	})
}

// isEncoded reports whether Encode wrote the sampling part of a node, which stands before all numbers: its members have
// lines of their own, and a list is on one line. Other programs write both on one line, or neither, and their members
// may be in any order.
func isEncoded(sampling []byte) bool {
	before, list, found := bytes.Cut(sampling, []byte(`": [`))
	return found && bytes.IndexByte(before, '\n') >= 0 && len(list) > 0 && bytes.IndexByte([]byte("\r\n]"), list[0]) < 0
}
