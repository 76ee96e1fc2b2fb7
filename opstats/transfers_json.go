package opstats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// ownMember is the member of a Transfers' JSON that vLLM's class does not have. It has what the lists do not say.
const ownMember = "perfagent"

// stateJSON is the value of that member.
type stateJSON struct {
	Span     []int64            `json:"span,omitempty"`     // first and last nanosecond, and of how many transfers
	Lists    map[string]tally   `json:"lists,omitempty"`    // what became of the lists
	Sketches map[string]*Sketch `json:"sketches,omitempty"` // of the lists that have a P90
}

// MarshalJSON writes the data of vLLM's class: an object of the seven lists, in the class's order, and then the
// unknown ones. If the ends of transfers are known or the lists were condensed, it has one more member, "perfagent".
func (t *Transfers) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, name := range slices.Concat(listNames[:], unknown(t.lists)) {
		list := t.lists[name]
		if list == nil {
			list = []float64{} // not null
		}
		var err error
		if out, err = appendMember(out, name, list); err != nil {
			return nil, err
		}
	}

	if t.times.n > 0 || t.condensed != nil {
		var err error
		if out, err = appendMember(out, ownMember, t.state()); err != nil {
			return nil, err
		}
	}

	return append(out, '}'), nil
}

// appendMember appends a member to an object that has its "{".
func appendMember(out []byte, name string, value any) ([]byte, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write %q: %w", name, err)
	}

	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(append(out, quoted...), ':'), text...), nil
}

// state returns what the lists do not say.
func (t *Transfers) state() stateJSON {
	var w stateJSON
	if t.times.n > 0 {
		w.Span = []int64{t.times.first, t.times.last, t.times.n}
	}
	if c := t.condensed; c != nil {
		w.Lists, w.Sketches = c.lists, c.sketches
	}

	return w
}

// UnmarshalJSON reads what MarshalJSON wrote, and the data of vLLM's class of any version. A list that is missing is
// empty, an unknown one is kept. An error says that the data is malformed: a value that is no list of numbers, the
// first four lists of different lengths, a negative number in one of the seven, descriptors above MaxDescriptors,
// numbers beyond 1e100, more than 32 unknown lists or a name of more than 200 bytes.
func (t *Transfers) UnmarshalJSON(data []byte) error {
	return readJSON("transfers", data, t, func(members map[string]json.RawMessage) (read Transfers, err error) {
		own := members[ownMember]
		delete(members, ownMember)
		if err = read.readLists(members); err == nil && own != nil {
			if err = read.readState(own); err != nil {
				err = fmt.Errorf("member %q: %w", ownMember, err)
			}
		}
		return read, err
	})
}

// readLists reads the lists into empty Transfers.
func (t *Transfers) readLists(members map[string]json.RawMessage) error {
	t.lists = make(map[string][]float64, len(members))
	for name, raw := range members {
		list, err := numbers(raw)
		if err != nil {
			return fmt.Errorf("list %.200q: %w", name, err)
		}
		t.lists[name] = list
	}
	other := unknown(t.lists)
	if len(other) > maxOther || slices.ContainsFunc(other, func(name string) bool { return len(name) > maxOtherName }) {
		return errors.New("too many unknown lists, or a name that is too long")
	}
	return t.checkTransfers()
}

// numbers returns the numbers of a list. It takes the text apart itself, in a third of the time that encoding/json
// needs. The text is known to be correct JSON, so anything between commas that can be read as a number is one.
func numbers(raw json.RawMessage) ([]float64, error) {
	inner, isList := bytes.CutPrefix(raw, []byte{'['})
	inner = bytes.TrimSpace(bytes.TrimSuffix(inner, []byte{']'}))
	if !isList {
		return nil, errors.New("it is no list")
	}
	if len(inner) == 0 {
		return []float64{}, nil
	}

	list := make([]float64, 0, 1+bytes.Count(inner, []byte{','}))
	for text := range bytes.SplitSeq(inner, []byte{','}) {
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
		if err != nil || !inRange(v) {
			return nil, fmt.Errorf("%.40q is no number or out of range", text)
		}
		list = append(list, v)
	}

	return list, nil
}

// checkTransfers returns an error if the known lists that were read are impossible, or do not fit together.
func (t *Transfers) checkTransfers() error {
	for i, name := range listNames {
		list := t.lists[name]
		if n := t.Len(); i < perTransfer && int64(len(list)) != n {
			return fmt.Errorf("list %q has %d entries and %q has %d", name, len(list), TransferDuration, n)
		}
		most := float64(limit)
		if name == NumDescriptors {
			most = MaxDescriptors
		}
		if slices.ContainsFunc(list, func(v float64) bool { return v < 0 || v > most }) {
			return fmt.Errorf("list %q has a number that is out of range", name)
		}
	}

	return nil
}

// readState reads what the lists do not say into Transfers that have their lists.
func (t *Transfers) readState(data []byte) error {
	var w stateJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}

	if w.Lists != nil {
		c, err := w.condensed()
		if err != nil {
			return err
		}
		if t.entries() > 0 || len(t.Other()) > 0 {
			return errors.New("there are lists and sums of lists")
		}
		t.lists, t.condensed = nil, c
	}

	if w.Span != nil {
		if len(w.Span) != 3 || w.Span[2] < 1 || w.Span[2] > t.Len() {
			return fmt.Errorf("span %v of %d transfers is out of range", w.Span, t.Len())
		}
		t.times = span{w.Span[0], w.Span[1], w.Span[2]}
		return t.times.check()
	}

	return nil
}

// condensed checks what was read and returns it.
func (w stateJSON) condensed() (*condensed, error) {
	c := newCondensed()
	maps.Copy(c.lists, w.Lists)
	for i, name := range listNames {
		t := c.lists[name]
		if t.value() < 0 || i < perTransfer && t.N != c.lists[TransferDuration].N {
			return nil, fmt.Errorf("list %q does not fit to the others", name)
		}
	}
	if len(c.lists) > len(listNames)+maxOther {
		return nil, errors.New("too many unknown lists")
	}
	for name, t := range c.lists {
		if len(name) > maxOtherName {
			return nil, errors.New("the name of a list is too long")
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("list %q: %w", name, err)
		}
	}

	for name := range c.sketches {
		if s := w.Sketches[name]; s != nil {
			c.sketches[name] = s
		}
		if s := c.sketches[name]; s.count != uint64(c.lists[name].N) || s.count > 0 && s.min < 0 {
			return nil, fmt.Errorf("the sketch of list %q does not fit to it", name)
		}
	}

	return c, nil
}
