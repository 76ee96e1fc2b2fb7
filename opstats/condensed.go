package opstats

import (
	"fmt"
	"maps"
	"math"
)

// condensedLists replaces the lists of a Transfers: the length and sum of each list by name (always including the known
// lists), and a Sketch of the lists with a P90 in Reduce.
type condensedLists struct {
	lists    map[string]tally
	sketches map[string]*Sketch
}

// newCondensed returns empty condensedLists.
func newCondensed() *condensedLists {
	c := &condensedLists{make(map[string]tally), map[string]*Sketch{TransferDuration: {}, PostDuration: {}}}
	for _, name := range listNames {
		c.lists[name] = tally{}
	}
	return c
}

// A tally is the length and the sum of a list. Rest is the rounding error of Sum, so that Sum and Rest together are the
// sum with one rounding (Neumaier's method).
type tally struct {
	N    int64   `json:"n"`
	Sum  float64 `json:"sum"`
	Rest float64 `json:"rest,omitzero"`
}

// add adds n entries with the sum v.
func (t *tally) add(v float64, n int64) {
	sum := bounded(t.Sum + v)
	if math.Abs(t.Sum) >= math.Abs(v) {
		t.Rest = bounded(t.Rest + ((t.Sum - sum) + v))
	} else {
		t.Rest = bounded(t.Rest + ((v - sum) + t.Sum))
	}
	t.Sum = sum
	t.N += n
}

// merge adds o to t.
func (t *tally) merge(o tally) {
	t.add(o.Sum, o.N)
	t.Rest = bounded(t.Rest + o.Rest)
}

// value returns the sum.
func (t tally) value() float64 { return t.Sum + t.Rest }

// Condense replaces the lists with their lengths and sums, and the lists with a P90 in Reduce with a [Sketch] of a few
// KiB. Later entries are condensed at once, until CloneAndReset.
func (t *Transfers) Condense() {
	if t.condensed != nil {
		return
	}

	c := newCondensed()
	for name, list := range t.lists {
		c.lists[name] = tally{} // including empty unknown ones
		for _, v := range list {
			c.add(name, v)
		}
	}
	t.lists, t.condensed = nil, c
}

// MaxUncondensed is the largest number of transfers that perfagent keeps in lists, over all Transfers. They take 4 MiB.
const MaxUncondensed = 131072

// CondenseLargest condenses Transfers, the largest first (of equal ones, the earlier), until their lists hold at most
// most transfers in total.
func CondenseLargest(most int, all ...*Transfers) {
	for {
		held, largest := 0, 0
		for i, t := range all {
			held += t.Uncondensed()
			if t.Uncondensed() > all[largest].Uncondensed() {
				largest = i
			}
		}
		if held <= max(most, 0) {
			return
		}
		all[largest].Condense()
	}
}

// add adds an entry of a list.
func (c *condensedLists) add(list string, v float64) {
	if list == NumDescriptors {
		v = math.Trunc(v) // like Reduce
	}
	sum := c.lists[list]
	sum.add(v, 1)
	c.lists[list] = sum
	if sketch := c.sketches[list]; sketch != nil {
		_ = sketch.Add(v) // cannot fail: v is finite, and no job has 2^53 transfers
	}
}

// empty reports whether nothing was counted. It is true for nil.
func (c *condensedLists) empty() bool {
	if c == nil {
		return true
	}
	for _, t := range c.lists {
		if t.N > 0 {
			return false
		}
	}

	return true
}

// clone returns an independent copy; nil for nil.
func (c *condensedLists) clone() *condensedLists {
	if c == nil {
		return nil
	}

	d := &condensedLists{maps.Clone(c.lists), maps.Clone(c.sketches)}
	for name, sketch := range c.sketches {
		d.sketches[name] = sketch.Clone()
	}
	return d
}

// merge adds o to c. It returns the errors of Aggregate; after ErrNotFinite c is undefined.
func (c *condensedLists) merge(o *condensedLists) (err error) {
	for name, sketch := range o.sketches {
		if err := c.sketches[name].Merge(sketch); err != nil {
			return err
		}
	}
	for name, t := range o.lists {
		sum, known := c.lists[name]
		if !known && len(c.lists) >= len(listNames)+maxUnknownLists {
			err = ErrFull
			continue
		}
		if t.N > maxCount-sum.N {
			return ErrNotFinite
		}
		sum.merge(t)
		c.lists[name] = sum
	}

	return err
}

// check returns an error if a tally from outside is impossible.
func (t tally) check() error {
	if t.N < 0 || t.N > maxCount || !(math.Abs(t.Sum) <= sumLimit) || !(math.Abs(t.Rest) <= sumLimit) {
		return fmt.Errorf("count %d or sum %v is out of range", t.N, t.Sum)
	}
	return nil
}
