package series

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// MarshalJSON writes a bucket compactly and exactly: {"values":[..],"stats":[..]}, null for what was not measured.
//
// A column's stat is [min,max,sum,weight,count]; shorter where the rest is known: [min,max,sum] when weight and count
// are those of the column before (that has any), [weight] when only the value in "values" was counted, and [] when
// that has the weight of the column before, too. So a bucket of one sample takes little more room than the sample.
func (b Bucket) MarshalJSON() ([]byte, error) {
	if len(b.Values) != len(b.Stats) {
		return nil, fmt.Errorf("write bucket: %d values and %d stats", len(b.Values), len(b.Stats))
	}
	out := append(make([]byte, 0, 32+32*len(b.Values)), `{"values":[`...)
	for i, v := range b.Values {
		out = comma(out, i)
		switch {
		case math.IsNaN(v):
			out = append(out, "null"...)
		case inRange(v):
			out = number(out, v)
		default:
			return nil, fmt.Errorf("write bucket: column %d: value %v is out of range", i, v)
		}
	}
	out = append(out, `],"stats":[`...)
	var before Stat
	for i, st := range b.Stats {
		if err := st.check(); err != nil {
			return nil, fmt.Errorf("write bucket: column %d: %w", i, err)
		}
		out = comma(out, i)
		if st.Count == 0 {
			out = append(out, "null"...)
			continue
		}
		out = st.appendJSON(out, b.Values[i], before)
		before = st
	}
	return append(out, "]}"...), nil
}

// appendJSON writes the stat of a column with the given value in the shortest of the forms above.
func (s Stat) appendJSON(out []byte, value float64, before Stat) []byte {
	var lone Stat
	lone.Add(value, s.Weight)
	var fields []float64
	switch {
	case s.same(lone) && s.Weight == before.Weight:
	case s.same(lone):
		fields = []float64{s.Weight}
	case s.Weight == before.Weight && s.Count == before.Count:
		fields = []float64{s.Min, s.Max, s.Sum}
	default:
		fields = []float64{s.Min, s.Max, s.Sum, s.Weight, float64(s.Count)}
	}
	out = append(out, '[')
	for i, f := range fields {
		out = number(comma(out, i), f)
	}
	return append(out, ']')
}

// same tells whether two Stats are equal bit for bit: -0 is not 0.
func (s Stat) same(o Stat) bool {
	return s == o && math.Signbit(s.Min) == math.Signbit(o.Min) &&
		math.Signbit(s.Max) == math.Signbit(o.Max) && math.Signbit(s.Sum) == math.Signbit(o.Sum)
}

// comma separates array elements.
func comma(out []byte, i int) []byte {
	if i > 0 {
		return append(out, ',')
	}
	return out
}

// number writes a finite number in its shortest form that reads back to the same bits.
func number(out []byte, v float64) []byte { return strconv.AppendFloat(out, v, 'g', -1, 64) }

// UnmarshalJSON reads what MarshalJSON wrote, bit for bit. What cannot be a bucket is an error, and b is then
// unchanged; whether it fits a ring is for RestoreRing to say.
func (b *Bucket) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var w struct {
		Values []*float64  `json:"values"`
		Stats  [][]float64 `json:"stats"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read bucket: %w", err)
	}
	if len(w.Values) != len(w.Stats) || len(w.Values) > MaxWidth {
		return fmt.Errorf("read bucket: %d values and %d stats", len(w.Values), len(w.Stats))
	}
	read := Bucket{Values: make([]float64, len(w.Values)), Stats: make([]Stat, len(w.Values))}
	var before Stat
	for i, v := range w.Values {
		read.Values[i] = math.NaN()
		if v != nil {
			read.Values[i] = *v
		}
		st, err := statOf(w.Stats[i], read.Values[i], before)
		if err != nil {
			return fmt.Errorf("read bucket: column %d: %w", i, err)
		}
		read.Stats[i] = st
		if st.Count > 0 {
			before = st
		}
	}
	*b = read
	return nil
}

// statOf is the inverse of appendJSON; nil fields stand for null.
func statOf(fields []float64, value float64, before Stat) (Stat, error) {
	if fields == nil {
		return empty(), nil
	}
	var st Stat
	switch len(fields) {
	case 0:
		st.Add(value, before.Weight)
	case 1:
		st.Add(value, fields[0])
	case 3:
		st = Stat{Min: fields[0], Max: fields[1], Sum: fields[2], Weight: before.Weight, Count: before.Count}
	case 5:
		count := fields[4]
		if !(count >= 1 && count <= countLimit) || count != math.Trunc(count) {
			return st, fmt.Errorf("count %v is out of range", count)
		}
		st = Stat{Min: fields[0], Max: fields[1], Sum: fields[2], Weight: fields[3], Count: int64(count)}
	default:
		return st, fmt.Errorf("a stat of %d numbers", len(fields))
	}
	if st.Count == 0 {
		return st, errors.New("a stat of nothing")
	}
	return st, st.check()
}
