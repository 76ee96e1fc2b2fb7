package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
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
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.New("samples are not a list")
	}
	*s = Samples{}
	for row := 0; dec.More(); row++ {
		if err := s.readRow(dec, row); err != nil {
			return fmt.Errorf("sample %d: %w", row+1, err)
		}
		if s.cells() > len(data)+1<<12 {
			return errMostlyEmpty
		}
	}
	return nil
}

// errMostlyEmpty is for a file that would take many times its size in memory:
// every value of a real one takes at least a byte of it.
var errMostlyEmpty = errors.New("the samples are mostly empty")

// cells is how many values the columns hold, absent ones included.
func (s *Samples) cells() int { return s.Len() * len(s.Keys) }

func (s *Samples) readRow(dec *json.Decoder, row int) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not an object")
	}
	for i := range s.Columns {
		s.Columns[i] = append(s.Columns[i], math.NaN())
	}
	for hint := 0; dec.More(); hint++ {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key := t.(string)
		value, err := dec.Token()
		if err != nil {
			return err
		}
		v, ok := value.(float64)
		if value == nil { // null: not measured
			continue
		}
		if !ok {
			return fmt.Errorf("%q is not a number", key)
		}
		s.column(key, hint, row+1)[row] = v
	}
	_, err := dec.Token()
	return err
}

// maxSampleKeys bounds the columns that a hostile file can ask for.
const maxSampleKeys = 256

// column finds or makes the column of a key, at least n long.
func (s *Samples) column(key string, hint, n int) []float64 {
	if hint < len(s.Keys) && s.Keys[hint] == key {
		return s.Columns[hint]
	}
	if i := slices.Index(s.Keys, key); i >= 0 {
		return s.Columns[i]
	}
	fresh := make([]float64, n)
	for i := range fresh {
		fresh[i] = math.NaN()
	}
	if len(s.Keys) >= maxSampleKeys {
		return fresh
	}
	s.Keys = append(s.Keys, key)
	s.Columns = append(s.Columns, fresh)
	return fresh
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
	for c := range collector.NumColumns {
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
	var list []*float64
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*n = make(Numbers, len(list))
	for i, p := range list {
		(*n)[i] = math.NaN()
		if p != nil {
			(*n)[i] = *p
		}
	}
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
