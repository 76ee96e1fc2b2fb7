package series

import "slices"

// Decimator thins a stream exactly as perf.py does. It exists only for --compat perf.py, because it loses peaks, spaces
// samples unevenly and drops the newest samples. For everything else, use [Ring].
//
// A sample is accepted if its number (1, 2, 3…) is a multiple of Freq. When the list exceeds the maximum length, every
// second sample is kept, beginning with the first, the sample that did not fit is dropped, and Freq doubles.
type Decimator[T any] struct {
	items     []T
	maxLength int
	counter   int64
	freq      int64
}

// NewDecimator returns an empty Decimator. It rounds an odd maxLength up to an even number, as perf.py does. If
// maxLength is 0 or less, the Decimator keeps no samples.
func NewDecimator[T any](maxLength int) *Decimator[T] {
	maxLength = min(max(maxLength, 0), MaxCapacity)
	return &Decimator[T]{maxLength: maxLength + maxLength%2, freq: 1}
}

// Add adds the next sample, or drops it if it is not accepted.
func (d *Decimator[T]) Add(sample T) {
	d.counter++
	if d.counter%d.freq != 0 {
		return
	}
	d.items = append(d.items, sample)
	if len(d.items) <= d.maxLength {
		return
	}

	kept := d.maxLength / 2
	for i := range kept {
		d.items[i] = d.items[2*i]
	}
	clear(d.items[kept:]) // release memory that the dropped samples refer to
	d.items = d.items[:kept]
	d.freq *= 2
}

// Clone returns an independent copy. The samples are copied by assignment.
func (d *Decimator[T]) Clone() *Decimator[T] {
	c := *d
	c.items = slices.Clone(d.items)
	return &c
}

// Items returns the kept samples, oldest first. The slice is a read-only view, valid until the next Add.
func (d *Decimator[T]) Items() []T { return d.items }

// Freq returns the current distance between accepted samples: 1, 2, 4…
func (d *Decimator[T]) Freq() int64 { return d.freq }
