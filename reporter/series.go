package reporter

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
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
			out = appendKey(out, key)
			out = append(out, ':')
			out = appendNumber(out, v)
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
		out = appendKey(out, key)
		out = append(out, `:{"min":`...)
		out = e[key].Min.append(out)
		out = append(out, `,"mean":`...)
		out = e[key].Mean.append(out)
		out = append(out, `,"max":`...)
		out = e[key].Max.append(out)
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
func (n Numbers) MarshalJSON() ([]byte, error) { return n.append(nil), nil }

func (n Numbers) append(out []byte) []byte {
	out = append(out, '[')
	for i, v := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendNumber(out, v)
	}
	return append(out, ']')
}

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

// appendNumber writes a number as shortly as it can be read back; what is not
// finite becomes null: JSON has no word for it.
func appendNumber(out []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(out, "null"...)
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(out, v, format, -1, 64)
}

// appendKey writes the key of an object. strconv.Quote alone will not do: JSON
// knows no \x1b. Every key of ours takes the short way.
func appendKey(out []byte, key string) []byte {
	if strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
		return append(append(append(out, '"'), key...), '"')
	}
	quoted, err := marshal(key)
	if err != nil { // no text fails
		return append(out, `""`...)
	}
	return append(out, quoted...)
}

// rounded keeps n decimals.
func rounded(v float64, n int) float64 {
	p := math.Pow10(n)
	if r := math.Round(v*p) / p; !math.IsInf(r, 0) {
		return r
	}
	return v
}
