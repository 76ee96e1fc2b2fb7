package reporter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/perfagent/perfagent/collector"
)

// A Head holds the data at the beginning of a report or a journal that identify the run, the node and the rank.
type Head struct {
	Run  Run
	Node string // the key of the first node

	Identity *Identity // nil if only the host is known
	Host     *Host     // nil in a journal without samples
	Sampling *Sampling // nil in a journal
	Job      *Job      // nil in a journal, and without a job

	// Ranked reports whether the first node has ranks. Rank is the rank of a journal, as decimal text; "" if the
	// process seemed to be the only one on its node.
	Ranked bool
	Rank   string
}

// errEnough stops the reading of a head once all of its values are known.
var errEnough = errors.New("all is known")

// ReadHead reads the head of a report. If Encode wrote the report, its members are in a known order, and ReadHead stops
// before the numbers of the first node. The error is ErrForeign for a file that is not a perfagent report.
func ReadHead(file io.ReaderAt, size int64) (*Head, error) {
	s := scanner{file: file, size: size, limit: maxValueSize, seen: make(map[string]bool)}
	head := new(Head)
	err := s.readReport(func(name string) error {
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

// readNode reads the head of a node. In Encode's order all members of a head come before the metrics.
func (h *Head) readNode(s *scanner) error {
	ours := false
	return s.in.object("not an object", func(quoted []byte) (err error) {
		switch strings.ToLower(unquote(quoted)) {
		case "identity":
			return s.read(&h.Identity)
		case "host":
			return s.read(&h.Host)
		case "job":
			return s.read(&h.Job)
		case "sampling":
			h.Sampling = new(Sampling)
			ours, err = h.Sampling.read(s.in)
			return err
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

// isEncoded reports whether Encode wrote sampling, the sampling part of a node. If it did, all numbers of the node come
// after sampling. Encode writes each member on a separate line, and a list on one line. Other programs write everything
// on one line, or split lists into lines as well.
func isEncoded(sampling []byte) bool {
	before, list, found := bytes.Cut(sampling, []byte(`": [`))
	return found && bytes.IndexByte(before, '\n') >= 0 && len(list) > 0 && bytes.IndexByte([]byte("\r\n]"), list[0]) < 0
}

// ScanWithoutSeries reads the numbers of a perfagent report of one node, but not its series. The series come last in
// the file, so ScanWithoutSeries reads only the beginning and a few bytes at the end. It returns false if that is not
// enough: the report has several nodes or no findings, is from another program or is cut off, or the file is not a
// report. In that case, use Scan with RequiredColumns.
func ScanWithoutSeries(file io.ReaderAt, size int64) (*Report, bool) {
	end := make([]byte, len(endOfReport))
	if _, err := file.ReadAt(end, size-int64(len(end))); err != nil || string(end) != endOfReport {
		return nil, false
	}

	s := scanner{file: file, size: size, limit: maxValueSize, seen: make(map[string]bool)}
	err := s.readReport(func(name string) error {
		if s.secondPass || s.report.Run.Nodes > 1 {
			return errNoHead
		}
		n, err := numbersOfNode(s.in)
		s.report.Nodes = map[string]*Node{name: n}
		return cmp.Or(err, errEnough)
	})
	return &s.report, errors.Is(err, errEnough)
}

// endOfReport is the end of every report with nodes that Encode wrote.
const endOfReport = "\n    }\n  }\n}\n"

var errNoHead = errors.New("some numbers come after the series")

// numbersOfNode reads a node up to its series. It fails unless all numbers come before the series.
func numbersOfNode(r *reader) (*Node, error) {
	n, ours, depth := &Node{}, false, r.StackDepth()+1
	series := func() error {
		if r.StackDepth() > depth { // the series of a rank
			return r.skip()
		}
		return errEnough
	}
	err := r.decode(n, custom(r, func(*Samples) error { return series() }),
		custom(r, func(*Envelope) error { return series() }),
		custom(r, func(s *Sampling) (err error) {
			ours, err = s.read(r)
			return err
		}))
	if !errors.Is(err, errEnough) || !ours || n.Missing == nil || n.complete(0) != nil || n.needsColumns() {
		return nil, errNoHead
	}
	return n, nil
}

// read reads s, and reports whether Encode wrote it.
func (s *Sampling) read(r *reader) (ours bool, err error) {
	data, err := r.value()
	if err != nil {
		return false, err
	}
	return isEncoded(data), json.Unmarshal(data, s)
}

// RequiredColumns returns the columns that WithoutSeries keeps in nodes that need them.
func RequiredColumns() ColumnFilter {
	w := ColumnFilter{Samples: []string{collector.Timestamp.Key()}}
	for device := range collector.MaxGPUs {
		w.Samples = append(w.Samples, collector.GPUColumn(device, collector.GPUUtilization).Key())
	}
	return w
}

// WithoutSeries returns a copy of the node without its series. It keeps RequiredColumns if they are still needed: to
// compute the length of a perf.py recording, or to derive findings that the report lacks.
func (n *Node) WithoutSeries() *Node {
	out := *n
	out.Samples, out.Envelope = Samples{}, nil
	if n.needsColumns() {
		out.Samples = n.Samples.only(RequiredColumns().hasSample)
	}
	out.Ranks = n.Ranks.withEnvelopes(func(string, *Rank) Envelope { return nil })

	return &out
}

func (n *Node) needsColumns() bool { return n.Findings == nil || n.Origin == OriginPerfPy }
