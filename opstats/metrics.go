package opstats

import (
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"
)

// Metrics are the numbers of one key or of one program, by name. It is the class Metrics of ProxyStore, and its JSON
// is what that class's as_dict returns.
type Metrics struct {
	Attributes map[string]any       `json:"attributes"` // the last value: a string, a float64 or a bool
	Counters   map[string]float64   `json:"counters"`   // sums
	Times      map[string]TimeStats `json:"times"`
}

// StoreMetrics are the numbers of a Store as ProxyStore has it, under the names of its class StoreMetrics.
type StoreMetrics struct {
	// Over all objects; of an attribute the last value.
	Attributes map[string]any       `json:"attributes"`
	Counters   map[string]float64   `json:"counters"`
	Times      map[string]TimeStats `json:"times"` // milliseconds

	Keys map[string]Metrics `json:"keys"` // of each object, by its key in the store
}

// Clone returns an independent copy.
func (m Metrics) Clone() Metrics {
	return Metrics{maps.Clone(m.Attributes), maps.Clone(m.Counters), maps.Clone(m.Times)}
}

// UnmarshalJSON reads the JSON of a Metrics. Any of the three parts may be missing, and times without an observation
// are left out. What no Metrics can have is an error: an attribute that is a list, an object or null, a number out of
// range. Unknown keys are ignored.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	type plain Metrics // without this method
	return readJSON("metrics", data, m, func(read plain) (Metrics, error) {
		for name, value := range read.Attributes {
			if _, err := attribute(value); err != nil {
				return Metrics{}, fmt.Errorf("attribute %q is no text, number, true or false", name)
			}
		}
		for name, value := range read.Counters {
			if !(value >= -sumLimit && value <= sumLimit) {
				return Metrics{}, fmt.Errorf("counter %q is out of range", name)
			}
		}
		maps.DeleteFunc(read.Times, func(_ string, s TimeStats) bool { return s.Empty() })
		return Metrics(read), nil
	})
}

// attribute checks the value of an attribute and returns it with a copy of its text.
func attribute(value any) (any, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case float64:
		if !inRange(v) {
			return nil, ErrNotFinite
		}
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, ErrMalformed
		}
		return strings.Clone(v), nil
	}

	return nil, ErrMalformed
}
