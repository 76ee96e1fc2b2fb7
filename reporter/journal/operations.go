package journal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// operationsInterval is how often a changed Aggregator is written: more often than the promised 5 s.
	operationsInterval = 3 * time.Second
	// maxOperationsSize is the maximum size of a journal with operations, 4 MiB, less a full queue of lines.
	maxOperationsSize = 4<<20 - 160<<10
	// maxTransfers is the number of transfers that a state keeps individually. If there are more, the sums stay exact,
	// and the quantiles are estimated.
	maxTransfers = 16384
	// maxTimelineCells is the number of timeline cells in a snapshot. If there are more, the snapshot has half the
	// points.
	maxTimelineCells = 1000 * 24
)

// A timelinePoints holds the newest points of the timelines of operations, since the previous sample.
type timelinePoints struct {
	// Keys are the keys of all timelines, if there are new timelines.
	Keys []string `json:"keys,omitempty"`
	// Points are encoded by pointsOf.
	Points reporter.Numbers `json:"points"`
}

// appendTimelines adds the newest points of the timelines to the line of a sample.
func (j *Journal) appendTimelines(out []byte, operations *collector.Operations) []byte {
	if operations == nil || len(operations.Keys) == 0 {
		return out
	}

	line := timelinePoints{Points: pointsOf(operations.LastSample)}
	if len(operations.Keys) != j.timelineCount {
		line.Keys, j.timelineCount = operations.Keys, len(operations.Keys)
	}
	return appendMember(out, `,"work":`, &line)
}

// pointsOf returns four numbers per timeline: min, mean, max and weight.
func pointsOf(stats []series.Stat) reporter.Numbers {
	points := make(reporter.Numbers, 0, 4*len(stats))
	for _, s := range stats {
		points = append(points, roundDigits(s.Min), roundDigits(s.Mean()), roundDigits(s.Max), roundDigits(s.Weight))
	}
	return points
}

// roundDigits keeps six significant digits. Random digits take much space, and plots show fewer.
func roundDigits(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) || v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return v
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	return v
}

// applyTo adds the points to the timelines of rec, before the sample is added.
func (l *timelinePoints) applyTo(rec *collector.Recording) error {
	if l == nil {
		// Timelines must have as many points as the ring, so an empty point is added.
		if operations := rec.Operations; operations != nil && operations.Timelines != nil {
			operations.AddSample(rec, operations.Keys, make([]series.Stat, len(operations.Keys)))
		}
		return nil
	}

	if rec.Operations == nil {
		rec.Operations = &collector.Operations{Aggregator: aggregate.New(aggregate.Options{}, time.Time{})}
	}
	operations, keys := rec.Operations, rec.Operations.Keys
	if len(l.Keys) > 0 {
		if len(l.Keys) < len(keys) || !slices.Equal(l.Keys[:len(keys)], keys) || len(l.Keys) > series.MaxWidth {
			return errors.New("the timelines of operations differ from the previous lines'")
		}
		keys = l.Keys
	}
	if len(l.Points) != 4*len(keys) {
		return fmt.Errorf("%d numbers for %d timelines of operations, not 4 each", len(l.Points), len(keys))
	}

	operations.AddSample(rec, keys, statsOf(l.Points))
	return nil
}

// statsOf is the inverse of pointsOf. Invalid numbers give an empty Stat.
func statsOf(points reporter.Numbers) []series.Stat {
	stats := make([]series.Stat, 0, len(points)/4)
	for p := range slices.Chunk(points, 4) {
		var s series.Stat
		least, mean, greatest := p[0], p[1], p[2]
		s.Add(mean, p[3])
		if s.Count == 0 || !(least <= mean && mean <= greatest) || math.IsInf(least, 0) || math.IsInf(greatest, 0) {
			s = series.Stat{}
		} else {
			s.Min, s.Max = least, greatest
		}
		stats = append(stats, s)
	}
	return stats
}

// A packedTimelines holds the timelines of operations in a snapshot, packed by pack.
type packedTimelines struct {
	Keys    []string           `json:"keys"`
	Buckets []reporter.Numbers `json:"buckets"` // encoded by pointsOf
}

// packTimelines returns the timelines as JSON with gzip, or nil.
func packTimelines(keys []string, timelines *series.Ring) ([]byte, error) {
	if timelines == nil {
		return nil, nil
	}

	packed := packedTimelines{Keys: keys}
	for i := range timelines.Len() {
		packed.Buckets = append(packed.Buckets, pointsOf(timelines.Bucket(i).Stats))
	}

	return pack(&packed)
}

// maxPackedTimelines is larger than the text of all timelines within their limits.
const maxPackedTimelines = 64 << 20

// unpackTimelines restores the Operations of a snapshot with the given ring. Their Aggregator is empty.
func unpackTimelines(data []byte, ring *series.Ring) (*collector.Operations, error) {
	packed, err := unpack[packedTimelines](data, maxPackedTimelines, "timelines of operations")
	if err != nil || packed == nil {
		return nil, err
	}
	width := len(packed.Keys)
	if width == 0 || width > series.MaxWidth {
		return nil, fmt.Errorf("packed timelines of operations: %d of them", width)
	}

	var buckets []series.Bucket
	for _, points := range packed.Buckets {
		if len(points) != 4*width {
			return nil, fmt.Errorf("packed timelines of operations: %d numbers for %d lines, not 4 each", len(points), width)
		}
		b := series.Bucket{Stats: statsOf(points)}
		for _, s := range b.Stats {
			b.Values = append(b.Values, s.Mean())
		}
		buckets = append(buckets, b)
	}
	timelines, err := series.RestoreRing(ring.Capacity(), width, ring.Stride(), ring.Count(), buckets)
	if err != nil {
		return nil, fmt.Errorf("packed timelines of operations: %w", err)
	}

	return &collector.Operations{Keys: packed.Keys, Timelines: timelines,
		Aggregator: aggregate.New(aggregate.Options{}, time.Time{})}, nil
}

// An operationsLine is the line of the Aggregator of operations.
type operationsLine struct {
	Operations []byte `json:"operations"` // by aggregate.Aggregator.WriteState
}

// encodeOperations returns the line of an Aggregator, which it may condense.
func encodeOperations(aggregator *aggregate.Aggregator) ([]byte, error) {
	aggregator.Condense(maxTransfers)
	var line bytes.Buffer
	line.WriteString(`{"operations":"`)
	text := base64.NewEncoder(base64.StdEncoding, &line)
	if err := errors.Join(aggregator.WriteState(text), text.Close()); err != nil {
		return nil, err
	}
	line.WriteString("\"}\n")

	return line.Bytes(), nil
}

// writeOperations appends the Aggregator of operations if it has changed. If there is no room for it, it requests a
// snapshot, which includes it.
func (w *writer) writeOperations() {
	if w.journal.copyAggregator == nil || w.failing {
		return
	}
	aggregator := w.journal.copyAggregator(w.changes)
	if aggregator == nil {
		return
	}

	changes := aggregator.Changes()
	line, err := encodeOperations(aggregator)
	switch {
	case err != nil:
		w.fail(err)
		return
	case w.size+int64(len(line)) > maxOperationsSize:
		w.journal.wantSnapshot.Store(true)
		return
	}
	w.changes = changes
	w.appendLine(line)
}
