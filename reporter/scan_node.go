package reporter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/internal/text"
)

// eachNode calls take before the value of each node, which it must read.
func (s *scan) eachNode(take func(name string) error) error {
	switch s.in.PeekKind() {
	case 'n':
		return errNoNodes
	case '{', 0:
	default:
		return &placed{s.in.InputOffset(), errors.New("nodes are not an object")}
	}

	names := make(map[string]bool)
	err := s.members(func(name string) error {
		if err := checkName(name, names); err != nil {
			return &placed{s.in.InputOffset(), err}
		}
		names[name] = true
		return take(name)
	})
	if err == nil && len(names) == 0 {
		err = errNoNodes
	}
	return err
}

// checkName refuses a name that is not a node index, that appears twice, or that is one too many.
func checkName(name string, before map[string]bool) error {
	i, err := strconv.ParseUint(name, 10, 31)
	switch {
	case err != nil || strconv.FormatUint(i, 10) != name:
		return fmt.Errorf("has a node %q, which is not a node index", text.Printable(text.Clip(name, 40)))
	case before[name]:
		return fmt.Errorf("node %s appears twice", name)
	case len(before) == maxNodes:
		return fmt.Errorf("has more than %d nodes", maxNodes)
	}
	return nil
}

// node reads a node. An error names its place in the file.
func (s *scan) node(name string) (*Node, error) {
	n, rows, err := readNode(s.in, s.wanted)
	if err == nil {
		s.in.at, err = s.input.mark, n.checkSeries(rows)
	}
	if syntax := (*jsontext.SyntacticError)(nil); err == nil || s.input.err != nil || errors.As(err, &syntax) {
		return n, err
	}
	return nil, &placed{s.in.at, fmt.Errorf("node %s: %w", name, err)}
}

// readNode reads a node and the number of its samples. An error names what is at r.at.
func readNode(r *reader, wanted Wanted) (n *Node, rows int, err error) {
	if r.PeekKind() == 'n' {
		_, err := r.value()
		return nil, 0, errors.Join(err, errors.New("null is not a node"))
	}

	n = &Node{}
	err = r.object("not an object", func(quoted []byte) (err error) {
		switch key := unquote(quoted); {
		case strings.EqualFold(key, "samples"):
			rows, err = n.Samples.read(r, wanted)
		case strings.EqualFold(key, "envelope"):
			err = n.Envelope.read(r, wanted)
		case strings.EqualFold(key, "ranks"):
			err = n.readRanks(r, wanted)
		default:
			err = readMember(r, quoted, n)
		}
		return err
	})

	if n.Missing == nil { // left out by another program
		n.Missing = []Missing{}
	}
	return n, rows, err
}
