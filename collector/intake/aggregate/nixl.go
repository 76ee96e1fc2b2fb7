package aggregate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
)

// A nixlPart identifies one of vLLM's NIXL metrics.
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

// nixlName is the name of the transfers that are reported from vLLM's NIXL metrics.
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

// nixlPartOf returns the nixlPart of a metric with the given name and type, or noPart.
func nixlPartOf(name string, kind wire.MetricType) nixlPart {
	own, vllm := cutVLLM(name)
	part := slices.Index(nixlParts[:], own)
	if !vllm || part <= 0 || (nixlPart(part) < failedPart) != (kind == wire.HistogramMetric) {
		return noPart
	}
	return nixlPart(part)
}

// A nixl is the growth of one engine's NIXL metrics in vLLM.
type nixl struct {
	Parts    [descriptorsPart + 1]distribution `json:"parts"`
	Failures [expiredPart + 1]float64          `json:"failures"`
	First    float64                           `json:"first"` // first scrape with growth, in Unix seconds
	Last     float64                           `json:"last"`
}

// growNIXL adds the growth of one of vLLM's NIXL metrics.
func (b *Aggregator) growNIXL(m *metric, g *metricValue, at time.Time) {
	if g.count <= 0 {
		return
	}
	pooled := b.transfer([]byte(nixlName)) // holds the timeline and, if there are any, the records
	n := b.engine(m.engine)
	if pooled == nil || n == nil {
		return
	}

	switch {
	case m.nixl >= failedPart:
		n.Failures[m.nixl] = min(n.Failures[m.nixl]+g.count, maxSum)
	case m.nixl == xferPart:
		pooled.interval.addMany(g.sum*1000, g.count)
	case m.nixl == bytesPart:
		pooled.interval.bytes += g.sum
	}
	if m.nixl < failedPart {
		n.Parts[m.nixl].grow(g, m.bounds, 1, &b.used)
	}
	if n.First == 0 {
		n.First = unixSeconds(at)
	}
	n.Last = unixSeconds(at)
}

// engine returns the nixl of the engine with the given label, or nil if there is no room for another engine.
func (b *Aggregator) engine(label string) *nixl {
	if n := b.Engines[label]; n != nil {
		return n
	}
	if len(b.Records)+len(b.Engines) >= MaxTransfers {
		b.Dropped.Series++
		return nil
	}
	n := &nixl{}
	put(&b.Engines, label, n)

	return n
}

// pooledEngines returns the sum of all engines.
func (b *Aggregator) pooledEngines() *nixl {
	sum := &nixl{}
	for _, label := range slices.Sorted(maps.Keys(b.Engines)) {
		n := b.Engines[label]
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
