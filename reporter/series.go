package reporter

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plainjson"
	"github.com/perfagent/perfagent/internal/text"
)

// Samples are the kept samples, one column per key. In JSON they are perf.py's
// list of objects; a value that was not measured (NaN here) is left out there.
type Samples struct {
	Keys    []string
	Columns [][]float64 // all of one length
}

// Len is the number of samples.
func (s Samples) Len() int {
	if len(s.Columns) == 0 {
		return 0
	}
	return len(s.Columns[0])
}

// Column gives the values of a key; nil when no sample has it.
func (s Samples) Column(key string) []float64 {
	if i := slices.Index(s.Keys, key); i >= 0 {
		return s.Columns[i]
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (s Samples) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for row := range s.Len() {
		if row > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')
		first := true
		for i, key := range s.Keys {
			v := s.Columns[i][row]
			if math.IsNaN(v) {
				continue
			}
			if !first {
				out = append(out, ',')
			}
			first = false
			out = plainjson.AppendString(out, key)
			out = append(out, ':')
			out = plainjson.AppendFloat(out, v)
		}
		out = append(out, '}')
	}
	return append(out, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Samples) UnmarshalJSON(data []byte) error {
	_, err := s.read(&cursor{data: data}, Wanted{All: true})
	return err
}

// errMostlyEmpty is for a file that would take many times its size in memory:
// every value of a real one takes at least a byte of it.
var errMostlyEmpty = errors.New("the samples are mostly empty")

// cells is how many values the columns hold, absent ones included.
func (s *Samples) cells() int { return s.Len() * len(s.Keys) }

// read reads the wanted columns of the list of samples that comes next. It gives the
// number of samples; 0 when no column, wanted or not, has a value in any of them.
func (s *Samples) read(c *cursor, wanted Wanted) (rows int, err error) {
	if !c.enter('[') {
		return 0, errors.New("samples are not a list")
	}
	*s = Samples{}
	r := rowReader{cursor: c, samples: s, wanted: wanted}
	for c.more(']') {
		if err := r.row(rows); err != nil {
			return 0, fmt.Errorf("sample %d: %w", rows+1, err)
		}
		if rows++; s.cells() > len(c.data)+1<<12 {
			return 0, errMostlyEmpty
		}
	}
	if !r.measured {
		return 0, nil
	}
	return rows, nil
}

// rowReader reads samples one by one.
type rowReader struct {
	*cursor
	samples *Samples
	wanted  Wanted
	// keys are those of the sample before with their columns: mostly the next one has
	// the same in the same order.
	keys     []knownKey
	measured bool // any value was seen
}

// knownKey is a key in its quotes and its column in Samples; -1 = not kept.
type knownKey struct {
	quoted []byte
	column int
}

func (r *rowReader) row(row int) error {
	if !r.enter('{') {
		return errors.New("not an object")
	}
	for i, column := range r.samples.Columns {
		r.samples.Columns[i] = append(column, math.NaN())
	}
	for position := 0; r.more('}'); position++ {
		quoted := r.key()
		switch b := r.peek(); {
		case b == 'n': // null: not measured
			r.skip()
			continue
		case !numeric(b):
			return fmt.Errorf("%q is not a number", text.Printable(text.Clip(unquote(quoted), 40)))
		}
		r.measured = true
		column := r.column(quoted, position, row)
		if column < 0 {
			r.skip()
			continue
		}
		v, err := r.number()
		if err != nil {
			return err
		}
		r.samples.Columns[column][row] = v
	}
	return nil
}

// maxSampleKeys bounds the columns that a hostile file can ask for.
const maxSampleKeys = 256

// column finds or makes the column of a key that stands at a position in its row.
func (r *rowReader) column(quoted []byte, position, row int) int {
	if position < len(r.keys) && bytes.Equal(r.keys[position].quoted, quoted) {
		return r.keys[position].column
	}
	known := knownKey{quoted, r.samples.column(unquote(quoted), row+1, r.wanted)}
	switch {
	case position < len(r.keys):
		r.keys[position] = known
	case position == len(r.keys) && position < maxSampleKeys:
		r.keys = append(r.keys, known)
	}
	return known.column
}

// column finds or makes the column of a key, at least n long; -1 if it is not kept.
func (s *Samples) column(key string, n int, wanted Wanted) int {
	if i := slices.Index(s.Keys, key); i >= 0 || !wanted.sample(key) || len(s.Keys) >= maxSampleKeys {
		return i
	}
	fresh := make([]float64, n)
	for i := range fresh {
		fresh[i] = math.NaN()
	}
	s.Keys = append(s.Keys, key)
	s.Columns = append(s.Columns, fresh)
	return len(s.Keys) - 1
}

// Envelope gives for each key the least, mean and greatest value of what each
// kept sample stands for.
type Envelope map[string]Band

// Band is one key's envelope; NaN (null in JSON) = not measured.
type Band struct {
	Min  Numbers `json:"min"`
	Mean Numbers `json:"mean"`
	Max  Numbers `json:"max"`
}

// read reads the wanted bands of the envelope that comes next.
func (e *Envelope) read(c *cursor, wanted Wanted) error {
	switch c.peek() {
	case 'n':
		c.skip()
		*e = nil
		return nil
	case '{':
	default:
		return errors.New("the envelope is not an object")
	}
	if *e == nil {
		*e = Envelope{}
	}
	for c.at++; c.more('}'); {
		key := unquote(c.key())
		if !wanted.band(key) {
			c.skip()
			continue
		}
		band, err := c.band()
		if err != nil {
			return fmt.Errorf("envelope of %q: %w", text.Printable(text.Clip(key, 40)), err)
		}
		(*e)[key] = band
	}
	return nil
}

// MarshalJSON implements json.Marshaler: keys in the order of the columns.
func (e Envelope) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, key := range e.keys() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = plainjson.AppendString(out, key)
		out = append(out, `:{"min":`...)
		out = plainjson.AppendFloats(out, e[key].Min)
		out = append(out, `,"mean":`...)
		out = plainjson.AppendFloats(out, e[key].Mean)
		out = append(out, `,"max":`...)
		out = plainjson.AppendFloats(out, e[key].Max)
		out = append(out, '}')
	}
	return append(out, '}'), nil
}

func (e Envelope) keys() []string {
	var keys []string
	for c := range collector.Column(collector.MaxColumns) {
		if _, ok := e[c.Key()]; ok {
			keys = append(keys, c.Key())
		}
	}
	known := len(keys)
	for key := range e {
		if _, ok := collector.ColumnNamed(key); !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys[known:])
	return keys
}

// Numbers is a list in which NaN is null.
type Numbers []float64

// MarshalJSON implements json.Marshaler.
func (n Numbers) MarshalJSON() ([]byte, error) { return plainjson.AppendFloats(nil, n), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Numbers) UnmarshalJSON(data []byte) error {
	c := cursor{data: data}
	list, err := c.numbers()
	if err != nil {
		return err
	}
	*n = list
	return nil
}
