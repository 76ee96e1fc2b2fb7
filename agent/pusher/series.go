package pusher

import (
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
)

// A Series describes one time series, as it is named under system/<node>/.
type Series struct {
	Name string

	// Unit and Meaning are for people.
	Unit, Meaning string

	columns   []collector.Column // whose values are added up
	reduction reduction
	scale     float64 // of the columns' values; 0 means 1
}

// A reduction says how the samples of a window become one point.
type reduction int

const (
	mean reduction = iota // weighted by time
	peak                  // the greatest value
	last                  // the value at the end, for counters
)

// megabyte converts our MiB to MLflow's unit, 10^6 bytes.
const megabyte = collector.MiB / 1e6

// Units, as people read them.
const (
	percent            = "percent"
	megabytes          = "MB (10^6 bytes)"
	megabytesPerSecond = "MB/s"
)

// ofPeak is the meaning of a series that follows its mean.
const ofPeak = "its peak in the window"

// AllSeries returns the series of the host and of the job, but not those of GPUs. No name is the
// folder of another.
func AllSeries() []Series { return append(hostSeries(), jobSeries()...) }

// of returns columns as a list.
func of(columns ...collector.Column) []collector.Column { return columns }

// hostSeries returns the series of the node, those with MLflow's own names first among their kind.
func hostSeries() []Series {
	return []Series{
		{Name: "cpu_utilization_percentage", Unit: percent, Meaning: "use of the node's CPUs together",
			columns: of(collector.CPUAvg)},
		{Name: "cpu_utilization_percentage_max", Unit: percent, Meaning: ofPeak,
			columns: of(collector.CPUAvg), reduction: peak},
		{Name: "cpu_utilization_percentage_least_busy", Unit: percent, Meaning: "use of the least busy CPU",
			columns: of(collector.CPUMin)},
		{Name: "cpu_utilization_percentage_most_busy", Unit: percent, Meaning: "use of the most busy CPU",
			columns: of(collector.CPUMax)},
		{Name: "system_memory_usage_megabytes", Unit: megabytes, Meaning: "memory in use: total − available",
			columns: of(collector.MemUsed), scale: megabyte},
		{Name: "system_memory_usage_percentage", Unit: percent, Meaning: "the same as a share of the node's memory",
			columns: of(collector.MemPercent)},
		{Name: "system_memory_usage_percentage_max", Unit: percent, Meaning: ofPeak,
			columns: of(collector.MemPercent), reduction: peak},
		{Name: "disk_usage_percentage", Unit: percent, Meaning: "fill of the file system (the fullest of --disk-path)",
			columns: of(collector.DiskPercent)},
		{Name: "disk_usage_megabytes", Unit: megabytes, Meaning: "bytes in use on it",
			columns: of(collector.DiskUsed), scale: megabyte},
		{Name: "disk_available_megabytes", Unit: megabytes, Meaning: "bytes that users may still write to it",
			columns: of(collector.DiskFree), scale: megabyte},
		{Name: "network_receive_megabytes", Unit: megabytes,
			Meaning: "received since the start, from other hosts and over loopback",
			columns: of(collector.NetExtRecv, collector.NetLoRecv), reduction: last, scale: megabyte},
		{Name: "network_transmit_megabytes", Unit: megabytes,
			Meaning: "sent since the start, to other hosts and over loopback",
			columns: of(collector.NetExtSent, collector.NetLoSent), reduction: last, scale: megabyte},
		{Name: "network_ext_receive_megabytes_per_second", Unit: megabytesPerSecond,
			Meaning: "received from other hosts",
			columns: of(collector.NetExtRecvRate), scale: megabyte},
		{Name: "network_ext_receive_megabytes_per_second_max", Unit: megabytesPerSecond, Meaning: ofPeak,
			columns: of(collector.NetExtRecvRate), reduction: peak, scale: megabyte},
		{Name: "network_ext_transmit_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "sent to other hosts",
			columns: of(collector.NetExtSentRate), scale: megabyte},
		{Name: "network_ext_transmit_megabytes_per_second_max", Unit: megabytesPerSecond, Meaning: ofPeak,
			columns: of(collector.NetExtSentRate), reduction: peak, scale: megabyte},
		{Name: "network_lo_transmit_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "sent over loopback",
			columns: of(collector.NetLoSentRate), scale: megabyte},
		{Name: "disk_read_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "read from the node's disks",
			columns: of(collector.DiskReadRate), scale: megabyte},
		{Name: "disk_read_megabytes_per_second_max", Unit: megabytesPerSecond, Meaning: ofPeak,
			columns: of(collector.DiskReadRate), reduction: peak, scale: megabyte},
		{Name: "disk_write_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "written to the node's disks",
			columns: of(collector.DiskWriteRate), scale: megabyte},
		{Name: "disk_write_megabytes_per_second_max", Unit: megabytesPerSecond, Meaning: ofPeak,
			columns: of(collector.DiskWriteRate), reduction: peak, scale: megabyte},
	}
}

// jobSeries returns the series of the job, of its limits, and of what holds up tasks.
func jobSeries() []Series {
	return []Series{
		{Name: "job_cpu_cores", Unit: "CPUs", Meaning: "CPUs that the job keeps busy",
			columns: of(collector.JobCPU)},
		{Name: "job_cpu_cores_max", Unit: "CPUs", Meaning: ofPeak,
			columns: of(collector.JobCPU), reduction: peak},
		{Name: "job_memory_megabytes", Unit: megabytes, Meaning: "memory of the whole job",
			columns: of(collector.JobMemory), scale: megabyte},
		{Name: "job_memory_megabytes_max", Unit: megabytes, Meaning: ofPeak,
			columns: of(collector.JobMemory), reduction: peak, scale: megabyte},
		{Name: "job_memory_limit_percentage", Unit: percent,
			Meaning: "working set of the control group that limits the memory, as a share of the limit",
			columns: of(collector.LimitMemoryPercent)},
		{Name: "job_memory_limit_percentage_max", Unit: percent, Meaning: ofPeak,
			columns: of(collector.LimitMemoryPercent), reduction: peak},
		{Name: "job_throttled_percentage", Unit: percent, Meaning: "periods in which the CPU quota stopped the job",
			columns: of(collector.JobThrottled)},
		{Name: "job_processes", Unit: "processes", Meaning: "processes of the job",
			columns: of(collector.JobProcesses)},
		{Name: "job_threads", Unit: "threads", Meaning: "threads of the job",
			columns: of(collector.JobThreads)},
		{Name: "job_read_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "read from storage by the job",
			columns: of(collector.JobReadRate), scale: megabyte},
		{Name: "job_write_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "written to storage by the job",
			columns: of(collector.JobWriteRate), scale: megabyte},
		{Name: "job_pressure_cpu_percentage", Unit: percent,
			Meaning: "time in which a task of the job waited for a CPU",
			columns: of(collector.JobPSICPUSome)},
		{Name: "job_pressure_memory_percentage", Unit: percent,
			Meaning: "time in which all tasks of the job waited for memory",
			columns: of(collector.JobPSIMemoryFull)},
		{Name: "job_pressure_io_percentage", Unit: percent,
			Meaning: "time in which all tasks of the job waited for storage",
			columns: of(collector.JobPSIIOFull)},
		{Name: "pressure_cpu_percentage", Unit: percent, Meaning: "time in which a task of the node waited for a CPU",
			columns: of(collector.PSICPUSome)},
		{Name: "pressure_memory_percentage", Unit: percent,
			Meaning: "time in which all tasks of the node waited for memory",
			columns: of(collector.PSIMemoryFull)},
		{Name: "pressure_io_percentage", Unit: percent,
			Meaning: "time in which all tasks of the node waited for storage",
			columns: of(collector.PSIIOFull)},
		{Name: "cpu_iowait_percentage", Unit: percent, Meaning: "CPU time that was idle and waited for storage",
			columns: of(collector.CPUIowait)},
		{Name: "cpu_steal_percentage", Unit: percent, Meaning: "CPU time that the hypervisor gave to others",
			columns: of(collector.CPUSteal)},
		{Name: "load_average_1m", Unit: "tasks", Meaning: "load average of a minute",
			columns: of(collector.Load1)},
		{Name: "swap_in_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "came back from the node's swap",
			columns: of(collector.SwapInRate), scale: megabyte},
		{Name: "swap_out_megabytes_per_second", Unit: megabytesPerSecond, Meaning: "went to the node's swap",
			columns: of(collector.SwapOutRate), scale: megabyte},
	}
}

// A gpuSeries is a series that each GPU has.
type gpuSeries struct {
	Series
	key collector.GPUKey

	// whole returns what the value is a share of, in the column's unit. It is nil if the value is
	// no share.
	whole func(device) float64
}

// A device is what is known of a GPU. NaN and 0 mean that it is not known.
type device struct{ memoryMB, powerLimitWatts float64 }

func (d device) memory() float64     { return d.memoryMB }
func (d device) powerLimit() float64 { return d.powerLimitWatts }

func gpuTable() []gpuSeries {
	return []gpuSeries{
		{key: collector.GPUUtilization, Series: Series{Name: "gpu_{i}_utilization_percentage", Unit: percent,
			Meaning: "time in which any kernel ran on the GPU"}},
		{key: collector.GPUMemoryUsed, Series: Series{Name: "gpu_{i}_memory_usage_megabytes", Unit: megabytes,
			Meaning: "memory in use on the GPU", scale: megabyte}},
		{key: collector.GPUMemoryUsed, Series: Series{Name: "gpu_{i}_memory_usage_percentage", Unit: percent,
			Meaning: "the same as a share of the GPU's memory"}, whole: device.memory},
		{key: collector.GPUPower, Series: Series{Name: "gpu_{i}_power_usage_watts", Unit: "W",
			Meaning: "power that the GPU draws"}},
		{key: collector.GPUPower, Series: Series{Name: "gpu_{i}_power_usage_percentage", Unit: percent,
			Meaning: "the same as a share of its power limit"}, whole: device.powerLimit},
		{key: collector.GPUTemperature, Series: Series{Name: "gpu_{i}_temperature_celsius", Unit: "°C",
			Meaning: "temperature of the GPU"}},
	}
}

// GPUSeries returns the series that each GPU of a node has. {i} in their names is the device's
// position among the node's GPUs, counted from 0.
func GPUSeries() []Series {
	var out []Series
	for _, s := range gpuTable() {
		out = append(out, s.Series)
	}
	return out
}

// forDevice returns the series of one device. ok is false if the value is a share of something that
// is not known.
func (s gpuSeries) forDevice(i int, d device) (series Series, ok bool) {
	series = s.Series
	series.Name = strings.Replace(series.Name, "{i}", strconv.Itoa(i), 1)
	series.columns = of(collector.GPUColumn(i, s.key))
	if s.whole == nil {
		return series, true
	}
	whole := s.whole(d)
	series.scale = 100 / whole
	return series, whole > 0
}

// folder returns the folder of a node's series.
func folder(node string) string { return "system/" + node + "/" }
