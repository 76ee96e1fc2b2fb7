package host

import "github.com/perfagent/perfagent/collector/series"

// Memory is physical memory in bytes.
type Memory struct {
	Total uint64
	// Available is the memory that new processes could use without swapping: MemAvailable in /proc/meminfo.
	Available uint64
}

// Used returns the memory in use, total − available, like free(1) and, since version 7.1, psutil.
func (m Memory) Used() uint64 { return m.Total - min(m.Total, m.Available) }

// Percent returns psutil's percentage, (total − available) / total, rounded to one decimal.
func (m Memory) Percent() float64 {
	return series.Round1(float64(m.Used()) / float64(m.Total) * 100)
}
