package series

// A Missing describes something that could not be measured. What names it: a metric, a key of the samples, or a source,
// for example.
type Missing struct {
	What string `json:"what"`
	// Code identifies the kind of reason, for programs that read the report; "" means unknown.
	Code ReasonCode `json:"code,omitempty"`
	Why  string     `json:"why"`
	// Count is the number of missing readings, lines or devices, out of Total; 0 if the reason has no count.
	Count int64 `json:"count,omitzero"`
	Total int64 `json:"of,omitzero"`
}

// A ReasonCode names a kind of reason for missing data. Codes never change.
type ReasonCode string
