package journal

import (
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
)

// layout tells which columns of ours the values of a journal's lines are. A journal names its
// columns: of another version's, those that we know are taken and the others are left out; what it
// lacks was not measured.
type layout struct {
	columns []collector.Column // by place in a line; noColumn = not known
	gpus    int                // devices that have columns
	// counters are the places in Recording.BootMB of the counters since boot, which have no names
	// in a journal: those of the columns that it has, in our order. Those of columns that we do not
	// know come after them.
	counters []int
	later    bool // has columns that we do not know
}

const noColumn = collector.Column(-1)

// columnKeys lists the first n columns as a journal's head does.
func columnKeys(n collector.Column) []string {
	keys := make([]string, n)
	for c := range n {
		keys[c] = c.Key()
	}
	return keys
}

// newLayout reads the head's list.
func newLayout(keys []string) layout {
	l := layout{columns: make([]collector.Column, len(keys))}
	for i, c := range collector.Counters() {
		if slices.Contains(keys, c.Key()) {
			l.counters = append(l.counters, i)
		}
	}
	for place, key := range keys {
		c, ok := collector.ColumnNamed(key)
		if !ok || slices.Contains(l.columns[:place], c) {
			c, l.later = noColumn, true
		}
		l.columns[place] = c
		if device, _, ok := c.GPU(); ok {
			l.gpus = max(l.gpus, device+1)
		}
	}
	return l
}

// width is how many columns of ours there are, with those of the journal's GPUs.
func (l layout) width() int { return int(collector.GPUColumn(l.gpus, 0)) }

// sample puts the values and weights of a line in our order.
func (l layout) sample(line *sampleLine) error {
	if len(line.Values) != len(l.columns) {
		return fmt.Errorf("sample of %d columns", len(line.Values))
	}

	weights := make(map[int]float64, len(line.Weights))
	for place, w := range line.Weights {
		if place < 0 || place >= len(l.columns) {
			return fmt.Errorf("weight of column %d", place)
		}
		if c := l.columns[place]; c != noColumn {
			weights[int(c)] = w
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

// boot takes the counters since boot of a line.
func (l layout) boot(rec *collector.Recording, mb []float64) error {
	if n := len(l.counters); len(mb) < n || len(mb) > n && !l.later {
		return fmt.Errorf("%d counters since boot", len(mb))
	}
	for i := range rec.BootMB {
		rec.BootMB[i] = math.NaN()
	}
	for k, i := range l.counters {
		rec.BootMB[i] = mb[k]
	}
	return nil
}

// arranged puts a list that is as long as a line in our order.
func arranged[T any](l layout, list []T, absent T) []T {
	out := slices.Repeat([]T{absent}, l.width())
	for place, c := range l.columns {
		if c != noColumn {
			out[c] = list[place]
		}
	}
	return out
}
