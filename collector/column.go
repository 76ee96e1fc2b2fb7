package collector

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
)

// A Column identifies one value of a Sample. [Column.Info] returns its description.
type Column int

// First come perf.py's eleven values, in its order, and its timestamp; then later additions to the samples, with the
// rate of each byte counter; then the usage of the job and the state of the host; then devices that not every host has.
// The columns of the GPUs follow: see GPUColumn.
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
	JobReadCalls
	JobWriteCalls
	JobReadCallsRate
	JobWriteCallsRate
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
	MajorFaults
	MajorFaultsRate
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
	JobMemorySwap
	JobMemoryAnon
	JobMemoryFile
	JobMemoryShmem
	JobMemoryKernel
	NetIBRecv
	NetIBSent
	NetIBRecvRate
	NetIBSentRate
	CPUTemperature
	CPUThrottleEvents
	CPUThrottleSeconds
	NodeEnergy
	NodePower
	NFSRead
	NFSWrite
	NFSReadRate
	NFSWriteRate
	LustreRead
	LustreWrite
	LustreReadRate
	LustreWriteRate
	NumColumns // number of columns, not counting those for GPUs
)

// NumPerfPyKeys is the number of perf.py's columns.
const NumPerfPyKeys = int(Timestamp) + 1

// The columns of GPUs follow all other columns. Each GPU has the same number of columns.
const (
	// MaxGPUs is the largest number of GPUs that are recorded for a node.
	MaxGPUs = 16
	// NumGPUKeys is the number of columns of a GPU.
	NumGPUKeys = int(numGPUKeys)
	// MaxColumns is the largest number of columns.
	MaxColumns = int(NumColumns) + MaxGPUs*NumGPUKeys
)

// A GPUKey is the index of a value of one GPU.
type GPUKey int

// The values of a GPU. Utilization is the share of time in which any kernel ran; it does not show how much of the
// device the kernels used.
const (
	GPUUtilization GPUKey = iota
	GPUMemoryUsed
	GPUPower
	GPUTemperature
	numGPUKeys
)

// GPUColumn returns the column for the value k of a device. device is an index into Recording.GPUs, from 0 to
// MaxGPUs-1, and part of the column's key: gpu_3_power_watts.
func GPUColumn(device int, k GPUKey) Column {
	return NumColumns + Column(device*NumGPUKeys) + Column(k)
}

// GPU returns the device and the value that the column belongs to. It reports false for a column that is not a GPU's.
func (c Column) GPU() (device int, k GPUKey, ok bool) {
	if c < NumColumns {
		return 0, 0, false
	}
	at := int(c - NumColumns)
	return at / NumGPUKeys, GPUKey(at % NumGPUKeys), true
}

// A ColumnInfo describes a column. It is the source of names and units for reports, charts, MLflow, /metrics,
// comparisons and merges.
type ColumnInfo struct {
	Key         string // in samples and envelope: "disk_io_read_mb"
	Unit        Unit
	Kind        Kind        // default: Share if Unit is Percent, else Gauge
	Aggregation Aggregation // over nodes; default: Mean if Unit is Percent, else Sum

	Origin

	// EnvelopeOnly reports whether the column is in a report's envelope and summaries but not in its samples. This applies
	// to pressures and to most rates.
	EnvelopeOnly bool
	// Bound is the limit of the column's values.
	Bound Bound

	Label string // description in words
	// TrafficGroup and Direction describe moved bytes: "network", "received". Short abbreviates both for narrow tables:
	// "net recv".
	TrafficGroup     TrafficGroup
	Direction, Short string
	// Rate is the column with a counter's rate; 0 = none. The rate's row is derived from the counter's row, unless the
	// table contains it. rateLabel is the Label of the rate if it differs from the counter's.
	Rate      Column
	rateLabel string

	// MLflow is the name of the column's time series; "" = none. In the table, the row of a counter holds the name for
	// its rate. MLflowPeak reports whether the peaks of windows are a series as well. MLflowShare is the name of the
	// series with the column's share of Bound; "" = none.
	MLflow      string
	MLflowPeak  bool
	MLflowShare string
	// Prometheus is the name in /metrics, without the prefix perfagent_; "" = none.
	Prometheus string

	// The source of the values. All fields are unset if the column needs more than one number of a Reading. devices
	// selects the devices that the column counts. vm and job return a number of the Reading, in bytes if Unit is
	// Mebibytes. stall returns the stalled seconds.
	devices deviceSelector
	vm      func(*host.VMStat) float64
	job     func(*host.JobUsage) float64
	stall   func(*cgroup.Pressure) float64
}

// An Origin holds the properties of columns that are read together.
type Origin struct {
	Source   string      // host.SourceCPU…
	Files    []string    // the files of the source that are needed; nil = all files
	Requires Requirement // preconditions for the columns to have values
	Scope    Scope
	// Always reports whether every report has the columns. Otherwise a report has them only if one of them was
	// measured.
	Always bool
	// Digits is the number of decimals in a thinned journal. Metrics come from the summaries, which keep all digits.
	Digits int
}

// A Unit is the unit of a number, as written in the table of metrics.
type Unit string

// The units of columns and metrics.
const (
	Percent            Unit = "percent"
	PercentOfTime      Unit = "percent of time"
	PercentOfPeriods   Unit = "percent of periods"
	Mebibytes          Unit = "MiB (2^20 bytes)"
	MebibytesPerSecond Unit = "MiB/s"
	UnixSeconds        Unit = "seconds since 1970-01-01 UTC"
	Seconds            Unit = "seconds"
	CPUs               Unit = "CPUs"
	CPUHours           Unit = "CPU hours"
	Processes          Unit = "processes"
	Threads            Unit = "threads"
	Tasks              Unit = "tasks"
	Watts              Unit = "W"
	Joules             Unit = "J"
	Celsius            Unit = "°C"
	Milliseconds       Unit = "ms"
	Times              Unit = "times"
)

// Symbol returns the unit as written after a number and in the heading of a column: "%", "MiB".
func (u Unit) Symbol() string {
	switch u {
	case Percent, PercentOfTime:
		return "%"
	case Mebibytes:
		return "MiB"
	case Seconds, UnixSeconds:
		return "s"
	case CPUHours:
		return "CPU·h"
	}
	return string(u)
}

// size returns the number of bytes, or other counted things, in one unit.
func (u Unit) size() float64 {
	if u == Mebibytes {
		return MiB
	}
	return 1
}

// A Kind is the behavior of a column over time.
type Kind int

// The kinds of columns.
const (
	Gauge   Kind = iota + 1 // a value at one moment
	Counter                 // a sum since the start
	Rate                    // the increase of a counter over a window, per second
	Share                   // a percentage of a whole or of a window
)

// An Aggregation is the way to combine the values of several nodes into one value of the run.
type Aggregation int

// The aggregations.
const (
	Sum Aggregation = iota + 1
	Max
	Mean
)

// A Scope is the entity that a column describes. Counters start at 0 when that entity is first measured.
type Scope int

// The scopes.
const (
	ScopeHost Scope = iota + 1
	ScopeJob
	ScopeDevice // a device that not every host has; its columns begin at its first sample
)

// A Requirement is a set of preconditions for a column to have values.
type Requirement uint

// The requirements.
const (
	RequiresTicks       Requirement = 1 << iota // a window of several ticks of the kernel's CPU clock
	RequiresJob                                 // a job
	RequiresGroup                               // a visible control group
	RequiresOwnGroup                            // a group that holds only the job and perfagent
	RequiresMemoryLimit                         // a control group that limits the memory
	RequiresQuota                               // a control group that limits the CPU time
	RequiresDevice                              // a device
)

// Has reports whether n contains all of o.
func (n Requirement) Has(o Requirement) bool { return n&o == o }

// A Bound is a value that a column cannot, or should not, exceed.
type Bound int

// The bounds. NoBound is for columns without a bound, and for percentages.
const (
	NoBound           Bound = iota
	BoundCPUs               // the CPUs that the job may use
	BoundMemory             // the memory that the job may use
	BoundDeviceMemory       // the memory of the GPU
	BoundDevicePower        // the power that the GPU may draw
)

// A TrafficGroup names counters that are shown together.
type TrafficGroup string

// The groups of moved bytes.
const (
	TrafficDisk     TrafficGroup = "disk"
	TrafficNetwork  TrafficGroup = "network"
	TrafficLoopback TrafficGroup = "loopback"

	TrafficInfiniBand TrafficGroup = "InfiniBand"
	TrafficNFS        TrafficGroup = "NFS"
	TrafficLustre     TrafficGroup = "Lustre"
)

// The origins of the columns.
var (
	ofCPU     = Origin{Source: host.SourceCPU, Requires: RequiresTicks, Scope: ScopeHost, Always: true, Digits: 6}
	ofMemory  = Origin{Source: host.SourceMemory, Scope: ScopeHost, Always: true, Digits: 6}
	ofDisk    = Origin{Source: host.SourceDisk, Scope: ScopeHost, Always: true, Digits: 6}
	ofDiskIO  = Origin{Source: host.SourceDiskIO, Scope: ScopeHost, Always: true, Digits: 6}
	ofNetwork = Origin{Source: host.SourceNetwork, Scope: ScopeHost, Always: true, Digits: 6}
	ofClock   = Origin{Source: "clock", Scope: ScopeHost, Always: true, Digits: 6}
	ofJobStat = Origin{Source: host.SourceJob, Files: []string{"stat"}, Requires: RequiresJob, Scope: ScopeJob,
		Digits: 3}
	ofJobMemory = Origin{Source: host.SourceJob, Files: []string{"memory"}, Requires: RequiresJob, Scope: ScopeJob,
		Digits: 3}
	ofJobIO     = Origin{Source: host.SourceJob, Files: []string{"io"}, Requires: RequiresJob, Scope: ScopeJob, Digits: 3}
	ofPageCache = ofGroup(RequiresOwnGroup, "memory.stat")
	ofQuota     = ofGroup(RequiresQuota, "cpu.stat", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")

	ofMemoryLimit = ofGroup(RequiresMemoryLimit,
		"memory.stat", "memory.current", "memory.max", "memory.usage_in_bytes", "memory.limit_in_bytes")

	ofCPUModes       = Origin{Source: host.SourceCPU, Requires: RequiresTicks, Scope: ScopeHost, Digits: 3}
	ofLoad           = Origin{Source: host.SourceLoad, Scope: ScopeHost, Digits: 3}
	ofSwap           = Origin{Source: host.SourceSwap, Scope: ScopeHost, Digits: 3}
	ofCPUPressure    = Origin{Source: host.SourcePressure, Files: []string{"cpu"}, Scope: ScopeHost, Digits: 3}
	ofMemoryPressure = Origin{Source: host.SourcePressure, Files: []string{"memory"}, Scope: ScopeHost, Digits: 3}
	ofIOPressure     = Origin{Source: host.SourcePressure, Files: []string{"io"}, Scope: ScopeHost, Digits: 3}

	ofJobCPUPressure    = ofGroup(RequiresOwnGroup, "cpu.pressure")
	ofJobMemoryPressure = ofGroup(RequiresOwnGroup, "memory.pressure")
	ofJobIOPressure     = ofGroup(RequiresOwnGroup, "io.pressure")

	ofInfiniBand = Origin{Source: host.SourceInfiniBand, Requires: RequiresDevice, Scope: ScopeDevice, Digits: 6}
	ofThermal    = Origin{Source: host.SourceThermal, Requires: RequiresDevice, Scope: ScopeDevice, Digits: 1}
	ofThrottles  = Origin{Source: host.SourceThermal, Requires: RequiresDevice, Scope: ScopeDevice, Digits: 3}
	ofEnergy     = Origin{Source: host.SourceEnergy, Requires: RequiresDevice, Scope: ScopeDevice, Digits: 3}
	ofNFS        = Origin{Source: host.SourceNFS, Requires: RequiresDevice, Scope: ScopeDevice, Digits: 6}
	ofLustre     = Origin{Source: host.SourceLustre, Requires: RequiresDevice, Scope: ScopeDevice, Digits: 6}
	ofGPU        = Origin{Source: host.SourceGPU, Requires: RequiresDevice, Scope: ScopeDevice, Digits: 1}
)

// ofGroup returns the origin of columns that need the given files of the job's control group. files are the names in v2
// and v1.
func ofGroup(needs Requirement, files ...string) Origin {
	return Origin{Source: host.SourceCgroup, Files: files, Requires: RequiresJob | RequiresGroup | needs,
		Scope: ScopeJob, Digits: 3}
}

// columnTable describes each column.
var columnTable = complete(columnLiterals[:])

var columnLiterals = [NumColumns]ColumnInfo{
	CPUAvg: {
		Key: "cpu_pct_per_cpu_avg", Unit: Percent, Origin: ofCPU,
		Label:  "mean utilization of the node's CPUs",
		MLflow: "cpu_utilization_percentage", MLflowPeak: true, Prometheus: "cpu_busy_ratio",
	},
	CPUMin: {
		Key: "cpu_pct_per_cpu_min", Unit: Percent, Origin: ofCPU,
		Label:  "utilization of the node's least busy CPU",
		MLflow: "cpu_utilization_percentage_least_busy", Prometheus: "cpu_least_busy_ratio",
	},
	CPUMax: {
		Key: "cpu_pct_per_cpu_max", Unit: Percent, Origin: ofCPU,
		Label:  "utilization of the node's busiest CPU",
		MLflow: "cpu_utilization_percentage_most_busy", Prometheus: "cpu_most_busy_ratio",
	},
	MemPercent: {
		Key: "mem_percent", Unit: Percent, Origin: ofMemory,
		Label:  "share of the node's memory in use: (total - available) / total",
		MLflow: "system_memory_usage_percentage", MLflowPeak: true,
	},
	DiskPercent: {
		Key: "disk_usage_percent", Unit: Percent, Origin: ofDisk,
		Label:  "share of the file system in use (the fullest one given with --disk-path)",
		MLflow: "disk_usage_percentage",
	},
	DiskRead: {
		Key: "disk_io_read_mb", Unit: Mebibytes, Kind: Counter, Origin: ofDiskIO,
		Label:        "bytes read from the node's disks, each counted once",
		TrafficGroup: TrafficDisk, Direction: "read", Short: "disk read", Prometheus: "disk_read_bytes_total",
		Rate: DiskReadRate, rateLabel: "bytes read from the node's disks",
		MLflow: "disk_read_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.Disks, in: true, class: host.Counted},
	},
	DiskWrite: {
		Key: "disk_io_write_mb", Unit: Mebibytes, Kind: Counter, Origin: ofDiskIO,
		Label:        "bytes written to the node's disks, each counted once",
		TrafficGroup: TrafficDisk, Direction: "written", Short: "disk write", Prometheus: "disk_written_bytes_total",
		Rate: DiskWriteRate, rateLabel: "bytes written to the node's disks",
		MLflow: "disk_write_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.Disks, class: host.Counted},
	},
	NetLoSent: {
		Key: "net_io_lo_sent_mb", Unit: Mebibytes, Kind: Counter, Origin: ofNetwork,
		Label:        "bytes sent over loopback",
		TrafficGroup: TrafficLoopback, Direction: "sent", Short: "loop sent", Prometheus: "loopback_transmit_bytes_total",
		Rate: NetLoSentRate, MLflow: "network_lo_transmit_megabytes_per_second",
		devices: deviceSelector{kind: host.NICs, class: host.Counted | host.Loopback},
	},
	NetExtSent: {
		Key: "net_io_ext_sent_mb", Unit: Mebibytes, Kind: Counter, Origin: ofNetwork,
		Label:        "bytes sent to other hosts, each counted once, without loopback",
		TrafficGroup: TrafficNetwork, Direction: "sent", Short: "net sent", Prometheus: "network_transmit_bytes_total",
		Rate: NetExtSentRate, rateLabel: "bytes sent to other hosts",
		MLflow: "network_ext_transmit_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.NICs, class: host.Counted},
	},
	NetLoRecv: {
		Key: "net_io_lo_recv_mb", Unit: Mebibytes, Kind: Counter, Origin: ofNetwork,
		Label:        "bytes received over loopback",
		TrafficGroup: TrafficLoopback, Direction: "received", Short: "loop recv", Prometheus: "loopback_receive_bytes_total",
		Rate:    NetLoRecvRate,
		devices: deviceSelector{kind: host.NICs, in: true, class: host.Counted | host.Loopback},
	},
	NetExtRecv: {
		Key: "net_io_ext_recv_mb", Unit: Mebibytes, Kind: Counter, Origin: ofNetwork,
		Label:        "bytes received from other hosts, each counted once, without loopback",
		TrafficGroup: TrafficNetwork, Direction: "received", Short: "net recv", Prometheus: "network_receive_bytes_total",
		Rate: NetExtRecvRate, rateLabel: "bytes received from other hosts",
		MLflow: "network_ext_receive_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.NICs, in: true, class: host.Counted},
	},
	Timestamp: {
		Key: "timestamp", Unit: UnixSeconds, Aggregation: Max, Origin: ofClock,
		Label:      "time of the newest sample, in seconds since 1970",
		Prometheus: "last_sample_timestamp_seconds",
	},
	MemUsed: {
		Key: "mem_used_mb", Unit: Mebibytes, Origin: ofMemory,
		Label:  "memory in use on the node: total - available",
		MLflow: "system_memory_usage_megabytes", Prometheus: "memory_used_bytes",
	},
	DiskUsed: {
		Key: "disk_used_mb", Unit: Mebibytes, Origin: ofDisk,
		Label:  "bytes used on the file system (the fullest one given with --disk-path)",
		MLflow: "disk_usage_megabytes", Prometheus: "filesystem_used_bytes",
	},
	DiskFree: {
		Key: "disk_free_mb", Unit: Mebibytes, Origin: ofDisk,
		Label:  "bytes available to users on the same file system",
		MLflow: "disk_available_megabytes", Prometheus: "filesystem_available_bytes",
	},
	JobCPU: {
		Key: "job_cpu_cores", Unit: CPUs, Kind: Rate, Origin: ofJobStat, Bound: BoundCPUs,
		Label:  "number of CPUs kept busy by the job",
		MLflow: "job_cpu_cores", MLflowPeak: true,
	},
	JobMemory: {
		Key: "job_memory_mb", Unit: Mebibytes, Origin: ofJobMemory, Bound: BoundMemory,
		Label:  "memory of the whole job",
		MLflow: "job_memory_megabytes", MLflowPeak: true, Prometheus: "job_memory_bytes",
		job: func(j *host.JobUsage) float64 { return j.Memory },
	},
	JobProcesses: {
		Key: "job_processes", Unit: Processes, Origin: ofJobStat,
		Label:  "processes in the job",
		MLflow: "job_processes", Prometheus: "job_processes",
		job: func(j *host.JobUsage) float64 { return j.Processes },
	},
	JobThreads: {
		Key: "job_threads", Unit: Threads, Origin: ofJobStat,
		Label:  "threads in the job",
		MLflow: "job_threads", Prometheus: "job_threads",
		job: func(j *host.JobUsage) float64 { return j.Threads },
	},
	JobRead: {
		Key: "job_io_read_mb", Unit: Mebibytes, Kind: Counter, Origin: ofJobIO,
		Label:      "bytes that the job read from storage",
		Prometheus: "job_read_bytes_total", Rate: JobReadRate,
		rateLabel: "bytes that the job reads from storage",
		MLflow:    "job_read_megabytes_per_second",
		job:       func(j *host.JobUsage) float64 { return j.ReadBytes },
	},
	JobWrite: {
		Key: "job_io_write_mb", Unit: Mebibytes, Kind: Counter, Origin: ofJobIO,
		Label:      "bytes that the job wrote to storage",
		Prometheus: "job_written_bytes_total", Rate: JobWriteRate,
		rateLabel: "bytes that the job writes to storage",
		MLflow:    "job_write_megabytes_per_second",
		job:       func(j *host.JobUsage) float64 { return j.WriteBytes },
	},
	JobReadCalls: {
		Key: "job_read_calls", Unit: Times, Kind: Counter, Origin: ofJobIO,
		Label:      "the job's calls to read(2) and similar functions (a lower bound)",
		Prometheus: "job_read_calls_total",
		Rate:       JobReadCallsRate, MLflow: "job_read_calls_per_second",
		job: func(j *host.JobUsage) float64 { return j.ReadCalls },
	},
	JobWriteCalls: {
		Key: "job_write_calls", Unit: Times, Kind: Counter, Origin: ofJobIO,
		Label:      "the job's calls to write(2) and similar functions (a lower bound)",
		Prometheus: "job_write_calls_total",
		Rate:       JobWriteCallsRate, MLflow: "job_write_calls_per_second",
		job: func(j *host.JobUsage) float64 { return j.WriteCalls },
	},
	JobPageCache: {
		Key: "job_page_cache_mb", Unit: Mebibytes, Origin: ofPageCache,
		Label:      "page cache of the job's control group",
		Prometheus: "job_page_cache_bytes",
	},
	JobThrottled: {
		Key: "job_throttled_pct", Unit: Percent, Origin: ofQuota,
		Label:  "share of the CPU quota's periods in which the job was throttled",
		MLflow: "job_throttled_percentage",
	},
	LimitMemory: {
		Key: "limit_memory_used_mb", Unit: Mebibytes, Origin: ofMemoryLimit,
		Label:      "working set of the control group with the memory limit",
		Prometheus: "job_memory_limit_used_bytes",
	},
	LimitMemoryPercent: {
		Key: "limit_memory_pct", Unit: Percent, Origin: ofMemoryLimit,
		Label:  "working set of the control group with the memory limit, as a share of that limit",
		MLflow: "job_memory_limit_percentage", MLflowPeak: true,
	},
	CPUIowait: {
		Key: "cpu_iowait_pct", Unit: Percent, Origin: ofCPUModes,
		Label:  "share of CPU time that was idle while a task waited for storage",
		MLflow: "cpu_iowait_percentage",
	},
	CPUSteal: {
		Key: "cpu_steal_pct", Unit: Percent, Origin: ofCPUModes,
		Label:  "share of CPU time that the hypervisor gave to other machines",
		MLflow: "cpu_steal_percentage",
	},
	Load1: {
		Key: "load_1m", Unit: Tasks, Origin: ofLoad,
		Label:  "one-minute load average of the node",
		MLflow: "load_average_1m", Prometheus: "load1",
	},
	ProcsRunning: {
		Key: "procs_running", Unit: Tasks, Origin: ofLoad,
		Label:      "tasks on the node that are running or waiting for a CPU",
		Prometheus: "procs_running",
	},
	SwapIn: {
		Key: "swap_in_mb", Unit: Mebibytes, Kind: Counter, Origin: ofSwap,
		Label:      "bytes read from the node's swap",
		Prometheus: "swap_in_bytes_total", Rate: SwapInRate,
		rateLabel: "bytes read from the node's swap",
		MLflow:    "swap_in_megabytes_per_second",
		vm:        func(vm *host.VMStat) float64 { return vm.SwapIn },
	},
	SwapOut: {
		Key: "swap_out_mb", Unit: Mebibytes, Kind: Counter, Origin: ofSwap,
		Label:      "bytes written to the node's swap",
		Prometheus: "swap_out_bytes_total", Rate: SwapOutRate,
		rateLabel: "bytes written to the node's swap",
		MLflow:    "swap_out_megabytes_per_second",
		vm:        func(vm *host.VMStat) float64 { return vm.SwapOut },
	},
	MajorFaults: {
		Key: "major_page_faults", Unit: Times, Kind: Counter, Origin: ofSwap,
		Label:      "major page faults on the node, each of which waited for storage",
		Prometheus: "major_page_faults_total", Rate: MajorFaultsRate,
		MLflow: "major_page_faults_per_second",
		vm:     func(vm *host.VMStat) float64 { return vm.MajorFaults },
	},
	PSICPUSome: {
		Key: "psi_cpu_some_pct", Unit: Percent, Origin: ofCPUPressure, EnvelopeOnly: true,
		Label:  "time in which any task on the node waited for a CPU",
		MLflow: "pressure_cpu_percentage",
		stall:  func(p *cgroup.Pressure) float64 { return p.CPU.Some },
	},
	PSIMemorySome: {
		Key: "psi_memory_some_pct", Unit: Percent, Origin: ofMemoryPressure, EnvelopeOnly: true,
		Label: "time in which any task on the node waited for memory",
		stall: func(p *cgroup.Pressure) float64 { return p.Memory.Some },
	},
	PSIMemoryFull: {
		Key: "psi_memory_full_pct", Unit: Percent, Origin: ofMemoryPressure, EnvelopeOnly: true,
		Label:  "time in which all tasks on the node waited for memory",
		MLflow: "pressure_memory_percentage",
		stall:  func(p *cgroup.Pressure) float64 { return p.Memory.Full },
	},
	PSIIOSome: {
		Key: "psi_io_some_pct", Unit: Percent, Origin: ofIOPressure, EnvelopeOnly: true,
		Label: "time in which any task on the node waited for storage",
		stall: func(p *cgroup.Pressure) float64 { return p.IO.Some },
	},
	PSIIOFull: {
		Key: "psi_io_full_pct", Unit: Percent, Origin: ofIOPressure, EnvelopeOnly: true,
		Label:  "time in which all tasks on the node waited for storage",
		MLflow: "pressure_io_percentage",
		stall:  func(p *cgroup.Pressure) float64 { return p.IO.Full },
	},
	JobPSICPUSome: {
		Key: "job_psi_cpu_some_pct", Unit: Percent, Origin: ofJobCPUPressure, EnvelopeOnly: true,
		Label:  "time in which any task of the job waited for a CPU",
		MLflow: "job_pressure_cpu_percentage",
		stall:  func(p *cgroup.Pressure) float64 { return p.CPU.Some },
	},
	JobPSICPUFull: {
		Key: "job_psi_cpu_full_pct", Unit: Percent, Origin: ofJobCPUPressure, EnvelopeOnly: true,
		Label: "time in which all tasks of the job waited for a CPU",
		stall: func(p *cgroup.Pressure) float64 { return p.CPU.Full },
	},
	JobPSIMemorySome: {
		Key: "job_psi_memory_some_pct", Unit: Percent, Origin: ofJobMemoryPressure, EnvelopeOnly: true,
		Label: "time in which any task of the job waited for memory",
		stall: func(p *cgroup.Pressure) float64 { return p.Memory.Some },
	},
	JobPSIMemoryFull: {
		Key: "job_psi_memory_full_pct", Unit: Percent, Origin: ofJobMemoryPressure, EnvelopeOnly: true,
		Label:  "time in which all tasks of the job waited for memory",
		MLflow: "job_pressure_memory_percentage",
		stall:  func(p *cgroup.Pressure) float64 { return p.Memory.Full },
	},
	JobPSIIOSome: {
		Key: "job_psi_io_some_pct", Unit: Percent, Origin: ofJobIOPressure, EnvelopeOnly: true,
		Label: "time in which any task of the job waited for storage",
		stall: func(p *cgroup.Pressure) float64 { return p.IO.Some },
	},
	JobPSIIOFull: {
		Key: "job_psi_io_full_pct", Unit: Percent, Origin: ofJobIOPressure, EnvelopeOnly: true,
		Label:  "time in which all tasks of the job waited for storage",
		MLflow: "job_pressure_io_percentage",
		stall:  func(p *cgroup.Pressure) float64 { return p.IO.Full },
	},
	JobMemorySwap: {
		Key: "job_memory_swap_mb", Unit: Mebibytes, Origin: ofJobMemory,
		Label:      "part of the job's memory that was swapped out",
		Prometheus: "job_swap_bytes",
		job:        func(j *host.JobUsage) float64 { return j.Swap },
	},
	JobMemoryAnon: {
		Key: "job_memory_anon_mb", Unit: Mebibytes, Origin: ofJobMemory,
		Label: "anonymous memory of the job",
		job:   func(j *host.JobUsage) float64 { return j.Parts.Anon },
	},
	JobMemoryFile: {
		Key: "job_memory_file_mb", Unit: Mebibytes, Origin: ofJobMemory,
		Label: "mapped files or, of a control group, page cache",
		job:   func(j *host.JobUsage) float64 { return j.Parts.File },
	},
	JobMemoryShmem: {
		Key: "job_memory_shmem_mb", Unit: Mebibytes, Origin: ofJobMemory,
		Label: "/dev/shm, tmpfs and shared memory of the job",
		job:   func(j *host.JobUsage) float64 { return j.Parts.Shmem },
	},
	JobMemoryKernel: {
		Key: "job_memory_kernel_mb", Unit: Mebibytes, Origin: ofPageCache,
		Label: "kernel memory of the job's control group",
		job:   func(j *host.JobUsage) float64 { return j.Parts.Kernel },
	},
	NetIBRecv: {
		Key: "net_ib_recv_mb", Unit: Mebibytes, Kind: Counter, Origin: ofInfiniBand,
		Label:        "bytes received through the node's InfiniBand and other RDMA ports",
		TrafficGroup: TrafficInfiniBand, Direction: "received", Short: "IB recv",
		Prometheus: "infiniband_receive_bytes_total",
		Rate:       NetIBRecvRate, MLflow: "infiniband_receive_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.RDMAPorts, in: true, class: host.Counted},
	},
	NetIBSent: {
		Key: "net_ib_sent_mb", Unit: Mebibytes, Kind: Counter, Origin: ofInfiniBand,
		Label:        "bytes sent through the node's InfiniBand and other RDMA ports",
		TrafficGroup: TrafficInfiniBand, Direction: "sent", Short: "IB sent", Prometheus: "infiniband_transmit_bytes_total",
		Rate: NetIBSentRate, MLflow: "infiniband_transmit_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.RDMAPorts, class: host.Counted},
	},
	CPUTemperature: {
		Key: "cpu_temperature_celsius", Unit: Celsius, Aggregation: Max, Origin: ofThermal,
		Label:  "temperature of the node's hottest CPU package",
		MLflow: "cpu_temperature_celsius", Prometheus: "cpu_temperature_celsius",
	},
	CPUThrottleEvents: {
		Key: "cpu_throttle_events", Unit: Times, Kind: Counter, Origin: ofThermal,
		Label:      "how often a core or package of the node's CPUs was throttled because of heat",
		Prometheus: "cpu_throttle_events_total",
	},
	CPUThrottleSeconds: {
		Key: "cpu_throttle_seconds", Unit: Seconds, Kind: Counter, Origin: ofThrottles,
		Label:      "longest time for which a core or package was throttled because of heat",
		Prometheus: "cpu_throttle_seconds_total",
	},
	NodeEnergy: {
		Key: "node_energy_joules", Unit: Joules, Kind: Counter, Origin: ofEnergy,
		Label:      "energy used by the node's CPU packages and their memory",
		Prometheus: "node_energy_joules_total", Rate: NodePower,
	},
	NodePower: {
		Key: "node_power_watts", Unit: Watts, Kind: Rate, Origin: ofEnergy,
		Label:  "power drawn by the node's CPU packages and their memory",
		MLflow: "node_power_usage_watts", MLflowPeak: true, Prometheus: "node_power_watts",
	},
	NFSRead: {
		Key: "nfs_read_mb", Unit: Mebibytes, Kind: Counter, Origin: ofNFS,
		Label:        "bytes received from NFS servers",
		TrafficGroup: TrafficNFS, Direction: "read", Short: "NFS read", Prometheus: "nfs_read_bytes_total",
		Rate: NFSReadRate, MLflow: "nfs_read_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.NFSMounts, in: true, class: host.Counted},
	},
	NFSWrite: {
		Key: "nfs_write_mb", Unit: Mebibytes, Kind: Counter, Origin: ofNFS,
		Label:        "bytes sent to NFS servers",
		TrafficGroup: TrafficNFS, Direction: "written", Short: "NFS write", Prometheus: "nfs_written_bytes_total",
		Rate: NFSWriteRate, MLflow: "nfs_write_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.NFSMounts, class: host.Counted},
	},
	LustreRead: {
		Key: "lustre_read_mb", Unit: Mebibytes, Kind: Counter, Origin: ofLustre,
		Label:        "bytes read from Lustre, including page cache hits",
		TrafficGroup: TrafficLustre, Direction: "read", Short: "Lustre read", Prometheus: "lustre_read_bytes_total",
		Rate: LustreReadRate, MLflow: "lustre_read_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.LustreMounts, in: true, class: host.Counted},
	},
	LustreWrite: {
		Key: "lustre_write_mb", Unit: Mebibytes, Kind: Counter, Origin: ofLustre,
		Label:        "bytes written to Lustre",
		TrafficGroup: TrafficLustre, Direction: "written", Short: "Lustre write", Prometheus: "lustre_written_bytes_total",
		Rate: LustreWriteRate, MLflow: "lustre_write_megabytes_per_second", MLflowPeak: true,
		devices: deviceSelector{kind: host.LustreMounts, class: host.Counted},
	},
}

// complete fills in derived fields and the rows of rates. It works in place, because copying the literals would slow
// down each start of the program.
func complete(rows []ColumnInfo) []ColumnInfo {
	for c := range rows {
		row := &rows[c]
		if row.Rate != 0 && rows[row.Rate].Key == "" {
			rows[row.Rate] = row.perSecond()
			row.MLflow, row.MLflowPeak = "", false
		}
		row.complete()
	}
	return rows
}

// perSecond returns the row for the rate of the counter in row.
func (row *ColumnInfo) perSecond() ColumnInfo {
	unit := row.Unit + "/s"
	if row.Unit == Mebibytes {
		unit = MebibytesPerSecond
	}
	return ColumnInfo{
		Key: row.Key + "_per_second", Unit: unit, Kind: Rate, Origin: row.Origin, EnvelopeOnly: true,
		Label: cmp.Or(row.rateLabel, row.Label), MLflow: row.MLflow, MLflowPeak: row.MLflowPeak,
	}
}

func (row *ColumnInfo) complete() {
	kind, across := Gauge, Sum
	if row.Unit == Percent {
		kind, across = Share, Mean
	}
	row.Kind, row.Aggregation = cmp.Or(row.Kind, kind), cmp.Or(row.Aggregation, across)
}

// gpuTable describes each value of a GPU; {i} in names is the device's number.
var gpuTable = complete(gpuLiterals[:])

var gpuLiterals = [numGPUKeys]ColumnInfo{
	GPUUtilization: {
		Key: "gpu_{i}_utilization_pct", Unit: Percent, Origin: ofGPU,
		Label:  "share of time in which any kernel ran on the GPU, however little of the GPU it used",
		MLflow: "gpu_{i}_utilization_percentage", Prometheus: "gpu_utilization_ratio",
	},
	GPUMemoryUsed: {
		Key: "gpu_{i}_memory_used_mb", Unit: Mebibytes, Origin: ofGPU, Bound: BoundDeviceMemory,
		Label:  "GPU memory in use by all processes",
		MLflow: "gpu_{i}_memory_usage_megabytes", MLflowShare: "gpu_{i}_memory_usage_percentage",
		Prometheus: "gpu_memory_used_bytes",
	},
	GPUPower: {
		Key: "gpu_{i}_power_watts", Unit: Watts, Origin: ofGPU, Bound: BoundDevicePower,
		Label:  "power drawn by the GPU",
		MLflow: "gpu_{i}_power_usage_watts", MLflowShare: "gpu_{i}_power_usage_percentage",
		Prometheus: "gpu_power_watts",
	},
	GPUTemperature: {
		Key: "gpu_{i}_temperature_celsius", Unit: Celsius, Aggregation: Max, Origin: ofGPU,
		Label:  "temperature of the GPU",
		MLflow: "gpu_{i}_temperature_celsius", Prometheus: "gpu_temperature_celsius",
	},
}

// Traffic returns the main counters of moved bytes, in the order in which they are shown.
func Traffic() []Column {
	return []Column{
		DiskRead, DiskWrite, NFSRead, NFSWrite, LustreRead, LustreWrite,
		NetExtRecv, NetExtSent, NetIBRecv, NetIBSent, NetLoRecv, NetLoSent,
	}
}

// TrafficByGroup returns the counters of each group, in the order in which they are shown.
func TrafficByGroup() map[TrafficGroup][]Column {
	groups := make(map[TrafficGroup][]Column)
	for _, c := range slices.Concat(Traffic(), columnsOf(func(row *ColumnInfo) bool { return row.TrafficGroup != "" })) {
		if group := c.row().TrafficGroup; !slices.Contains(groups[group], c) {
			groups[group] = append(groups[group], c)
		}
	}
	return groups
}

// row returns the column's row in its table.
func (c Column) row() *ColumnInfo {
	switch {
	case c < NumColumns:
		return &columnTable[c]
	case int(c) < MaxColumns:
		return &gpuRows()[c-NumColumns]
	}
	return &gpuTable[int(c-NumColumns)%NumGPUKeys] // a device that is not recorded
}

// Info returns the description of the column.
func (c Column) Info() ColumnInfo { return *c.row() }

// Key returns the column's name in samples and envelope.
func (c Column) Key() string { return c.row().Key }

// IsPercent reports whether the values of the column are percentages from 0 to 100.
func (c Column) IsPercent() bool { return c.row().Kind == Share }

// Info returns the description of the value for all devices; {i} in names stands for the device's number.
func (k GPUKey) Info() ColumnInfo { return gpuTable[k] }

// gpuRows returns the rows of all GPU columns.
var gpuRows = sync.OnceValue(func() []ColumnInfo {
	rows := make([]ColumnInfo, 0, MaxGPUs*NumGPUKeys)
	for device := range MaxGPUs {
		number := strconv.Itoa(device)
		for _, row := range gpuTable {
			for _, name := range []*string{&row.Key, &row.MLflow, &row.MLflowShare} {
				*name = strings.Replace(*name, "{i}", number, 1)
			}
			rows = append(rows, row)
		}
	}
	return rows
})

// columnsByKey maps keys to columns.
var columnsByKey = sync.OnceValue(func() map[string]Column {
	byKey := make(map[string]Column, MaxColumns)
	for c := range Column(MaxColumns) {
		byKey[c.Key()] = c
	}
	return byKey
})

// ColumnByKey returns the column with the given key. It reports false if there is none.
func ColumnByKey(key string) (Column, bool) {
	c, ok := columnsByKey()[key]
	return c, ok
}

// AffectedBy reports whether the failure f prevents the measurement of the column.
func (c Column) AffectedBy(f Failure) bool {
	row := c.row()
	if f.Source != row.Source {
		return false
	}
	return f.File == "" || row.Files == nil || slices.Contains(row.Files, f.File)
}

// OfDevice reports whether the column belongs to a device that not every node has.
func (c Column) OfDevice() bool { return c.row().Scope == ScopeDevice }

// numBaseColumns returns the number of columns that each Recording has: all except the device columns at the end of the
// table.
func numBaseColumns() Column { return Column(withoutLastDevices(columnTable)) }

// withoutLastDevices returns the number of rows before the device rows at the end.
func withoutLastDevices(rows []ColumnInfo) int {
	n := len(rows)
	for n > 0 && rows[n-1].Scope == ScopeDevice {
		n--
	}
	return n
}
