package journal

import (
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/reporter"
)

// layout tells where the values of our columns stand in the lines of a journal
// that another version wrote: by column, the place; -1 where it has none.
type layout struct {
	places []int
	width  int // of the journal's lines
	gpus   int // devices that have columns in it
}

// columnKeys lists the first n columns as a journal's head does.
func columnKeys(n collector.Column) []string {
	keys := make([]string, n)
	for c := range n {
		keys[c] = c.Key()
	}
	return keys
}

// gpusIn counts the devices of which a list of keys has columns.
func gpusIn(keys []string) int {
	n := 0
	for _, k := range keys {
		if c, ok := collector.ColumnNamed(k); ok {
			if device, _, ok := c.GPU(); ok {
				n = max(n, device+1)
			}
		}
	}
	return n
}

// newLayout reads the head's list. A column that we don't know is left out.
func newLayout(keys []string) layout {
	gpus := gpusIn(keys)
	ours := columnKeys(collector.GPUColumn(gpus, 0))
	if keys == nil { // the first version's
		keys = slices.DeleteFunc(slices.Clone(ours), func(k string) bool {
			c, _ := collector.ColumnNamed(k)
			return slices.Contains([]string{"mem_used_mb", "disk_used_mb", "disk_free_mb"}, k) || c >= collector.JobCPU
		})
	}
	l := layout{width: len(keys), gpus: gpus}
	for _, k := range ours {
		l.places = append(l.places, slices.Index(keys, k))
	}
	return l
}

// sample puts the values and weights of a line in our order.
func (l layout) sample(line *sampleLine) error {
	if len(line.Values) != l.width {
		return fmt.Errorf("sample of %d columns", len(line.Values))
	}
	for place := range line.Weights {
		if place < 0 || place >= l.width {
			return fmt.Errorf("weight of column %d", place)
		}
	}
	weights := make(map[int]float64, len(line.Weights))
	for c, place := range l.places {
		if w, ok := line.Weights[place]; ok && place >= 0 {
			weights[c] = w
		}
	}
	line.Values, line.Weights = arranged(l, line.Values, math.NaN()), weights
	for i, v := range line.Values { // a byte that was damaged may leave a number
		if c := collector.Column(i); v < 0 || v > 100 && c.Percent() {
			return fmt.Errorf("sample with %v for %s", v, c.Key())
		}
	}
	return nil
}

// snapshot puts the summaries and buckets of a snapshot in our order.
func (l layout) snapshot(snap *snapshot) error {
	if len(snap.Summaries) != l.width {
		return fmt.Errorf("snapshot of %d columns", len(snap.Summaries))
	}
	snap.Summaries = arranged(l, snap.Summaries, nil)
	if len(snap.Values) == l.width {
		snap.Values = arranged(l, snap.Values, math.NaN())
	} else { // of an older version, or damaged: nothing depends on it
		snap.Values = nil
	}
	for i := range snap.Buckets {
		b := &snap.Buckets[i]
		if len(b.Values) != l.width || len(b.Stats) != l.width {
			return fmt.Errorf("bucket of %d and %d columns", len(b.Values), len(b.Stats))
		}
		// What was not measured: see bucket.
		b.Values, b.Stats = arranged(l, b.Values, math.NaN()), arranged(l, b.Stats, reporter.Numbers{0})
	}
	return nil
}

// arranged puts a list in our order.
func arranged[T any](l layout, list []T, absent T) []T {
	out := make([]T, len(l.places))
	for c, place := range l.places {
		out[c] = absent
		if place >= 0 {
			out[c] = list[place]
		}
	}
	return out
}

// takeSummary takes a column's summary of a snapshot; nil = the journal has none.
func takeSummary(rec *collector.Recording, c int, s *series.Summary) error {
	if s == nil {
		return nil
	}
	if err := rec.Summaries[c].Merge(s); err != nil {
		return fmt.Errorf("summary of %s: %w", collector.Column(c).Key(), err)
	}
	return nil
}
