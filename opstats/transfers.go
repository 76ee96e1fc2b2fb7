package opstats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
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

// listNames lists the known lists in the order of the class.
var listNames = [...]string{
	TransferDuration, PostDuration, BytesTransferred, NumDescriptors,
	NumFailedTransfers, NumFailedNotifications, NumKVExpiredReqs,
}

// perTransfer is the number of lists, the first of listNames, with one number per transfer.
const perTransfer = 4

// isKnown reports whether the class has a list with the given name.
func isKnown(name string) bool { return slices.Contains(listNames[:], name) }

// unknownLists returns the names that the class does not have, in alphabetical order.
func unknownLists[E any](lists map[string]E) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(lists)), isKnown)
}

// The limits of unknown lists.
const (
	maxUnknownLists = 32  // number of lists
	maxListName     = 200 // bytes of a name
)

// MaxDescriptors is the largest number of descriptors of one transfer. vLLM's class converts them to 32-bit numbers.
const MaxDescriptors = math.MaxUint32

// A Transfer is one transfer of KV cache.
type Transfer struct {
	XferMicros  float64 // duration in microseconds
	PostMicros  float64 // duration of posting in microseconds
	Bytes       float64
	Descriptors float64   // at most MaxDescriptors
	End         time.Time // zero if unknown
}

// Transfers has the statistics of KV cache transfers. It is vLLM's class NixlKVConnectorStats with the methods Record,
// RecordFailedTransfer and so on, CloneAndReset, Empty, Aggregate and Reduce. Its JSON is the class's data: seven
// lists. The zero value is empty and ready to use.
//
// It is lenient where versions of vLLM differ. A missing list is empty. An unknown list is kept (up to 32), and its
// entries make the statistics not empty, because they may be failures of a newer version.
//
// The lists grow with the job. Condense replaces them with exact sums and a [Sketch] for each P90. [CondenseLargest]
// does so for the largest of several Transfers that hold too much together.
type Transfers struct {
	lists     map[string][]float64 // by name; nil once condensed
	times     span
	condensed *condensedLists // nil while the lists are kept
}

// Record adds a transfer. It returns [ErrNotFinite] if a number is negative or not finite, and [ErrMalformed] if there
// are more descriptors than MaxDescriptors or End is not in the years 1970 to 2199.
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

// RecordFailedTransfer counts a failed transfer.
func (t *Transfers) RecordFailedTransfer() { t.append(NumFailedTransfers, 1) }

// RecordFailedNotification counts a failed notification.
func (t *Transfers) RecordFailedNotification() { t.append(NumFailedNotifications, 1) }

// RecordKVExpired counts a request with blocks that were not fetched in time.
func (t *Transfers) RecordKVExpired() { t.append(NumKVExpiredReqs, 1) }

// append adds a number to a list, or to its condensed form.
func (t *Transfers) append(list string, v float64) {
	if t.condensed != nil {
		t.condensed.add(list, v)
		return
	}
	t.extend(list, v)
}

// extend appends to a list. From 16384 numbers on it allocates in steps of that many, because append would leave up to
// a quarter of the memory unused.
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

// CloneAndReset returns the contents of t, and leaves t empty.
func (t *Transfers) CloneAndReset() *Transfers {
	c := *t
	*t = Transfers{}

	return &c
}

// Clone returns an independent copy. It is cheap: the lists are shared, because their numbers never change.
func (t *Transfers) Clone() *Transfers {
	c := *t
	c.lists = maps.Clone(t.lists)
	for name, list := range c.lists {
		c.lists[name] = slices.Clip(list)
	}
	c.condensed = t.condensed.clone()

	return &c
}

// Empty reports whether all lists are empty. An interval with failures but no transfer is not empty.
func (t *Transfers) Empty() bool { return t.entries() == 0 && t.condensed.empty() }

// Len returns the number of transfers.
func (t *Transfers) Len() int64 {
	if t.condensed != nil {
		return t.condensed.lists[TransferDuration].N
	}
	return int64(len(t.lists[TransferDuration]))
}

// Uncondensed returns the number of transfers in the lists. A transfer is four numbers and takes 32 bytes; four
// failures, or four entries of unknown lists, count as one transfer.
func (t *Transfers) Uncondensed() int { return t.entries() / perTransfer }

// entries returns the number of numbers in the lists.
func (t *Transfers) entries() int {
	n := 0
	for _, list := range t.lists {
		n += len(list)
	}

	return n
}

// Sum returns the length and the sum of a list, even if it was condensed. Both are 0 for a missing list.
func (t *Transfers) Sum(list string) (n int64, sum float64) {
	if t.condensed != nil {
		sum := t.condensed.lists[list]
		return sum.N, sum.value()
	}
	return int64(len(t.lists[list])), pairwiseSum(t.lists[list])
}

// UnknownLists returns the names of the unknown lists, in alphabetical order.
func (t *Transfers) UnknownLists() []string {
	if t.condensed == nil {
		return unknownLists(t.lists)
	}
	return unknownLists(t.condensed.lists)
}

// Aggregate appends the lists of o, which does not change; an empty o changes nothing. It returns [ErrFull] if there
// are too many unknown lists: the excess lists are lost, everything else was added. It returns [ErrNotFinite], and
// changes nothing, if a list would have more than 2^53 entries.
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

// appendLists does the work of Aggregate if neither t nor o is condensed.
func (t *Transfers) appendLists(o *Transfers) (err error) {
	t.times.merge(o.times)
	other := len(t.UnknownLists())
	for _, name := range slices.Sorted(maps.Keys(o.lists)) {
		if _, had := t.lists[name]; !had && !isKnown(name) {
			if other >= maxUnknownLists {
				err = ErrFull
				continue
			}
			other++
		}
		t.extend(name, o.lists[name]...)
	}
	return err
}

// A span is the time from the start of the first transfer to the end of the last one, over transfers with a known end.
// Nanoseconds since 1970 are exact, unlike Unix seconds in a float64.
type span struct {
	first, last int64
	n           int64 // number of transfers
}

// The end of a transfer lies in the years 1970 to 2199. Differences of nanoseconds then fit an int64, even if a long
// duration is subtracted from an end.
const (
	maxEnd      = 7258118400           // Unix seconds
	maxDuration = 30 * 365 * 24 * 3600 // seconds; longer durations count as this
)

// plausible reports whether a transfer may have ended at end.
func plausible(end time.Time) bool { return end.Unix() >= 0 && end.Unix() < maxEnd }

// add extends the span by a transfer with a plausible end and the given duration.
func (s *span) add(end time.Time, seconds float64) {
	last := end.UnixNano()
	s.merge(span{last - int64(math.Round(min(seconds, maxDuration)*1e9)), last, 1})
}

// check returns an error if a span from outside is impossible.
func (s span) check() error {
	if s.first > s.last || s.first < -maxDuration*1e9 || s.last < 0 || s.last >= maxEnd*1e9 {
		return fmt.Errorf("the span from %d to %d is out of range", s.first, s.last)
	}
	return nil
}

// merge extends the span by o.
func (s *span) merge(o span) {
	switch {
	case o.n == 0:
		return
	case s.n == 0:
		*s = o
		return
	}
	*s = span{min(s.first, o.first), max(s.last, o.last), s.n + o.n}
}

// Span returns the start of the first transfer and the end of the last one. It reports false unless the end of every
// transfer is known. Data of vLLM's class does not contain the ends.
func (t *Transfers) Span() (first, last time.Time, ok bool) {
	if t.times.n == 0 || t.times.n != t.Len() {
		return time.Time{}, time.Time{}, false
	}
	return time.Unix(0, t.times.first).UTC(), time.Unix(0, t.times.last).UTC(), true
}

// WallThroughput returns the transferred MiB per second of the span, in which transfers may overlap. It reports false
// if there is no span or it has no length. The throughput of Reduce divides by the sum of all durations instead, which
// understates concurrent transfers.
func (t *Transfers) WallThroughput() (mbPerSecond float64, ok bool) {
	if _, _, known := t.Span(); !known || t.times.first == t.times.last {
		return 0, false
	}

	_, bytes := t.Sum(BytesTransferred)
	seconds := float64(t.times.last-t.times.first) / 1e9
	return bytes / (1 << 20) / seconds, true
}

// ownMember is the member of a Transfers' JSON that vLLM's class does not have. It contains the state outside the
// lists.
const ownMember = "perfagent"

// stateJSON is the value of the member "perfagent".
type stateJSON struct {
	Span     []int64            `json:"span,omitempty"`     // first and last nanosecond, number of transfers
	Lists    map[string]tally   `json:"lists,omitempty"`    // condensed lists
	Sketches map[string]*Sketch `json:"sketches,omitempty"` // of the lists with a P90
}

// MarshalJSON writes the data of vLLM's class: an object of the seven lists, in the class's order, and then the unknown
// lists. If the ends of transfers are known or the lists were condensed, it has one more member, "perfagent".
func (t *Transfers) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, name := range slices.Concat(listNames[:], unknownLists(t.lists)) {
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

// appendMember appends a member to an object that begins with "{".
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

// state returns the state outside the lists.
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

// UnmarshalJSON reads the output of MarshalJSON, and the data of vLLM's class of any version. A missing list is empty,
// an unknown list is kept. These are errors: a value that is not a list of numbers, the first four lists of different
// lengths, a negative number in one of the seven known lists, descriptors above MaxDescriptors, numbers beyond 1e100,
// more than 32 unknown lists, and a name of more than 200 bytes.
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
	other := unknownLists(t.lists)
	if len(other) > maxUnknownLists || slices.ContainsFunc(other,
		func(name string) bool { return len(name) > maxListName }) {
		return errors.New("too many unknown lists, or a name that is too long")
	}
	return t.checkTransfers()
}

// numbers returns the numbers of a list. It parses the text itself, in a third of the time that encoding/json needs.
// The text is known to be valid JSON, so forms that only ParseFloat accepts (Inf, hexadecimal) cannot occur.
func numbers(raw json.RawMessage) ([]float64, error) {
	inner, isList := bytes.CutPrefix(raw, []byte{'['})
	inner = bytes.TrimSpace(bytes.TrimSuffix(inner, []byte{']'}))
	if !isList {
		return nil, errors.New("it is not a list")
	}
	if len(inner) == 0 {
		return []float64{}, nil
	}

	list := make([]float64, 0, 1+bytes.Count(inner, []byte{','}))
	for text := range bytes.SplitSeq(inner, []byte{','}) {
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
		if err != nil || !inRange(v) {
			return nil, fmt.Errorf("%.40q is not a number, or is out of range", text)
		}
		list = append(list, v)
	}

	return list, nil
}

// checkTransfers returns an error if the known lists are impossible, or do not fit together.
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

// readState reads the state outside the lists into Transfers that have their lists.
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
		if t.entries() > 0 || len(t.UnknownLists()) > 0 {
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

// condensed validates w and converts it to condensedLists.
func (w stateJSON) condensed() (*condensedLists, error) {
	c := newCondensed()
	maps.Copy(c.lists, w.Lists)
	for i, name := range listNames {
		t := c.lists[name]
		if t.value() < 0 || i < perTransfer && t.N != c.lists[TransferDuration].N {
			return nil, fmt.Errorf("list %q does not fit the others", name)
		}
	}
	if len(c.lists) > len(listNames)+maxUnknownLists {
		return nil, errors.New("too many unknown lists")
	}
	for name, t := range c.lists {
		if len(name) > maxListName {
			return nil, errors.New("the name of a list is too long")
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("list %q: %w", name, err)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(c.sketches)) {
		if s := w.Sketches[name]; s != nil {
			c.sketches[name] = s
		}
		if s := c.sketches[name]; s.count != uint64(c.lists[name].N) || s.count > 0 && s.min < 0 {
			return nil, fmt.Errorf("the sketch of list %q does not fit it", name)
		}
	}

	return c, nil
}
