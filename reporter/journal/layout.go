package journal

import (
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
)

// A layout maps the values of a journal's lines to the columns of package collector. A journal lists its columns, so
// that a journal of another version can be read: unknown columns are ignored, and missing columns count as not
// measured.
type layout struct {
	columns []collector.Column // by position in a line; noColumn = unknown
	last    collector.Column   // the greatest column in columns
	// counters are the positions in Recording.BootMB of a line's counters since boot; noCounter =
	// unknown.
	counters []int
}

const (
	noColumn  = collector.Column(-1)
	noCounter = -1
)

// columnsOf returns the columns of a Recording's journal, in the order of its lines: the columns of every node, and the
// columns of this node's devices.
func columnsOf(rec *collector.Recording) []collector.Column {
	list := make([]collector.Column, 0, rec.NumColumns())
	for c := range rec.NumColumns() {
		_, _, gpu := c.GPU()
		if !c.OfDevice() || gpu || rec.Summaries[c].Count() > 0 {
			list = append(list, c)
		}
	}
	return list
}

// firstColumns returns the columns at the start of a journal.
func firstColumns() []collector.Column {
	return columnsOf(collector.NewRecording(host.Instant{}, 1, 2))
}

// keysOf returns the keys of columns as in a journal's head.
func keysOf(columns []collector.Column) []string {
	keys := make([]string, len(columns))
	for i, c := range columns {
		keys[i] = c.Key()
	}
	return keys
}

// countersOf returns the columns that count bytes of devices, in the order of a line's counters since boot.
func countersOf(columns []collector.Column) []collector.Column {
	return slices.DeleteFunc(collector.Counters(), func(c collector.Column) bool { return !slices.Contains(columns, c) })
}

// bootOf returns the counters since boot for columns.
func bootOf(rec *collector.Recording, columns []collector.Column) reporter.Numbers {
	var list reporter.Numbers
	for _, c := range countersOf(columns) {
		list = append(list, rec.SinceBoot(c))
	}
	return list
}

// pick returns the items of list, which is indexed by column, in the order of columns.
func pick[T any](list []T, columns []collector.Column) []T {
	out := make([]T, len(columns))
	for i, c := range columns {
		out[i] = list[c]
	}
	return out
}

// newLayout returns the layout for the head's lists of columns and of counters since boot.
func newLayout(keys, counters []string) layout {
	l := layout{columns: make([]collector.Column, len(keys)), counters: make([]int, len(counters))}
	for place, key := range keys {
		c, ok := collector.ColumnByKey(key)
		if !ok || slices.Contains(l.columns[:place], c) {
			c = noColumn
		}
		l.columns[place], l.last = c, max(l.last, c)
	}
	for place, key := range counters {
		i := slices.IndexFunc(collector.Counters(), func(c collector.Column) bool { return c.Key() == key })
		if slices.Contains(l.counters[:place], i) {
			i = noCounter
		}
		l.counters[place] = i
	}
	return l
}

// width returns the number of collector's columns, including those of the journal's devices.
func (l layout) width() int { return int(collector.ColumnsUpTo(l.last)) }

// sample puts the values and weights of line into collector's order. It returns an error if they are damaged.
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
	for i, v := range line.Values { // damage may leave a valid number
		if c := collector.Column(i); v < 0 || v > 100 && c.IsPercent() {
			return fmt.Errorf("sample with %v for %s", v, c.Key())
		}
	}

	return nil
}

// boot sets the counters since boot of rec to mb, which is in the order of a line.
func (l layout) boot(rec *collector.Recording, mb []float64) error {
	if len(mb) != len(l.counters) {
		return fmt.Errorf("%d counters since boot", len(mb))
	}
	rec.BootMB = slices.Repeat([]float64{math.NaN()}, len(collector.Counters()))
	for place, i := range l.counters {
		if i != noCounter {
			rec.BootMB[i] = mb[place]
		}
	}
	return nil
}

// arranged returns the list of a line in collector's order, with absent for missing columns.
func arranged[T any](l layout, list []T, absent T) []T {
	out := slices.Repeat([]T{absent}, l.width())
	for place, c := range l.columns {
		if c != noColumn {
			out[c] = list[place]
		}
	}
	return out
}
