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

// A slow and simple reader of reports, with only encoding/json, for comparison.

type streamSlowReport struct {
	Schema string
	Run    reporter.Run
	Nodes  map[string]*streamSlowNode
}

type streamSlowNode struct {
	reporter.Node
	Samples  streamSlowSamples                                     `json:"samples"`
	Envelope map[string]struct{ Min, Mean, Max streamSlowNumbers } `json:"envelope"`
}

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

// streamSlowly reads a perfagent report. It does not notice duplicate keys.
func streamSlowly(data []byte) (*reporter.Report, error) {
	var slow streamSlowReport
	if err := json.Unmarshal(data, &slow); err != nil {
		return nil, err
	}
	if err := reporter.CheckSchema(slow.Schema, reporter.Schema); err != nil {
		return nil, err
	}
	if len(slow.Nodes) == 0 {
		return nil, errors.New("no nodes")
	}
	r := &reporter.Report{Schema: slow.Schema, Run: slow.Run, Nodes: make(map[string]*reporter.Node)}
	for name, n := range slow.Nodes {
		if i, err := strconv.ParseUint(name, 10, 31); n == nil || err != nil || strconv.FormatUint(i, 10) != name {
			return nil, fmt.Errorf("not a node: %q", name)
		}
		node := n.Node
		node.Samples = n.Samples.Samples
		if n.Envelope != nil {
			node.Envelope = make(reporter.Envelope)
		}
		for key, b := range n.Envelope {
			if rows := node.Samples.Len(); len(b.Min) != rows || len(b.Mean) != rows || len(b.Max) != rows {
				return nil, errors.New("an envelope of another length")
			}
			node.Envelope[key] = reporter.Band{Min: reporter.Numbers(b.Min), Mean: reporter.Numbers(b.Mean), Max: reporter.Numbers(b.Max)}
		}
		if node.Missing == nil {
			node.Missing = []reporter.Missing{}
		}
		r.Nodes[name] = &node
	}
	return r, nil
}

// streamDoubtful reports whether JSON has duplicate keys, ignoring case; the product's reader refuses some of them.
func streamDoubtful(data []byte) bool {
	return !jsontext.Value(bytes.ToLower(data)).IsValid(jsontext.AllowInvalidUTF8(true))
}
