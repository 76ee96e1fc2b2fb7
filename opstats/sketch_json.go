package opstats

import (
	"encoding/json"
	"errors"
	"fmt"
)

// sketchJSON is a Sketch in a file.
type sketchJSON struct {
	Min      *float64 `json:"min,omitempty"` // absent when nothing was counted
	Max      *float64 `json:"max,omitempty"`
	Zeros    uint64   `json:"zeros,omitzero"`
	Positive []int64  `json:"positive,omitempty"` // the first bin, then the counts from there on
	Negative []int64  `json:"negative,omitempty"`
}

// MarshalJSON writes the whole state: {"min":-1,"max":5,"zeros":2,"positive":[81,3],"negative":[0,1]}. A list has the
// number of its first bin and then the counts from that bin on.
func (s *Sketch) MarshalJSON() ([]byte, error) {
	w := sketchJSON{Zeros: s.zeros, Positive: s.positive.list(), Negative: s.negative.list()}
	if s.count > 0 {
		w.Min, w.Max = &s.min, &s.max
	}

	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. What no Sketch can be is an error: counts that are negative or above
// 2^53 in all, a range that does not fit to the bins. Unknown keys are ignored.
func (s *Sketch) UnmarshalJSON(data []byte) error { return readJSON("sketch", data, s, sketchJSON.sketch) }

// list returns the first bin that has a count and the counts from there to the last that has one, or nil.
func (b *bins) list() []int64 {
	var list []int64
	used := 0 // how much of the list is needed
	for i := range b.counts {
		n := b.at(i)
		switch {
		case list == nil && n == 0:
			continue
		case list == nil:
			list = append(make([]int64, 0, 1+len(b.counts)-i), int64(b.first+i))
		}
		list = append(list, int64(n))
		if n > 0 {
			used = len(list)
		}
	}

	return list[:used]
}

// sketch checks what was read and returns it as a Sketch.
func (w sketchJSON) sketch() (s Sketch, err error) {
	s = Sketch{count: w.Zeros, zeros: w.Zeros}
	if w.Zeros > maxCount {
		return s, fmt.Errorf("count %d of zeros is out of range", w.Zeros)
	}
	for b, list := range map[*bins][]int64{&s.positive: w.Positive, &s.negative: w.Negative} {
		n, err := b.read(list, maxCount-s.count)
		if err != nil {
			return s, err
		}
		s.count += n
	}

	if (w.Min == nil) != (s.count == 0) || (w.Max == nil) != (s.count == 0) {
		return s, errors.New("min and max must be there when something was counted, and only then")
	}
	if s.count > 0 {
		s.min, s.max = *w.Min, *w.Max
		err = s.checkRange()
	}

	return s, err
}

// read fills empty bins from a list and returns the sum of its counts, which is at most the given one.
func (b *bins) read(list []int64, most uint64) (sum uint64, err error) {
	if len(list) == 0 {
		return 0, nil
	}

	first, counts := list[0], list[1:]
	last := first + int64(len(counts)) - 1
	if least, most := int64(binOf(minSize)), int64(binOf(limit)); first < least || first > most || last > most {
		return 0, fmt.Errorf("bins %d to %d are out of range", first, last)
	}
	if len(counts) == 0 || len(counts) > maxBins || counts[0] == 0 || counts[len(counts)-1] == 0 {
		return 0, fmt.Errorf("a list of %d counts that begins or ends with 0, or is too long", len(counts))
	}

	b.include(int(last))
	for i, n := range counts {
		if n < 0 || uint64(n) > most-sum {
			return 0, fmt.Errorf("count %d is out of range", n)
		}
		if n > 0 {
			sum += uint64(n)
			b.add(int(first)+i, uint64(n))
		}
	}

	return sum, nil
}

// checkRange returns an error if the range of values from outside does not fit to the bins.
func (s *Sketch) checkRange() error {
	fits := inRange(s.min) && inRange(s.max) && s.min <= s.max && s.negative.reaches(-s.min) && s.positive.reaches(s.max)
	if !fits {
		return fmt.Errorf("min %v and max %v do not fit to the bins", s.min, s.max)
	}
	return nil
}

// reaches reports whether the largest size of the bins is the given one, which is not positive without bins. The
// logarithm of another machine may differ in its last bit, so the bin may be the one beside it.
func (b *bins) reaches(size float64) bool {
	last := len(b.counts) - 1
	for last >= 0 && b.at(last) == 0 {
		last--
	}
	if last < 0 || !(size > 0) {
		return last < 0 && size <= 0
	}
	distance := binOf(size) - (b.first + last)

	return distance >= -1 && distance <= 1
}
