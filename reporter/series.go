package reporter

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// Samples are the kept samples, one column per key. In JSON they are a list of objects as in
// perf.py's format, without the values that were not measured (NaN).
type Samples struct {
	Keys    []string
	Columns [][]float64 // all of the same length
}

// Len returns the number of samples.
func (s Samples) Len() int {
	if len(s.Columns) == 0 {
		return 0
	}
	return len(s.Columns[0])
}

// Column returns the values of a key; nil if no sample has it.
func (s Samples) Column(key string) []float64 {
	if i := slices.Index(s.Keys, key); i >= 0 {
		return s.Columns[i]
	}
	return nil
}

// only returns the columns that keep accepts.
func (s Samples) only(keep func(key string) bool) (out Samples) {
	for i, key := range s.Keys {
		if keep(key) {
			out.Keys, out.Columns = append(out.Keys, key), append(out.Columns, s.Columns[i])
		}
	}
	return out
}

// MarshalJSON implements json.Marshaler.
func (s Samples) MarshalJSON() ([]byte, error) { return text.JSON(s) }

// MarshalJSONTo implements json.MarshalerTo. It writes one sample at a time, because all samples may take a few MiB.
func (s Samples) MarshalJSONTo(to *jsontext.Encoder) error {
	err := to.WriteToken(jsontext.BeginArray)
	var sample []byte
	for row := range s.Len() {
		sample = append(sample[:0], '{')
		for i, key := range s.Keys {
			if v := s.Columns[i][row]; !math.IsNaN(v) {
				sample = text.AppendFloat(appendKey(sample, len(sample)-1, key), v)
			}
		}
		err = errors.Join(err, to.WriteValue(append(sample, '}')))
	}
	return errors.Join(err, to.WriteToken(jsontext.EndArray))
}

// appendKey appends the key of an object's member; n is 0 for the first one.
func appendKey(out []byte, n int, key string) []byte {
	if n > 0 {
		out = append(out, ',')
	}
	out, _ = jsontext.AppendQuote(out, key) // invalid UTF-8 is replaced
	return append(out, ':')
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Samples) UnmarshalJSON(data []byte) error {
	_, err := s.read(newReader(bytes.NewBuffer(data)), ColumnFilter{All: true})
	return err
}

// Envelope holds, for each key, the minimum, mean and maximum over the samples that each kept sample represents.
type Envelope map[string]Band

// MarshalJSON implements json.Marshaler. Keys are in the order of the columns.
func (e Envelope) MarshalJSON() ([]byte, error) { return text.JSON(e) }

// MarshalJSONTo implements json.MarshalerTo. It writes one band at a time, because all bands may take a few MiB.
func (e Envelope) MarshalJSONTo(to *jsontext.Encoder) error {
	err := to.WriteToken(jsontext.BeginObject)
	var band []byte
	for _, key := range e.keys() {
		b := e[key]
		band = text.AppendFloats(append(band[:0], `{"min":`...), b.Min)
		band = text.AppendFloats(append(band, `,"mean":`...), b.Mean)
		band = text.AppendFloats(append(band, `,"max":`...), b.Max)
		err = errors.Join(err, to.WriteToken(jsontext.String(key)), to.WriteValue(append(band, '}')))
	}
	return errors.Join(err, to.WriteToken(jsontext.EndObject))
}

func (e Envelope) keys() []string {
	return namesIn(e, func(yield func(string) bool) {
		for c := range collector.Column(collector.MaxColumns) {
			yield(c.Key())
		}
	})
}

// Numbers is a list of numbers, in which NaN is null in JSON.
type Numbers []float64

// MarshalJSON implements json.Marshaler.
func (n Numbers) MarshalJSON() ([]byte, error) { return text.AppendFloats(nil, n), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (n *Numbers) UnmarshalJSON(data []byte) error {
	return n.UnmarshalJSONFrom(newReader(bytes.NewBuffer(data)).Decoder)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. It makes no copy of the text.
func (n *Numbers) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	v, err := from.ReadValue()
	if err == nil {
		*n, err = readNumbers(v)
	}
	return err
}
