package opstats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// The names of the lists of a [Transfers] in the data of vLLM's class. The first four lists have one number per
// transfer.
const (
	TransferDuration       = "transfer_duration" // seconds
	PostDuration           = "post_duration"     // seconds
	BytesTransferred       = "bytes_transferred"
	NumDescriptors         = "num_descriptors"
	NumFailedTransfers     = "num_failed_transfers" // a 1 for each failure
	NumFailedNotifications = "num_failed_notifications"
	NumKVExpiredReqs       = "num_kv_expired_reqs"
)

// listNames has the names of the known lists in the order of the class.
var listNames = [...]string{
	TransferDuration, PostDuration, BytesTransferred, NumDescriptors,
	NumFailedTransfers, NumFailedNotifications, NumKVExpiredReqs,
}

// perTransfer is the number of lists with one number per transfer. They come first in listNames.
const perTransfer = 4

// isKnown reports whether the class has a list with the given name.
func isKnown(name string) bool { return slices.Contains(listNames[:], name) }

// The limits of unknown lists.
const (
	maxUnknownLists = 32  // number of lists
	maxListName     = 200 // length of a name in bytes
)

// MaxDescriptors is the maximum number of descriptors of one transfer. vLLM's class converts the numbers to 32-bit
// integers.
const MaxDescriptors = math.MaxUint32

// A Transfer is one transfer of KV cache.
type Transfer struct {
	XferMicros  float64 // duration in microseconds
	PostMicros  float64 // duration of posting in microseconds
	Bytes       float64
	Descriptors float64   // at most MaxDescriptors
	End         time.Time // zero = unknown
}

// Transfers holds the statistics of KV cache transfers. It corresponds to vLLM's class NixlKVConnectorStats, with the
// methods Record, RecordFailedTransfer and so on, CloneAndReset, Empty, Aggregate and Reduce. Its JSON is the data of
// the class, which is seven lists. The zero value is empty and ready to use.
//
// It tolerates the differences between versions of vLLM. A missing list is treated as empty. Up to 32 unknown lists are
// kept, and the statistics are not empty if such a list has entries, because they may be failures in a newer version.
//
// The lists grow with the job. Condense replaces them with exact sums, and with a [Sketch] for each P90.
type Transfers struct {
	lists     map[string]list
	condensed bool
	times     span
}

// A list holds the numbers of a list of the class or, once condensed, their count and sum.
type list struct {
	values []float64
	sum    tally
	sketch *Sketch // only for a condensed list with a P90 in Reduce
}

// len returns the length of the list, whether it was condensed or not.
func (l list) len() int64 { return l.sum.N + int64(len(l.values)) }

// A tally is the length and the sum of a list. Rest is the rounding error of Sum, so Sum + Rest is the exact sum,
// rounded once (Neumaier's method).
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
		t.append(listNames[i], math.Abs(v)) // −0 becomes 0
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

// RecordKVExpired counts a request with KV cache blocks that were not fetched in time.
func (t *Transfers) RecordKVExpired() { t.append(NumKVExpiredReqs, 1) }

// append adds a number to the list with the given name, or to its condensed form.
func (t *Transfers) append(name string, v float64) {
	if !t.condensed {
		t.extend(name, v)
		return
	}

	if name == NumDescriptors {
		v = math.Trunc(v) // as in Reduce
	}
	l := t.lists[name]
	l.sum.add(v, 1)
	if l.sketch != nil {
		_ = l.sketch.Add(v) // cannot fail, because v is finite and no job has 2^53 transfers
	}
	t.lists[name] = l
}

// extend appends numbers to a list. Above 16384 numbers, it allocates in steps of 16384, because append would leave up
// to a quarter of the memory unused.
func (t *Transfers) extend(name string, more ...float64) {
	const step = 16384
	values := t.lists[name].values
	if need := len(values) + len(more); need > cap(values) && need > step {
		values = append(make([]float64, 0, (need+step-1)/step*step), values...)
	}
	if t.lists == nil {
		t.lists = make(map[string]list)
	}
	t.lists[name] = list{values: append(values, more...)}
}

// Condense replaces the lists with their lengths and sums, and the lists with a P90 in Reduce with a [Sketch] of a few
// KiB. Until the next CloneAndReset, later entries are condensed as they are added.
func (t *Transfers) Condense() {
	if t.condensed {
		return
	}

	kept := t.lists
	t.condensed, t.lists = true, make(map[string]list)
	for _, name := range slices.Concat(listNames[:], slices.Collect(maps.Keys(kept))) {
		t.lists[name] = list{}
	}
	t.lists[TransferDuration], t.lists[PostDuration] = list{sketch: new(Sketch)}, list{sketch: new(Sketch)}
	for name, l := range kept {
		for _, v := range l.values {
			t.append(name, v)
		}
	}
}

// MaxUncondensed is the maximum number of transfers that perfagent keeps in lists, for all Transfers together. They
// take 4 MiB.
const MaxUncondensed = 131072

// CloneAndReset returns the contents of t and makes t empty.
func (t *Transfers) CloneAndReset() *Transfers {
	c := *t
	*t = Transfers{}

	return &c
}

// Clone returns an independent copy. It is cheap: the lists are shared, because their numbers never change.
func (t *Transfers) Clone() *Transfers {
	c := *t
	c.lists = maps.Clone(t.lists)
	for name, l := range c.lists {
		l.values = slices.Clip(l.values)
		if l.sketch != nil {
			l.sketch = l.sketch.Clone()
		}
		c.lists[name] = l
	}

	return &c
}

// Empty reports whether all lists are empty. An interval with failures but no transfer is not empty.
func (t *Transfers) Empty() bool {
	for _, l := range t.lists {
		if l.len() > 0 {
			return false
		}
	}
	return true
}

// Len returns the number of transfers.
func (t *Transfers) Len() int64 { return t.lists[TransferDuration].len() }

// Uncondensed returns the number of transfers in the lists. A transfer is four numbers, which take 32 bytes. Four
// failures, or four entries of unknown lists, count as one transfer.
func (t *Transfers) Uncondensed() int {
	n := 0
	for _, l := range t.lists {
		n += len(l.values)
	}

	return n / perTransfer
}

// Sum returns the length and the sum of the list with the given name, whether it was condensed or not. Both are 0 if
// there is no such list.
func (t *Transfers) Sum(name string) (n int64, sum float64) {
	l := t.lists[name]
	if !t.condensed {
		return l.len(), pairwiseSum(l.values)
	}
	return l.len(), l.sum.Sum + l.sum.Rest
}

// UnknownLists returns the names of the unknown lists, in alphabetical order.
func (t *Transfers) UnknownLists() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.lists)), isKnown)
}

// Aggregate appends the lists of o, which it does not change. An empty o changes nothing. If there are too many unknown
// lists, it returns [ErrFull]; the excess lists are then lost, but everything else was added.
func (t *Transfers) Aggregate(o *Transfers) (err error) {
	if o.Empty() {
		return nil
	}
	if t.condensed != o.condensed {
		o = o.Clone()
		o.Condense()
		t.Condense()
	}

	t.times.merge(o.times)
	unknown := len(t.UnknownLists())
	for _, name := range slices.Sorted(maps.Keys(o.lists)) {
		l, had := t.lists[name]
		if !had && !isKnown(name) {
			if unknown >= maxUnknownLists {
				err = ErrFull
				continue
			}
			unknown++
		}
		more := o.lists[name]
		if !t.condensed {
			t.extend(name, more.values...)
			continue
		}
		l.sum.add(more.sum.Sum, more.sum.N)
		l.sum.Rest = bounded(l.sum.Rest + more.sum.Rest)
		if l.sketch != nil {
			_ = l.sketch.Merge(more.sketch) // cannot fail, because no job has 2^53 transfers
		}
		t.lists[name] = l
	}

	return err
}

// A span is the time from the start of the first transfer to the end of the last one, for the transfers with a known
// end. The times are nanoseconds since 1970, which are exact, unlike Unix seconds in a float64.
type span struct {
	first, last int64
	n           int64 // number of transfers
}

// The end of a transfer must be in the years 1970 to 2199. Nanoseconds then fit in an int64, even if a long duration is
// subtracted from an end.
const (
	maxEnd      = 7258118400           // Unix seconds
	maxDuration = 30 * 365 * 24 * 3600 // seconds; longer durations are reduced to this
)

// plausible reports whether end is in the range for the end of a transfer.
func plausible(end time.Time) bool { return end.Unix() >= 0 && end.Unix() < maxEnd }

// add extends the span by a transfer with a plausible end and the given duration.
func (s *span) add(end time.Time, seconds float64) {
	last := end.UnixNano()
	s.merge(span{last - int64(math.Round(min(seconds, maxDuration)*1e9)), last, 1})
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

// WallThroughput returns the number of MiB transferred per second of the span, in which transfers may overlap. It
// reports false if the span is unknown or empty. The throughput in Reduce is instead relative to the sum of all
// durations, which understates concurrent transfers.
func (t *Transfers) WallThroughput() (mbPerSecond float64, ok bool) {
	if _, _, known := t.Span(); !known || t.times.first == t.times.last {
		return 0, false
	}

	_, bytes := t.Sum(BytesTransferred)
	seconds := float64(t.times.last-t.times.first) / 1e9
	return bytes / (1 << 20) / seconds, true
}

// ownMember is the name of the JSON member that vLLM's class does not have. It contains the state outside the lists.
const ownMember = "perfagent"

// stateJSON is the value of the member "perfagent".
type stateJSON struct {
	Span     []int64            `json:"span,omitempty"`     // first and last nanosecond, number of transfers
	Lists    map[string]tally   `json:"lists,omitempty"`    // condensed lists
	Sketches map[string]*Sketch `json:"sketches,omitempty"` // for the lists with a P90
}

// MarshalJSON writes the data of vLLM's class: an object with the seven lists, in the order of the class, and then the
// unknown lists. If ends of transfers are known or the lists were condensed, the object has an additional member,
// "perfagent".
func (t *Transfers) MarshalJSON() ([]byte, error) {
	var own stateJSON
	if t.times.n > 0 {
		own.Span = []int64{t.times.first, t.times.last, t.times.n}
	}
	names := listNames[:]
	if t.condensed {
		own.Lists, own.Sketches = make(map[string]tally), make(map[string]*Sketch)
		for name, l := range t.lists {
			own.Lists[name] = l.sum
			if l.sketch != nil {
				own.Sketches[name] = l.sketch
			}
		}
	} else {
		names = slices.Concat(names, t.UnknownLists())
	}

	var out object
	for _, name := range names {
		out.add(name, append([]float64{}, t.lists[name].values...)) // an empty list instead of null
	}
	if t.times.n > 0 || t.condensed {
		out.add(ownMember, own)
	}
	return out.close()
}

// An object builds a JSON object with its members in a fixed order.
type object struct {
	text []byte
	err  error
}

// add adds a member, and records the first error.
func (o *object) add(name string, value any) {
	quoted, err := json.Marshal(name)
	text, err2 := json.Marshal(value)
	o.err = cmp.Or(o.err, err, err2)
	o.text = append(append(append(append(o.text, ','), quoted...), ':'), text...)
}

// close returns the complete object, which must have at least one member.
func (o *object) close() ([]byte, error) {
	o.text[0] = '{'
	return append(o.text, '}'), o.err
}

// UnmarshalJSON reads the output of MarshalJSON.
func (t *Transfers) UnmarshalJSON(data []byte) error {
	return t.read(data, true)
}

// ReadData reads the data of any version of vLLM's class. A missing list is treated as empty, and an unknown list is
// kept. It returns an error if a value is not a list of numbers, the first four lists have different lengths, one of
// the seven known lists has a negative number, a number of descriptors is above MaxDescriptors, a number is beyond
// 1e100, there are more than 32 unknown lists, or a name has more than 200 bytes.
func (t *Transfers) ReadData(data []byte) error { return t.read(data, false) }

// read reads the lists and, if own is true, the state outside the lists, which only perfagent writes.
func (t *Transfers) read(data []byte, own bool) error {
	return readJSON("transfers", data, t, func(members map[string]json.RawMessage) (read Transfers, err error) {
		var state stateJSON
		if text := members[ownMember]; own && text != nil {
			delete(members, ownMember)
			err = json.Unmarshal(text, &state)
		}
		if !read.readLists(members) || !read.setState(state) {
			err = ErrMalformed
		}
		return read, err
	})
}

// setState sets the state outside the lists. It reports false if a number is too large or has the wrong sign.
func (t *Transfers) setState(w stateJSON) bool {
	if len(w.Span) == 3 {
		t.times = span{w.Span[0], w.Span[1], w.Span[2]}
		if t.times.first > t.times.last || t.times.first < -maxDuration*1e9 || t.times.last >= maxEnd*1e9 || t.times.n < 0 {
			return false
		}
	}
	if w.Lists == nil {
		return true
	}

	t.Condense()
	for name, sum := range w.Lists {
		if sum.N < 0 || sum.N > maxCount || !(math.Abs(sum.Sum) <= sumLimit) || !(math.Abs(sum.Rest) <= sumLimit) ||
			isKnown(name) && sum.Sum+sum.Rest < 0 {
			return false
		}
		l := t.lists[name]
		l.sum = sum
		if s := w.Sketches[name]; s != nil && l.sketch != nil {
			l.sketch = s
		}
		t.lists[name] = l
	}
	return true
}

// readLists reads the lists into an empty Transfers. It reports false if a list is impossible or the lists do not fit
// together.
func (t *Transfers) readLists(members map[string]json.RawMessage) bool {
	t.lists = make(map[string]list, len(members))
	for name, raw := range members {
		values, ok := numbers(raw)
		if !ok || len(name) > maxListName {
			return false
		}
		t.lists[name] = list{values: values}
	}

	for i, name := range listNames {
		values, most := t.lists[name].values, float64(limit)
		if name == NumDescriptors {
			most = MaxDescriptors
		}
		if i < perTransfer && int64(len(values)) != t.Len() ||
			slices.ContainsFunc(values, func(v float64) bool { return v < 0 || v > most }) {
			return false
		}
	}

	return len(t.UnknownLists()) <= maxUnknownLists
}

// numbers returns the numbers of a JSON list. It parses the text itself, which takes a third of the time of
// encoding/json. The text is known to be valid JSON, so it cannot contain numbers that only ParseFloat accepts (Inf,
// hexadecimal).
func numbers(raw json.RawMessage) (values []float64, ok bool) {
	inner, isList := bytes.CutPrefix(raw, []byte{'['})
	inner = bytes.TrimSpace(bytes.TrimSuffix(inner, []byte{']'}))
	if !isList || len(inner) == 0 {
		return nil, isList
	}

	values = make([]float64, 0, 1+bytes.Count(inner, []byte{','}))
	for text := range bytes.SplitSeq(inner, []byte{','}) {
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
		if err != nil || !inRange(v) {
			return nil, false
		}
		values = append(values, v)
	}

	return values, true
}
