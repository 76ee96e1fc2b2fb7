package collector

import (
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector/host"
)

// MiB is the unit of every name that ends in _mb: 2^20 bytes, as in perf.py.
const MiB = 1 << 20

// A Column is the index of a value of a Sample.
type Column int

// The columns: perf.py's eleven values in its order and its timestamp; what was added to the
// samples since, and the rate of each byte counter; then what the job itself used and how the host
// was. After the last come those of the GPUs: see GPUColumn.
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
	JobCPU
	JobMemory
	JobProcesses
	JobThreads
	JobRead
	JobWrite
	JobReadRate
	JobWriteRate
	JobPageCache
	JobThrottled
	LimitMemory
	LimitMemoryPercent
	CPUIowait
	CPUSteal
	Load1
	ProcsRunning
	SwapIn
	SwapOut
	SwapInRate
	SwapOutRate
	PSICPUSome
	PSIMemorySome
	PSIMemoryFull
	PSIIOSome
	PSIIOFull
	JobPSICPUSome
	JobPSICPUFull
	JobPSIMemorySome
	JobPSIMemoryFull
	JobPSIIOSome
	JobPSIIOFull
	NumColumns
)

// NumPerfPyKeys is how many of the columns perf.py has.
const NumPerfPyKeys = int(Timestamp) + 1

// The columns of GPUs follow the others, the same number for each device.
const (
	// MaxGPUs is how many devices of a node are recorded.
	MaxGPUs = 16
	// NumGPUKeys is how many columns a device has.
	NumGPUKeys = int(numGPUKeys)
	// MaxColumns is how many columns there can be.
	MaxColumns = int(NumColumns) + MaxGPUs*NumGPUKeys
)

// A GPUKey is the index of a value of one GPU.
type GPUKey int

// The values of a GPU. Utilization is the share of the time in which any kernel ran on it; it does
// not tell how much of the device was used.
const (
	GPUUtilization GPUKey = iota
	GPUMemoryUsed
	GPUPower
	GPUTemperature
	numGPUKeys
)

// GPUColumn returns the column of a device's value. device is 0 to MaxGPUs-1 in the order of
// Recording.GPUs, and the number in the key: gpu_3_power_watts.
func GPUColumn(device int, k GPUKey) Column {
	return NumColumns + Column(device*NumGPUKeys) + Column(k)
}

// GPU returns the device and the value that a column belongs to. It reports false for columns of no
// GPU.
func (c Column) GPU() (device int, k GPUKey, ok bool) {
	if c < NumColumns {
		return 0, 0, false
	}
	at := int(c - NumColumns)
	return at / NumGPUKeys, GPUKey(at % NumGPUKeys), true
}

// columnInfo describes a Column.
type columnInfo struct {
	key, unit, source string
	// envelopeOnly columns (rates, pressure) are not in a report's samples.
	envelopeOnly bool
}

// columnTable defines each column once: its key in JSON, its unit and its source.
var columnTable = [NumColumns]columnInfo{
	CPUAvg:             {"cpu_pct_per_cpu_avg", "percent", host.SourceCPU, false},
	CPUMin:             {"cpu_pct_per_cpu_min", "percent", host.SourceCPU, false},
	CPUMax:             {"cpu_pct_per_cpu_max", "percent", host.SourceCPU, false},
	MemPercent:         {"mem_percent", "percent", host.SourceMemory, false},
	DiskPercent:        {"disk_usage_percent", "percent", host.SourceDisk, false},
	DiskRead:           {"disk_io_read_mb", "MiB", host.SourceDiskIO, false},
	DiskWrite:          {"disk_io_write_mb", "MiB", host.SourceDiskIO, false},
	NetLoSent:          {"net_io_lo_sent_mb", "MiB", host.SourceNetwork, false},
	NetExtSent:         {"net_io_ext_sent_mb", "MiB", host.SourceNetwork, false},
	NetLoRecv:          {"net_io_lo_recv_mb", "MiB", host.SourceNetwork, false},
	NetExtRecv:         {"net_io_ext_recv_mb", "MiB", host.SourceNetwork, false},
	Timestamp:          {"timestamp", "seconds since 1970-01-01 UTC", "clock", false},
	MemUsed:            {"mem_used_mb", "MiB", host.SourceMemory, false},
	DiskUsed:           {"disk_used_mb", "MiB", host.SourceDisk, false},
	DiskFree:           {"disk_free_mb", "MiB", host.SourceDisk, false},
	DiskReadRate:       {"disk_io_read_mb_per_second", "MiB/s", host.SourceDiskIO, true},
	DiskWriteRate:      {"disk_io_write_mb_per_second", "MiB/s", host.SourceDiskIO, true},
	NetLoSentRate:      {"net_io_lo_sent_mb_per_second", "MiB/s", host.SourceNetwork, true},
	NetExtSentRate:     {"net_io_ext_sent_mb_per_second", "MiB/s", host.SourceNetwork, true},
	NetLoRecvRate:      {"net_io_lo_recv_mb_per_second", "MiB/s", host.SourceNetwork, true},
	NetExtRecvRate:     {"net_io_ext_recv_mb_per_second", "MiB/s", host.SourceNetwork, true},
	JobCPU:             {"job_cpu_cores", "CPUs", host.SourceJob, false},
	JobMemory:          {"job_memory_mb", "MiB", host.SourceJob, false},
	JobProcesses:       {"job_processes", "processes", host.SourceJob, false},
	JobThreads:         {"job_threads", "threads", host.SourceJob, false},
	JobRead:            {"job_io_read_mb", "MiB", host.SourceJob, false},
	JobWrite:           {"job_io_write_mb", "MiB", host.SourceJob, false},
	JobReadRate:        {"job_io_read_mb_per_second", "MiB/s", host.SourceJob, true},
	JobWriteRate:       {"job_io_write_mb_per_second", "MiB/s", host.SourceJob, true},
	JobPageCache:       {"job_page_cache_mb", "MiB", host.SourceCgroup, false},
	JobThrottled:       {"job_throttled_pct", "percent", host.SourceCgroup, false},
	LimitMemory:        {"limit_memory_used_mb", "MiB", host.SourceCgroup, false},
	LimitMemoryPercent: {"limit_memory_pct", "percent", host.SourceCgroup, false},
	CPUIowait:          {"cpu_iowait_pct", "percent", host.SourceCPU, false},
	CPUSteal:           {"cpu_steal_pct", "percent", host.SourceCPU, false},
	Load1:              {"load_1m", "tasks", host.SourceLoad, false},
	ProcsRunning:       {"procs_running", "tasks", host.SourceLoad, false},
	SwapIn:             {"swap_in_mb", "MiB", host.SourceSwap, false},
	SwapOut:            {"swap_out_mb", "MiB", host.SourceSwap, false},
	SwapInRate:         {"swap_in_mb_per_second", "MiB/s", host.SourceSwap, true},
	SwapOutRate:        {"swap_out_mb_per_second", "MiB/s", host.SourceSwap, true},
	PSICPUSome:         {"psi_cpu_some_pct", "percent", host.SourcePressure, true},
	PSIMemorySome:      {"psi_memory_some_pct", "percent", host.SourcePressure, true},
	PSIMemoryFull:      {"psi_memory_full_pct", "percent", host.SourcePressure, true},
	PSIIOSome:          {"psi_io_some_pct", "percent", host.SourcePressure, true},
	PSIIOFull:          {"psi_io_full_pct", "percent", host.SourcePressure, true},
	JobPSICPUSome:      {"job_psi_cpu_some_pct", "percent", host.SourceCgroup, true},
	JobPSICPUFull:      {"job_psi_cpu_full_pct", "percent", host.SourceCgroup, true},
	JobPSIMemorySome:   {"job_psi_memory_some_pct", "percent", host.SourceCgroup, true},
	JobPSIMemoryFull:   {"job_psi_memory_full_pct", "percent", host.SourceCgroup, true},
	JobPSIIOSome:       {"job_psi_io_some_pct", "percent", host.SourceCgroup, true},
	JobPSIIOFull:       {"job_psi_io_full_pct", "percent", host.SourceCgroup, true},
}

// gpuTable defines the columns of a device; a key follows "gpu_3_".
var gpuTable = [numGPUKeys]columnInfo{
	GPUUtilization: {"utilization_pct", "percent", host.SourceGPU, false},
	GPUMemoryUsed:  {"memory_used_mb", "MiB", host.SourceGPU, false},
	GPUPower:       {"power_watts", "W", host.SourceGPU, false},
	GPUTemperature: {"temperature_celsius", "°C", host.SourceGPU, false},
}

// info returns the column's row of its table.
func (c Column) info() *columnInfo {
	if _, k, ok := c.GPU(); ok {
		return &gpuTable[k]
	}
	return &columnTable[c]
}

// Key returns the column's name in samples and envelope.
func (c Column) Key() string {
	if device, k, ok := c.GPU(); ok {
		return "gpu_" + strconv.Itoa(device) + "_" + gpuTable[k].key
	}
	return columnTable[c].key
}

// Unit returns the column's unit.
func (c Column) Unit() string { return c.info().unit }

// Source returns the source that the column is read from.
func (c Column) Source() string { return c.info().source }

// Percent reports whether the column lies in 0..100.
func (c Column) Percent() bool { return c.info().unit == "percent" }

// InSamples reports whether the column is in a report's samples. The others (rates, pressure) are
// in the envelope only.
func (c Column) InSamples() bool { return !c.info().envelopeOnly }

// ColumnNamed returns the column of a key.
func ColumnNamed(key string) (Column, bool) {
	if rest, ok := strings.CutPrefix(key, "gpu_"); ok {
		return gpuColumnNamed(rest)
	}
	for c := range columnTable {
		if columnTable[c].key == key {
			return Column(c), true
		}
	}
	return 0, false
}

func gpuColumnNamed(rest string) (Column, bool) {
	number, name, _ := strings.Cut(rest, "_")
	device, err := strconv.Atoi(number)
	if err != nil || device < 0 || device >= MaxGPUs || strconv.Itoa(device) != number {
		return 0, false
	}
	for k := range gpuTable {
		if gpuTable[k].key == name {
			return GPUColumn(device, GPUKey(k)), true
		}
	}
	return 0, false
}

// A Sample is one row of the series.
type Sample struct {
	// Values are the values by Column. NaN was not measured.
	Values [MaxColumns]float64
	// Weights are the seconds that each value stands for: the length of the window that it was
	// measured over.
	Weights [MaxColumns]float64
}

// Has reports whether a column was measured.
func (s *Sample) Has(c Column) bool { return !math.IsNaN(s.Values[c]) }
