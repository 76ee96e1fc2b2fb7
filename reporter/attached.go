package reporter

import "encoding/json"

// MarshalJSON implements [json.Marshaler]: of a job that perfagent was attached to, it leaves out what
// only wait4(2) knows.
func (j Job) MarshalJSON() ([]byte, error) {
	type plain Job
	if !j.Attached {
		return json.Marshal(plain(j))
	}

	type absent = *struct{}
	return json.Marshal(struct {
		plain
		User       absent `json:"user_seconds,omitempty"`
		System     absent `json:"system_seconds,omitempty"`
		MaxRSS     absent `json:"max_rss_mb,omitempty"`
		BlockRead  absent `json:"block_read_mb,omitempty"`
		BlockWrite absent `json:"block_write_mb,omitempty"`
		Minor      absent `json:"minor_faults,omitempty"`
		Major      absent `json:"major_faults,omitempty"`
		Voluntary  absent `json:"voluntary_context_switches,omitempty"`
		Forced     absent `json:"involuntary_context_switches,omitempty"`
		Orphans    absent `json:"orphans,omitempty"`
	}{plain: plain(j)})
}
