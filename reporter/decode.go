package reporter

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// Decode decodes the output of Encode. It returns ErrForeign if the data are not a perfagent report.
func Decode(data []byte) (*Report, error) {
	nodes := make(map[string]*Node)
	keep := func(_ *Run, name string, n *Node) error {
		nodes[name] = n
		return nil
	}
	r, err := scanReport(bytes.NewReader(data), int64(len(data)), ColumnFilter{All: true}, keep)
	if err != nil {
		return nil, err
	}
	r.Nodes = nodes
	return r, nil
}

// CheckSchema returns an error unless got has the same format name and major version as ours.
func CheckSchema(got, ours string) error {
	name, ourMajor, _ := strings.Cut(ours, "/")
	gotName, gotMajor, _ := strings.Cut(got, "/")
	if gotName != name {
		return fmt.Errorf("has the schema %q, not %s", text.Printable(text.Clip(got, 40)), ours)
	}
	major, _, _ := strings.Cut(gotMajor, ".")
	if major != ourMajor {
		return fmt.Errorf("has the schema %q; this perfagent reads %s: use a newer perfagent",
			text.Printable(text.Clip(got, 40)), ours)
	}
	return nil
}

// complete checks the ranks of the node, and that the envelopes are as long as the samples. It fills in fields that
// another program may have left out.
func (n *Node) complete(samples int) error {
	if n.Missing == nil {
		n.Missing = []Missing{}
	}
	if err := n.Envelope.check(samples); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.Ranks)) {
		number, ok := parseIndex(name)
		if !ok {
			return fmt.Errorf("has a rank %q, which is not a number", text.Printable(text.Clip(name, 40)))
		}
		rank := n.Ranks[name]
		if rank == nil {
			return fmt.Errorf("rank %s: null is not a rank", name)
		}
		rank.Rank = number
		if rank.Missing == nil {
			rank.Missing = []Missing{}
		}
		if err := rank.Envelope.check(samples); err != nil {
			return fmt.Errorf("rank %s: %w", name, err)
		}
	}
	return nil
}

// check checks that each list of the envelope is as long as the samples.
func (e Envelope) check(samples int) error {
	for _, key := range e.keys() {
		band := e[key]
		if len(band.Min) != samples || len(band.Mean) != samples || len(band.Max) != samples {
			return fmt.Errorf("the envelope of %q does not match the %d samples",
				text.Printable(text.Clip(key, 40)), samples)
		}
	}
	return nil
}
