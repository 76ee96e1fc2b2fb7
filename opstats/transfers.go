package opstats

import (
	"maps"
	"math"
	"slices"
	"time"
)

// The lists of a [Transfers], by their names in the data of vLLM's class. The first four have one number per transfer.
const (
	TransferDuration       = "transfer_duration" // seconds
	PostDuration           = "post_duration"     // seconds
	BytesTransferred       = "bytes_transferred"
	NumDescriptors         = "num_descriptors"
	NumFailedTransfers     = "num_failed_transfers" // a 1 for each failure
	NumFailedNotifications = "num_failed_notifications"
	NumKVExpiredReqs       = "num_kv_expired_reqs"
)

// listNames has the known lists in the order of the class.
var listNames = [...]string{
	TransferDuration, PostDuration, BytesTransferred, NumDescriptors,
	NumFailedTransfers, NumFailedNotifications, NumKVExpiredReqs,
}

// perTransfer is how many lists, the first of listNames, have one number per transfer.
const perTransfer = 4

// isKnown reports whether the class has a list of a name.
func isKnown(name string) bool { return slices.Contains(listNames[:], name) }

// unknown returns the names that the class does not have, in alphabetical order.
func unknown[E any](lists map[string]E) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(lists)), isKnown)
}

// Bounds of the lists that are kept without being known.
const (
	maxOther     = 32  // how many
	maxOtherName = 200 // bytes of a name
)

// MaxDescriptors is the largest number of descriptors of one transfer. vLLM's class makes 32-bit numbers of them.
const MaxDescriptors = math.MaxUint32

// A Transfer is one transfer of KV cache.
type Transfer struct {
	XferMicros  float64   // how long it took, in microseconds
	PostMicros  float64   // how long it took to post it, in microseconds
	Bytes       float64   // how much was transferred
	Descriptors float64   // in how many parts, at most MaxDescriptors
	End         time.Time // when it ended; zero where that is not known
}

// Transfers is the statistics of KV cache transfers. It is vLLM's class NixlKVConnectorStats with the methods Record,
// RecordFailedTransfer and so on, CloneAndReset, Empty, Aggregate and Reduce, and its JSON is the class's data: seven
// lists. The zero value is empty and ready to use.
//
// It differs from the class where the versions of vLLM differ. A list that is missing is empty, one that is not known
// is kept (up to 32), and its entries make the statistics not empty, because they may be failures of a newer version.
//
// The lists grow with the job. Condense replaces them by sums, which are exact, and by a [Sketch] for each P90.
// [CondenseBeyond] does so for the largest of several Transfers, where all together hold too much.
type Transfers struct {
	lists     map[string][]float64 // by name; nil once they are condensed
	times     span
	condensed *condensed // nil as long as the lists have everything
}

// Record adds a transfer. It returns [ErrNotFinite] if a number is negative or not finite, and [ErrMalformed] if there
// are more descriptors than MaxDescriptors or the end is not in the years 1970 to 2199.
func (t *Transfers) Record(x Transfer) error {
	switch {
	case !isSize(x.XferMicros) || !isSize(x.PostMicros) || !isSize(x.Bytes) || !isSize(x.Descriptors):
		return ErrNotFinite
	case x.Descriptors > MaxDescriptors || !x.End.IsZero() && !plausible(x.End):
		return ErrMalformed
	}

	row := [perTransfer]float64{x.XferMicros / 1e6, x.PostMicros / 1e6, x.Bytes, x.Descriptors}
	for i, v := range row {
		t.append(listNames[i], math.Abs(v)) // −0 is 0
	}
	if !x.End.IsZero() {
		t.times.add(x.End, row[0])
	}

	return nil
}

// RecordFailedTransfer counts a transfer that failed.
func (t *Transfers) RecordFailedTransfer() { t.append(NumFailedTransfers, 1) }

// RecordFailedNotification counts a notification that failed.
func (t *Transfers) RecordFailedNotification() { t.append(NumFailedNotifications, 1) }

// RecordKVExpired counts a request whose blocks nobody fetched in time.
func (t *Transfers) RecordKVExpired() { t.append(NumKVExpiredReqs, 1) }

// append adds one number to a list, or to what became of it.
func (t *Transfers) append(list string, v float64) {
	if t.condensed != nil {
		t.condensed.add(list, v)
		return
	}
	t.extend(list, v)
}

// extend appends to a list. From 16384 numbers on it makes room for as many at a time, because append would leave up
// to a quarter of the memory unused.
func (t *Transfers) extend(name string, more ...float64) {
	const step = 16384
	list := t.lists[name]
	if need := len(list) + len(more); need > cap(list) && need > step {
		list = append(make([]float64, 0, (need+step-1)/step*step), list...)
	}
	if t.lists == nil {
		t.lists = make(map[string][]float64)
	}
	t.lists[name] = append(list, more...)
}

// CloneAndReset hands over everything, and leaves t empty.
func (t *Transfers) CloneAndReset() *Transfers {
	c := *t
	*t = Transfers{}

	return &c
}

// Clone returns an independent copy. It costs little: the lists are shared, because the numbers in them never change.
func (t *Transfers) Clone() *Transfers {
	c := *t
	c.lists = maps.Clone(t.lists)
	for name, list := range c.lists {
		c.lists[name] = slices.Clip(list)
	}
	c.condensed = t.condensed.clone()

	return &c
}

// Empty reports whether all lists are empty. An interval with failures and without a transfer is not empty.
func (t *Transfers) Empty() bool { return t.entries() == 0 && t.condensed.empty() }

// Len returns the number of transfers.
func (t *Transfers) Len() int64 {
	if t.condensed != nil {
		return t.condensed.lists[TransferDuration].N
	}
	return int64(len(t.lists[TransferDuration]))
}

// Held returns how many transfers the lists hold. A transfer is four numbers and takes 32 bytes; four failures, or
// four entries of unknown lists, count like one transfer.
func (t *Transfers) Held() int { return t.entries() / perTransfer }

// entries returns how many numbers the lists hold.
func (t *Transfers) entries() int {
	n := 0
	for _, list := range t.lists {
		n += len(list)
	}

	return n
}

// Sum returns the length and the sum of a list, even if it was condensed. Both are 0 for a list that is not there.
func (t *Transfers) Sum(list string) (n int64, sum float64) {
	if t.condensed != nil {
		sum := t.condensed.lists[list]
		return sum.N, sum.value()
	}
	return int64(len(t.lists[list])), pairwiseSum(t.lists[list])
}

// Other returns the names of the lists that are kept without being known, in alphabetical order.
func (t *Transfers) Other() []string {
	if t.condensed == nil {
		return unknown(t.lists)
	}
	return unknown(t.condensed.lists)
}

// Aggregate appends the lists of o, which does not change; an empty o changes nothing. It returns [ErrFull] if there
// are too many unknown lists: those that found no room are lost, everything else was added. It returns [ErrNotFinite],
// and changes nothing, if a list would have more than 2^53 entries.
func (t *Transfers) Aggregate(o *Transfers) error {
	switch {
	case o.Empty():
		return nil
	case t.condensed == nil && o.condensed == nil:
		return t.appendLists(o)
	}

	into, from := t.Clone(), o.Clone()
	into.Condense()
	from.Condense()
	err := into.condensed.merge(from.condensed)
	if err == ErrNotFinite {
		return err
	}
	into.times.merge(from.times)
	*t = *into

	return err
}

// appendLists is Aggregate where both have lists.
func (t *Transfers) appendLists(o *Transfers) (err error) {
	t.times.merge(o.times)
	other := len(t.Other())
	for _, name := range slices.Sorted(maps.Keys(o.lists)) {
		if _, had := t.lists[name]; !had && !isKnown(name) {
			if other >= maxOther {
				err = ErrFull
				continue
			}
			other++
		}
		t.extend(name, o.lists[name]...)
	}
	return err
}
