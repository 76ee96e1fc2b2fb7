package series

import (
	"encoding/json"
	"math"
)

// An Optional is a number that may be unknown: NaN in memory, null in JSON.
type Optional float64

// Unknown returns an unknown Optional.
func Unknown() Optional { return Optional(math.NaN()) }

// Known reports whether o holds a number.
func (o Optional) Known() bool { return !math.IsNaN(float64(o)) }

// IsZero reports whether o is unknown or 0, so that the tag omitzero omits it from JSON. Only fields that cannot be 0
// have this tag.
func (o Optional) IsZero() bool { return !o.Known() || o == 0 }

// MarshalJSON implements [json.Marshaler]. Infinities have no JSON form and are written as null, too.
func (o Optional) MarshalJSON() ([]byte, error) {
	if !o.Known() || math.IsInf(float64(o), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(o))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Optional) UnmarshalJSON(data []byte) error {
	*o = Unknown()
	if string(data) == "null" {
		return nil
	}
	return json.Unmarshal(data, (*float64)(o))
}
