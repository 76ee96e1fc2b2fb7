package reporter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/reporter"
)

// Slow and simple readers that use only encoding/json, for comparison. FuzzSeries compares the readers of series.

type streamSlowSamples struct{ reporter.Samples }

func (s *streamSlowSamples) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.New("not a list")
	}
	s.Samples = reporter.Samples{}
	for row := 0; dec.More(); row++ {
		if t, err := dec.Token(); err != nil || t != json.Delim('{') {
			return errors.New("not an object")
		}
		for i := range s.Columns {
			s.Columns[i] = append(s.Columns[i], math.NaN())
		}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			value, err := dec.Token()
			if err != nil {
				return err
			}
			if value == nil {
				continue
			}
			v, ok := value.(float64)
			if !ok {
				return errors.New("not a number")
			}
			i := slices.Index(s.Keys, key.(string))
			if i < 0 {
				if len(s.Keys) == reporter.MaxSampleKeys {
					continue
				}
				i = len(s.Keys)
				s.Keys = append(s.Keys, key.(string))
				s.Columns = append(s.Columns, slices.Repeat([]float64{math.NaN()}, row+1))
			}
			s.Columns[i][row] = v
		}
		if _, err := dec.Token(); err != nil {
			return err
		}
	}
	return nil
}

type streamSlowNumbers []float64

func (n *streamSlowNumbers) UnmarshalJSON(data []byte) error {
	var list []*float64
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*n = make(streamSlowNumbers, len(list))
	for i, p := range list {
		(*n)[i] = math.NaN()
		if p != nil {
			(*n)[i] = *p
		}
	}
	return nil
}

// streamSlowly reads a perfagent report. It does not detect duplicate keys.
func streamSlowly(data []byte) (*reporter.Report, error) {
	r := new(reporter.Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if err := reporter.CheckSchema(r.Schema, reporter.Schema); err != nil {
		return nil, err
	}
	if len(r.Nodes) == 0 {
		return nil, errors.New("no nodes")
	}
	for name, n := range r.Nodes {
		if i, err := strconv.ParseUint(name, 10, 31); n == nil || err != nil || strconv.FormatUint(i, 10) != name {
			return nil, fmt.Errorf("not a node: %q", name)
		}
		for _, b := range n.Envelope {
			if rows := n.Samples.Len(); len(b.Min) != rows || len(b.Mean) != rows || len(b.Max) != rows {
				return nil, errors.New("an envelope of another length")
			}
		}
		if n.Missing == nil {
			n.Missing = []reporter.Missing{}
		}
	}
	return r, nil
}

// streamDoubtful reports whether JSON has duplicate keys, ignoring case. The product's reader rejects some of them.
func streamDoubtful(data []byte) bool {
	return !jsontext.Value(bytes.ToLower(data)).IsValid(jsontext.AllowInvalidUTF8(true))
}
