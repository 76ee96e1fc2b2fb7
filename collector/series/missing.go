package series

// A Missing is something that could not be measured: a metric, a key of the samples, a source, or a
// word for what it is.
type Missing struct {
	What string `json:"what"`
	// Code is the kind of the reason, for programs; "" is unknown.
	Code ReasonCode `json:"code,omitempty"`
	Why  string     `json:"why"`
	// Count is how many are missing (readings, lines, devices) and Of out of how many; 0 if the
	// reason counts nothing.
	Count int64 `json:"count,omitzero"`
	Total int64 `json:"of,omitzero"`
}

// A ReasonCode names a kind of reason for which something is missing. It never changes.
type ReasonCode string
