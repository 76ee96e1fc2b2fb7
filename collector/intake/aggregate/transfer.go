package aggregate

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/opstats"
)

// A transfer holds the transfers of one name that come from records.
type transfer struct {
	Records  opstats.Transfers `json:"records"`
	Ranks    []int             `json:"ranks,omitempty"` // in ascending order
	First    float64           `json:"first"`           // time of the first record, in Unix seconds
	Last     float64           `json:"last"`
	interval *interval
}

// addTransfer adds a transfer, a failure, or the data of an interval from an event.
func (b *Aggregator) addTransfer(e *wire.Event, at time.Time) bool {
	var data opstats.Transfers
	if e.Kind == wire.TransferData && data.ReadData(e.Data) != nil {
		return b.refuse(e.Data, wire.Malformed)
	}
	t := b.transfer(e.Series)
	if t == nil {
		return false
	}

	held := t.Records.Uncondensed()
	err := t.add(e, &data, at)
	b.used.uncondensed += t.Records.Uncondensed() - held
	b.Condense(opstats.MaxUncondensed)
	switch {
	case errors.Is(err, opstats.ErrNotFinite):
		return b.refuse(e.Series, wire.NotFinite)
	case err != nil:
		return b.refuse(e.Series, wire.Malformed)
	}
	t.seen(unixSeconds(at))
	if i, known := slices.BinarySearch(t.Ranks, e.Rank); e.Rank >= 0 && !known && b.used.ranks < maxRanks {
		t.Ranks = slices.Insert(t.Ranks, i, e.Rank)
		b.used.ranks++
	}

	return true
}

// transfer returns the transfers of the given name, or nil if there is no room for another name.
func (b *Aggregator) transfer(name []byte) *transfer {
	if t := b.Records[string(name)]; t != nil {
		return t
	}
	if len(b.Records)+len(b.Engines) >= MaxTransfers || b.used.nameBytes+len(name) > maxNameBytes {
		b.Dropped.Series++
		b.example(name, "no room for another transfer")
		return nil
	}

	b.used.nameBytes += len(name)
	t := &transfer{interval: b.chartOf(TransferKind, string(name))}
	put(&b.Records, string(name), t)

	return t
}

// failures holds the methods that count failures, by their names in events.
var failures = map[string]func(*opstats.Transfers){
	"transfer":     (*opstats.Transfers).RecordFailedTransfer,
	"notification": (*opstats.Transfers).RecordFailedNotification,
	"kv_expired":   (*opstats.Transfers).RecordKVExpired,
}

// add adds the data of an event.
func (t *transfer) add(e *wire.Event, data *opstats.Transfers, at time.Time) error {
	switch e.Kind {
	case wire.TransferFailure:
		failures[string(e.Text)](&t.Records)
		return nil
	case wire.TransferData:
		n, seconds := data.Sum(opstats.TransferDuration)
		_, bytes := data.Sum(opstats.BytesTransferred)
		t.interval.addMany(seconds*1000, float64(n))
		t.interval.bytes += bytes
		return t.Records.Aggregate(data)
	}

	x := e.Transfer
	x.End = at
	err := t.Records.Record(x)
	if err == nil {
		t.interval.add(x.XferMicros/1000, 1)
		t.interval.bytes += x.Bytes
	}

	return err
}

// seen updates First and Last with the time at.
func (t *transfer) seen(at float64) {
	if t.First == 0 {
		t.First = at
	}
	t.Last = max(t.Last, at)
}

// Condense reduces the number of transfers that are kept in lists, for all names together, to most or fewer. It
// replaces the largest lists with exact sums and sketches.
func (b *Aggregator) Condense(most int) {
	for b.used.uncondensed > most {
		var largest *opstats.Transfers
		for _, name := range slices.Sorted(maps.Keys(b.Records)) {
			if t := &b.Records[name].Records; largest == nil || t.Uncondensed() > largest.Uncondensed() {
				largest = t
			}
		}
		b.used.uncondensed -= largest.Uncondensed()
		largest.Condense()
	}
}
