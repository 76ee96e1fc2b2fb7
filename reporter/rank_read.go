package reporter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// readRanks reads the ranks of a node, with the wanted bands of their envelopes. The name of a rank is its number.
func (n *Node) readRanks(r *reader, wanted Wanted) error {
	if r.PeekKind() == 'n' {
		return r.skip()
	}

	n.Ranks = make(map[string]*Rank)
	return r.object("ranks are not an object", func(quoted []byte) error {
		name := unquote(quoted)
		number, err := strconv.ParseUint(name, 10, 31)
		if err != nil || strconv.FormatUint(number, 10) != name {
			return fmt.Errorf("has a rank %q, which is not a number", text.Printable(text.Clip(name, 40)))
		}
		rank, err := readRank(r, wanted)
		if err != nil {
			return fmt.Errorf("rank %s: %w", name, err)
		}
		rank.Rank = int(number)
		n.Ranks[name] = rank
		return nil
	})
}

// readRank reads a rank.
func readRank(r *reader, wanted Wanted) (*Rank, error) {
	if r.PeekKind() == 'n' {
		return nil, errors.Join(r.skip(), errors.New("null is not a rank"))
	}

	rank := &Rank{}
	err := r.object("not an object", func(quoted []byte) error {
		if strings.EqualFold(unquote(quoted), "envelope") {
			return rank.Envelope.read(r, wanted)
		}
		return readMember(r, quoted, rank)
	})
	if rank.Missing == nil { // left out by another program
		rank.Missing = []Missing{}
	}
	return rank, err
}

// readMember reads the value of a member of an object into the field of a struct that has its name.
func readMember(r *reader, quoted []byte, into any) error {
	head := slices.Concat([]byte{'{'}, quoted, []byte{':'})
	value, err := r.value()
	if err != nil {
		return err
	}
	err = json.Unmarshal(slices.Concat(head, value, []byte{'}'}), into)
	if err != nil {
		r.at += max(0, offset(err)-int64(len(head)))
	}
	return err
}
