package reporter

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/perfagent/perfagent/collector"
)

// ScanHead reads the numbers of a perfagent report of one node, but not its series: these come last in the file,
// of which it reads the beginning and a few bytes of the end. It reports false where that does not tell all of them:
// for a report of several nodes, one that another program wrote, one that is cut off or not a
// report. Use Scan there, with the columns of NumberColumns.
func ScanHead(file io.ReaderAt, size int64) (*Report, bool) {
	end := make([]byte, len(endOfReport))
	if _, err := file.ReadAt(end, size-int64(len(end))); err != nil || string(end) != endOfReport {
		return nil, false
	}

	s := scan{file: file, size: size, limit: maxValueSize, seen: make(map[string]bool)}
	err := s.all(func(name string) error {
		if s.again || s.report.Run.Nodes > 1 {
			return errNoHead
		}
		n, err := numbersOfNode(s.in)
		s.report.Nodes = map[string]*Node{name: n}
		return cmp.Or(err, errEnough)
	})
	return &s.report, errors.Is(err, errEnough)
}

// endOfReport is how Encode ends a report that has nodes.
const endOfReport = "\n    }\n  }\n}\n"

var errNoHead = errors.New("the numbers do not all come before the series")

// numbersOfNode reads a node up to its series.
func numbersOfNode(r *reader) (*Node, error) {
	n, ours := &Node{}, false
	err := r.object("not an object", func(quoted []byte) error {
		switch key := unquote(quoted); {
		case strings.EqualFold(key, "sampling"):
			data, err := r.value()
			if err != nil {
				return err
			}
			ours = isEncoded(data)
			return json.Unmarshal(data, &n.Sampling)
		case strings.EqualFold(key, "samples"), strings.EqualFold(key, "envelope"):
			return errEnough
		case strings.EqualFold(key, "ranks"):
			return n.readRanks(r, Wanted{})
		}
		return readMember(r, quoted, n)
	})

	if !errors.Is(err, errEnough) || !ours || n.Missing == nil || n.needsColumns() {
		return nil, errNoHead
	}

	return n, nil
}

// NumberColumns returns the columns that belong to the numbers of a node: WithoutSeries keeps them where they do.
func NumberColumns() Wanted {
	w := Wanted{Samples: []string{collector.Timestamp.Key()}}
	for device := range collector.MaxGPUs {
		w.Samples = append(w.Samples, collector.GPUColumn(device, collector.GPUUtilization).Key())
	}
	return w
}

// WithoutSeries returns a copy of the node without its series. It keeps the columns of NumberColumns if something is
// still to be computed from them: the length of what perf.py recorded, and the findings of a report that has none.
func (n *Node) WithoutSeries() *Node {
	out := *n
	out.Samples, out.Envelope = Samples{}, nil
	if n.needsColumns() {
		out.Samples = n.Samples.only(NumberColumns().sample)
	}
	out.Ranks = n.Ranks.with(func(string, *Rank) Envelope { return nil })

	return &out
}

func (n *Node) needsColumns() bool { return n.Findings == nil || n.Origin == OriginPerfPy }
