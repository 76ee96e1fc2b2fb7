package reporter

import (
	"bytes"
	"math"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plainjson"
)

// Samples are the kept samples, one column per key. In JSON they are perf.py's
// list of objects; a value that was not measured (NaN here) is left out there.
type Samples struct {
	Keys    []string
	Columns [][]float64 // all of one length
}

// Len returns the number of samples.
func (s Samples) Len() int {
	if len(s.Columns) == 0 {
		return 0
	}
	return len(s.Columns[0])
}

// Column returns the values of a key; nil when no sample has it.
func (s Samples) Column(key string) []float64 {
	if i := slices.Index(s.Keys, key); i >= 0 {
		return s.Columns[i]
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (s Samples) MarshalJSON() ([]byte, error) { return compact(s) }

func (s Samples) writeJSON(w *plainjson.Writer) {
	w.Open('[')
	for row := range s.Len() {
		w.Item()
		w.Open('{')
		for i, key := range s.Keys {
			if v := s.Columns[i][row]; !math.IsNaN(v) {
				w.Key(key)
				w.Out = plainjson.AppendFloat(w.Out, v)
			}
		}
		w.Shut('}')
	}
	w.Shut(']')
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Samples) UnmarshalJSON(data []byte) error {
	_, err := s.read(newReader(bytes.NewBuffer(data)), Wanted{All: true})
	return err
}

// Envelope gives for each key the least, mean and greatest value of what each
// kept sample stands for.
type Envelope map[string]Band

// MarshalJSON implements json.Marshaler: keys in the order of the columns.
func (e Envelope) MarshalJSON() ([]byte, error) { return compact(e) }

func (e Envelope) writeJSON(w *plainjson.Writer) {
	w.Open('{')
	for _, key := range e.keys() {
		band := e[key]
		band.writeJSON(w.Key(key))
	}
	w.Shut('}')
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
func (n Numbers) MarshalJSON() ([]byte, error) { return compact(n) }

func (n Numbers) writeJSON(w *plainjson.Writer) { w.Out = plainjson.AppendFloats(w.Out, n) }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Numbers) UnmarshalJSON(data []byte) error {
	list, err := readNumbers(newReader(bytes.NewBuffer(data)))
	if err != nil {
		return err
	}
	*n = list
	return nil
}
