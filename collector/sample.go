package collector

import "math"

// MiB is the unit behind every name that ends in _mb: 2^20 bytes, as in perf.py.
const MiB = 1 << 20

// Column numbers the values of a Sample.
type Column int

// The columns: perf.py's eleven values in its order and its timestamp, what later
// came to the samples, and the rate of each byte counter.
const (
	CPUAvg Column = iota
	CPUMin
	CPUMax
	MemPercent
	DiskPercent
	DiskRead
	DiskWrite
	NetLoSent
	NetExtSent
	NetLoRecv
	NetExtRecv
	Timestamp
	MemUsed
	DiskUsed
	DiskFree
	DiskReadRate
	DiskWriteRate
	NetLoSentRate
	NetExtSentRate
	NetLoRecvRate
	NetExtRecvRate
	NumColumns
)

// NumSampleKeys is how many of the columns stand in a report's samples; the
// others (rates) are only in the envelope.
const NumSampleKeys = int(DiskFree) + 1

// NumPerfPyKeys is how many of the columns perf.py has.
const NumPerfPyKeys = int(Timestamp) + 1

// columnInfo describes a Column.
type columnInfo struct {
	key, unit, source string
}

// columnTable names every column once: its key in JSON, its unit and its source.
var columnTable = [NumColumns]columnInfo{
	CPUAvg:         {"cpu_pct_per_cpu_avg", "percent", SourceCPU},
	CPUMin:         {"cpu_pct_per_cpu_min", "percent", SourceCPU},
	CPUMax:         {"cpu_pct_per_cpu_max", "percent", SourceCPU},
	MemPercent:     {"mem_percent", "percent", SourceMemory},
	DiskPercent:    {"disk_usage_percent", "percent", SourceDisk},
	DiskRead:       {"disk_io_read_mb", "MiB", SourceDiskIO},
	DiskWrite:      {"disk_io_write_mb", "MiB", SourceDiskIO},
	NetLoSent:      {"net_io_lo_sent_mb", "MiB", SourceNetwork},
	NetExtSent:     {"net_io_ext_sent_mb", "MiB", SourceNetwork},
	NetLoRecv:      {"net_io_lo_recv_mb", "MiB", SourceNetwork},
	NetExtRecv:     {"net_io_ext_recv_mb", "MiB", SourceNetwork},
	Timestamp:      {"timestamp", "seconds since 1970-01-01 UTC", "clock"},
	MemUsed:        {"mem_used_mb", "MiB", SourceMemory},
	DiskUsed:       {"disk_used_mb", "MiB", SourceDisk},
	DiskFree:       {"disk_free_mb", "MiB", SourceDisk},
	DiskReadRate:   {"disk_io_read_mb_per_second", "MiB/s", SourceDiskIO},
	DiskWriteRate:  {"disk_io_write_mb_per_second", "MiB/s", SourceDiskIO},
	NetLoSentRate:  {"net_io_lo_sent_mb_per_second", "MiB/s", SourceNetwork},
	NetExtSentRate: {"net_io_ext_sent_mb_per_second", "MiB/s", SourceNetwork},
	NetLoRecvRate:  {"net_io_lo_recv_mb_per_second", "MiB/s", SourceNetwork},
	NetExtRecvRate: {"net_io_ext_recv_mb_per_second", "MiB/s", SourceNetwork},
}

// Key is the column's name in samples and envelope.
func (c Column) Key() string { return columnTable[c].key }

// Unit is the column's unit.
func (c Column) Unit() string { return columnTable[c].unit }

// Source is the source that the column is read from.
func (c Column) Source() string { return columnTable[c].source }

// Percent tells whether the column lies in 0..100.
func (c Column) Percent() bool { return columnTable[c].unit == "percent" }

// ColumnNamed finds a column by its key.
func ColumnNamed(key string) (Column, bool) {
	for c, info := range columnTable {
		if info.key == key {
			return Column(c), true
		}
	}
	return 0, false
}

// Sample is one row of the series.
type Sample struct {
	// Values by Column; NaN = not measured.
	Values [NumColumns]float64
	// Weights are the seconds that each value stands for: the length of the
	// window that it was measured over.
	Weights [NumColumns]float64
}

// Has tells whether a column was measured.
func (s *Sample) Has(c Column) bool { return !math.IsNaN(s.Values[c]) }
