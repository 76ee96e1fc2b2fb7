package reporter

import (
	"encoding/json"
	"fmt"
	"time"
)

// Time is a time in a report: RFC 3339 in UTC with microseconds.
type Time struct{ time.Time }

const timeFormat = "2006-01-02T15:04:05.000000Z"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+timeFormat+`"`), nil
}

// UnmarshalJSON implements json.Unmarshaler; any RFC 3339 time will do.
func (t *Time) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	parsed, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("time %q is not RFC 3339", s)
	}
	t.Time = parsed.UTC()
	return nil
}
