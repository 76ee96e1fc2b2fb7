package book

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/opstats"
)

// A transfer is what is known of the transfers of one name, of records.
type transfer struct {
	Records  opstats.Transfers `json:"records"`
	Ranks    []int             `json:"ranks,omitempty"` // in ascending order
	First    float64           `json:"first"`           // when the first and the last record came, in Unix seconds
	Last     float64           `json:"last"`
	interval *interval
}

// addTransfer takes a transfer, a failure of one, or the data of an interval.
func (b *Book) addTransfer(e *wire.Event, at time.Time) bool {
	var data opstats.Transfers
	if e.Kind == wire.TransferData && data.UnmarshalJSON(e.Data) != nil {
		return b.refuse(e.Data, wire.Malformed)
	}
	t := b.transfer(e.Series)
	if t == nil {
		return false
	}

	held := t.Records.Held()
	err := t.add(e, &data, at)
	b.used.held += t.Records.Held() - held
	b.Condense(opstats.MaxHeld)
	switch {
	case errors.Is(err, opstats.ErrNotFinite):
		return b.refuse(e.Series, wire.NotFinite)
	case err != nil:
		return b.refuse(e.Series, wire.Malformed)
	}
	t.seen(unixSeconds(at))
	b.addRank(t, e.Rank)

	return true
}

// transfer returns the transfers of a name, or nil if there is no room for another name.
func (b *Book) transfer(name []byte) *transfer {
	if t := b.transfers[string(name)]; t != nil {
		return t
	}
	if len(b.transfers)+len(b.engines) >= MaxTransfers || b.used.nameBytes+len(name) > maxNameBytes {
		b.dropped.Series++
		b.example(name, "no room for another transfer")
		return nil
	}

	b.used.nameBytes += len(name)
	t := &transfer{interval: b.chartOf(TransferKind, string(name))}
	b.transfers[string(name)] = t

	return t
}

// add counts what an event says.
func (t *transfer) add(e *wire.Event, data *opstats.Transfers, at time.Time) error {
	switch e.Kind {
	case wire.Failure:
		switch e.Failure {
		case wire.FailedTransfer:
			t.Records.RecordFailedTransfer()
		case wire.FailedNotification:
			t.Records.RecordFailedNotification()
		case wire.KVExpired:
			t.Records.RecordKVExpired()
		}
		return nil
	case wire.TransferData:
		n, seconds := data.Sum(opstats.TransferDuration)
		_, bytes := data.Sum(opstats.BytesTransferred)
		t.interval.addMany(seconds*1000, float64(n))
		t.interval.addBytes(bytes)
		return t.Records.Aggregate(data)
	}

	x := e.Transfer
	err := t.Records.Record(opstats.Transfer{XferMicros: x.XferMicros, PostMicros: x.PostMicros, Bytes: x.Bytes,
		Descriptors: x.Descriptors, End: at})
	if err == nil {
		t.interval.add(x.XferMicros/1000, 1)
		t.interval.addBytes(x.Bytes)
	}

	return err
}

// addBytes counts bytes that were transferred.
func (i *interval) addBytes(bytes float64) {
	if i != nil {
		i.bytes += bytes
	}
}

// seen notes that something came at a moment.
func (t *transfer) seen(at float64) {
	if t.First == 0 {
		t.First = at
	}
	t.Last = max(t.Last, at)
}

// Condense keeps at most so many transfers one by one, over all names. Of the others it keeps the sums, which stay exact,
// and sketches.
func (b *Book) Condense(most int) {
	if b.used.held <= most {
		return
	}

	var all []*opstats.Transfers
	for _, name := range slices.Sorted(maps.Keys(b.transfers)) {
		all = append(all, &b.transfers[name].Records)
	}
	opstats.CondenseBeyond(most, all...)
	b.used.held = 0
	for _, t := range all {
		b.used.held += t.Held()
	}
}

// addRank notes that a rank transferred.
func (b *Book) addRank(t *transfer, rank int) {
	if rank < 0 {
		return
	}
	i, known := slices.BinarySearch(t.Ranks, rank)
	if known || b.used.ranks >= maxRanks {
		return
	}
	t.Ranks = slices.Insert(t.Ranks, i, rank)
	b.used.ranks++
}

// A nixlPart says which of vLLM's metrics of NIXL a metric is.
type nixlPart uint8

const (
	noPart nixlPart = iota
	xferPart
	postPart
	bytesPart
	descriptorsPart
	failedPart
	notificationsPart
	expiredPart
)

// nixlName is the name of the transfers that vLLM's metrics of NIXL become.
const nixlName = "nixl"

// nixlParts has the names of the metrics without vLLM's prefix.
var nixlParts = [...]string{
	xferPart:          "nixl_xfer_time_seconds",
	postPart:          "nixl_post_time_seconds",
	bytesPart:         "nixl_bytes_transferred",
	descriptorsPart:   "nixl_num_descriptors",
	failedPart:        "nixl_num_failed_transfers_total",
	notificationsPart: "nixl_num_failed_notifications_total",
	expiredPart:       "nixl_num_kv_expired_reqs_total",
}

// nixlPartOf returns what a metric is, by its name and type.
func nixlPartOf(name string, kind wire.MetricType) nixlPart {
	own, vllm := cutVLLM(name)
	part := slices.Index(nixlParts[:], own)
	if !vllm || part <= 0 || (nixlPart(part) < failedPart) != (kind == wire.HistogramMetric) {
		return noPart
	}
	return nixlPart(part)
}

// A nixl is by how much vLLM's metrics of NIXL grew, of one engine.
type nixl struct {
	Parts    [descriptorsPart + 1]distribution `json:"parts"`
	Failures [expiredPart + 1]float64          `json:"failures"`
	First    float64                           `json:"first"` // the scrapes in which something grew, in Unix seconds
	Last     float64                           `json:"last"`
}

// growNIXL adds the growth of one of vLLM's metrics.
func (b *Book) growNIXL(m *metric, g *reading, at time.Time) {
	if g.count <= 0 && g.value <= 0 {
		return
	}
	pooled := b.transfer([]byte(nixlName)) // it has the time line, and the records if there are any
	n := b.engine(m.engine)
	if pooled == nil || n == nil {
		return
	}

	switch {
	case m.nixl >= failedPart:
		n.Failures[m.nixl] = min(n.Failures[m.nixl]+g.value, maxSum)
	case m.nixl == xferPart:
		pooled.interval.addMany(g.sum*1000, g.count)
	case m.nixl == bytesPart:
		pooled.interval.addBytes(g.sum)
	}
	if m.nixl < failedPart {
		n.Parts[m.nixl].grow(g, m.bounds, 1, &b.used)
	}
	if n.First == 0 {
		n.First = unixSeconds(at)
	}
	n.Last = unixSeconds(at)
}

// engine returns what is known of an engine, or nil if there is no room for another one.
func (b *Book) engine(label string) *nixl {
	if n := b.engines[label]; n != nil {
		return n
	}
	if len(b.transfers)+len(b.engines) >= MaxTransfers {
		b.dropped.Series++
		return nil
	}
	n := &nixl{}
	b.engines[label] = n

	return n
}

// pooledEngines returns the sum over all engines.
func (b *Book) pooledEngines() *nixl {
	sum := &nixl{}
	for _, label := range slices.Sorted(maps.Keys(b.engines)) {
		n := b.engines[label]
		for i := range n.Parts {
			sum.Parts[i].merge(&n.Parts[i])
		}
		for i, v := range n.Failures {
			sum.Failures[i] += v
		}
		if sum.First == 0 || n.First < sum.First {
			sum.First = n.First
		}
		sum.Last = max(sum.Last, n.Last)
	}
	return sum
}

// engineName returns the name of the transfers of one engine.
func engineName(label string) string {
	return nixlName + `{engine="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(label) + `"}`
}
