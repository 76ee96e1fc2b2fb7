package reporter

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/collector"
)

// asRank makes the node the recording of one rank of several: it gets that rank as its only one, and only
// what the rank's perfagent has measured of the host.
func (n *Node) asRank(rec *collector.Recording, run *Run, rank string) {
	number, err := strconv.Atoi(rank)
	if err != nil || number < 0 { // of a damaged journal
		return
	}

	held, ok := holding(rec, number)
	switch {
	case ok:
		n.Sampling.Holders = []Holder{held}
		if held.Start.After(rec.Start.Wall) { // by then, another had stopped
			n.Missing = slices.DeleteFunc(n.Missing, func(m Missing) bool {
				return m.Code == CountedLate && ofHost(m.What)
			})
		}
	case rec.Samples > 0:
		n.dropHost()
	}

	r := newRank(run, n, number)
	if n.Job == nil {
		r.Cgroup = rec.Account.Group
	}
	n.Ranks = map[string]*Rank{strconv.Itoa(number): r}
}

// holding returns when a rank's perfagent measured the host: from the run's start if its first sample has something of
// the host, and to the last sample that has. ok is false if none has.
func holding(rec *collector.Recording, rank int) (h Holder, ok bool) {
	columns := hostColumns(rec)
	if !slices.ContainsFunc(columns, func(c collector.Column) bool { return rec.Summaries[c].Count() > 0 }) {
		return h, false
	}

	h = Holder{Rank: rank, Start: Time{rec.Start.Wall}}
	for i := range rec.Ring.Len() {
		b := rec.Ring.Bucket(i)
		if !slices.ContainsFunc(columns, func(c collector.Column) bool { return b.Stats[c].Count > 0 }) {
			continue
		}

		at := b.Stats[collector.Timestamp]
		inFirst := func(c collector.Column) bool { return !math.IsNaN(b.Values[c]) }
		if !ok && !(i == 0 && slices.ContainsFunc(columns, inFirst)) {
			h.Start = Time{unixTime(at.Min)}
		}
		h.End, ok = Time{unixTime(at.Max)}, true
	}
	return h, ok
}

// hostColumns returns the columns that only the perfagent that measures the host has values in. Those that
// every reading of it has come first.
func hostColumns(rec *collector.Recording) []collector.Column {
	list := []collector.Column{collector.CPUAvg, collector.MemPercent, collector.NetExtRecv}
	for c := range rec.Columns() {
		if c.Info().Since == collector.Host && c != collector.Timestamp {
			list = append(list, c)
		}
	}
	return list
}

// dropHost leaves out all that is of the host, and says why.
func (n *Node) dropHost() {
	maps.DeleteFunc(n.Metrics, func(name string, _ float64) bool { return ofHost(name) })
	maps.DeleteFunc(n.Summaries, func(key string, _ Quantile) bool { return ofHost(key) })
	maps.DeleteFunc(n.Envelope, func(key string, _ Band) bool { return ofHost(key) })

	n.Samples = n.Samples.only(func(key string) bool { return !ofHost(key) })
	n.Missing = slices.DeleteFunc(n.Missing, func(m Missing) bool { return ofHost(m.What) })
	n.Missing = append(n.Missing, Lacking("host", HostByAnother))
}

// heldSeconds returns for how long a rank's perfagent measured the host; 0 if that is all of the run, or not known.
func heldSeconds(rec *collector.Recording, rank string) float64 {
	if rank == "" {
		return 0
	}
	held, ok := holding(rec, 0)
	if !ok || !held.Start.After(rec.Start.Wall) {
		return 0
	}
	return held.seconds()
}

func (h Holder) seconds() float64 { return max(0, h.End.Sub(h.Start.Time).Seconds()) }
