package pusher

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// Window is the time that one point of a series stands for; its number since the
// start is the point's step.
const Window = 10 * time.Second

// Series describes one time series, as it is named under system/<node>/.
type Series struct {
	Name string
	// Unit and Meaning are for people.
	Unit, Meaning string
	keys          []collector.Column // their values are added up
	part          part
	scale         float64
}

// part is what of a window becomes the point.
type part int

const (
	mean part = iota // the mean, weighted by time
	peak             // the greatest value
	last             // the value at the end: for counters
)

// megabyte turns our MiB into MLflow's unit, 10^6 bytes.
const megabyte = collector.MiB / 1e6

// AllSeries lists the series but those of GPUs, those with MLflow's own names first among
// their kind; no name is another's folder.
func AllSeries() []Series { return append(hostSeries(), jobSeries()...) }

func hostSeries() []Series {
	one := func(c ...collector.Column) []collector.Column { return c }
	return []Series{
		{"cpu_utilization_percentage", "percent", "use of the node's CPUs together", one(collector.CPUAvg), mean, 1},
		{"cpu_utilization_percentage_max", "percent", "its peak in the window", one(collector.CPUAvg), peak, 1},
		{"cpu_utilization_percentage_least_busy", "percent", "use of the least busy CPU", one(collector.CPUMin), mean, 1},
		{"cpu_utilization_percentage_most_busy", "percent", "use of the most busy CPU", one(collector.CPUMax), mean, 1},
		{"system_memory_usage_megabytes", "MB (10^6 bytes)", "memory in use: total − available", one(collector.MemUsed), mean, megabyte},
		{"system_memory_usage_percentage", "percent", "the same as a share of the node's memory", one(collector.MemPercent), mean, 1},
		{"system_memory_usage_percentage_max", "percent", "its peak in the window", one(collector.MemPercent), peak, 1},
		{"disk_usage_percentage", "percent", "fill of the file system (the fullest of --disk-path)", one(collector.DiskPercent), mean, 1},
		{"disk_usage_megabytes", "MB (10^6 bytes)", "bytes in use on it", one(collector.DiskUsed), mean, megabyte},
		{"disk_available_megabytes", "MB (10^6 bytes)", "bytes that users may still write to it", one(collector.DiskFree), mean, megabyte},
		{"network_receive_megabytes", "MB (10^6 bytes)", "received since the start, from other hosts and over loopback", one(collector.NetExtRecv, collector.NetLoRecv), last, megabyte},
		{"network_transmit_megabytes", "MB (10^6 bytes)", "sent since the start, to other hosts and over loopback", one(collector.NetExtSent, collector.NetLoSent), last, megabyte},
		{"network_ext_receive_megabytes_per_second", "MB/s", "received from other hosts", one(collector.NetExtRecvRate), mean, megabyte},
		{"network_ext_receive_megabytes_per_second_max", "MB/s", "its peak in the window", one(collector.NetExtRecvRate), peak, megabyte},
		{"network_ext_transmit_megabytes_per_second", "MB/s", "sent to other hosts", one(collector.NetExtSentRate), mean, megabyte},
		{"network_ext_transmit_megabytes_per_second_max", "MB/s", "its peak in the window", one(collector.NetExtSentRate), peak, megabyte},
		{"network_lo_transmit_megabytes_per_second", "MB/s", "sent over loopback", one(collector.NetLoSentRate), mean, megabyte},
		{"disk_read_megabytes_per_second", "MB/s", "read from the node's disks", one(collector.DiskReadRate), mean, megabyte},
		{"disk_read_megabytes_per_second_max", "MB/s", "its peak in the window", one(collector.DiskReadRate), peak, megabyte},
		{"disk_write_megabytes_per_second", "MB/s", "written to the node's disks", one(collector.DiskWriteRate), mean, megabyte},
		{"disk_write_megabytes_per_second_max", "MB/s", "its peak in the window", one(collector.DiskWriteRate), peak, megabyte},
	}
}

// jobSeries are those of the job, of its limits, and of what holds tasks up.
func jobSeries() []Series {
	one := func(c ...collector.Column) []collector.Column { return c }
	return []Series{
		{"job_cpu_cores", "CPUs", "CPUs that the job keeps busy", one(collector.JobCPU), mean, 1},
		{"job_cpu_cores_max", "CPUs", "its peak in the window", one(collector.JobCPU), peak, 1},
		{"job_memory_megabytes", "MB (10^6 bytes)", "memory of the whole job", one(collector.JobMemory), mean, megabyte},
		{"job_memory_megabytes_max", "MB (10^6 bytes)", "its peak in the window", one(collector.JobMemory), peak, megabyte},
		{"job_memory_limit_percentage", "percent", "working set of the control group that limits the memory, as a share of the limit", one(collector.LimitMemoryPercent), mean, 1},
		{"job_memory_limit_percentage_max", "percent", "its peak in the window", one(collector.LimitMemoryPercent), peak, 1},
		{"job_throttled_percentage", "percent", "periods in which the CPU quota stopped the job", one(collector.JobThrottled), mean, 1},
		{"job_processes", "processes", "processes of the job", one(collector.JobProcesses), mean, 1},
		{"job_threads", "threads", "threads of the job", one(collector.JobThreads), mean, 1},
		{"job_read_megabytes_per_second", "MB/s", "read from storage by the job", one(collector.JobReadRate), mean, megabyte},
		{"job_write_megabytes_per_second", "MB/s", "written to storage by the job", one(collector.JobWriteRate), mean, megabyte},
		{"job_pressure_cpu_percentage", "percent", "time in which a task of the job waited for a CPU", one(collector.JobPSICPUSome), mean, 1},
		{"job_pressure_memory_percentage", "percent", "time in which all tasks of the job waited for memory", one(collector.JobPSIMemoryFull), mean, 1},
		{"job_pressure_io_percentage", "percent", "time in which all tasks of the job waited for storage", one(collector.JobPSIIOFull), mean, 1},
		{"pressure_cpu_percentage", "percent", "time in which a task of the node waited for a CPU", one(collector.PSICPUSome), mean, 1},
		{"pressure_memory_percentage", "percent", "time in which all tasks of the node waited for memory", one(collector.PSIMemoryFull), mean, 1},
		{"pressure_io_percentage", "percent", "time in which all tasks of the node waited for storage", one(collector.PSIIOFull), mean, 1},
		{"cpu_iowait_percentage", "percent", "CPU time that was idle and waited for storage", one(collector.CPUIowait), mean, 1},
		{"cpu_steal_percentage", "percent", "CPU time that the hypervisor gave to others", one(collector.CPUSteal), mean, 1},
		{"load_average_1m", "tasks", "load average of a minute", one(collector.Load1), mean, 1},
		{"swap_in_megabytes_per_second", "MB/s", "came back from the node's swap", one(collector.SwapInRate), mean, megabyte},
		{"swap_out_megabytes_per_second", "MB/s", "went to the node's swap", one(collector.SwapOutRate), mean, megabyte},
	}
}

// gpuSeries is a series that each GPU has.
type gpuSeries struct {
	Series
	key collector.GPUKey
	// whole is what the value is a share of, in the column's unit; nil = it is no share.
	whole func(device) float64
}

// device is what is known of a GPU; NaN or 0 = not known.
type device struct{ memoryMB, powerLimitWatts float64 }

func (d device) memory() float64     { return d.memoryMB }
func (d device) powerLimit() float64 { return d.powerLimitWatts }

func gpuTable() []gpuSeries {
	return []gpuSeries{
		{Series{"gpu_{i}_utilization_percentage", "percent", "time in which any kernel ran on the GPU", nil, mean, 1}, collector.GPUUtilization, nil},
		{Series{"gpu_{i}_memory_usage_megabytes", "MB (10^6 bytes)", "memory in use on the GPU", nil, mean, megabyte}, collector.GPUMemoryUsed, nil},
		{Series{"gpu_{i}_memory_usage_percentage", "percent", "the same as a share of the GPU's memory", nil, mean, 1}, collector.GPUMemoryUsed, device.memory},
		{Series{"gpu_{i}_power_usage_watts", "W", "power that the GPU draws", nil, mean, 1}, collector.GPUPower, nil},
		{Series{"gpu_{i}_power_usage_percentage", "percent", "the same as a share of its power limit", nil, mean, 1}, collector.GPUPower, device.powerLimit},
		{Series{"gpu_{i}_temperature_celsius", "°C", "temperature of the GPU", nil, mean, 1}, collector.GPUTemperature, nil},
	}
}

// GPUSeries lists the series that each GPU of a node has. {i} in their names is the
// device's place among the node's GPUs, from 0 on.
func GPUSeries() []Series {
	var out []Series
	for _, s := range gpuTable() {
		out = append(out, s.Series)
	}
	return out
}

// of is the series of one device; not ok where what it is a share of is not known.
func (s gpuSeries) of(i int, d device) (Series, bool) {
	out := s.Series
	out.Name = strings.Replace(out.Name, "{i}", strconv.Itoa(i), 1)
	out.keys = []collector.Column{collector.GPUColumn(i, s.key)}
	if s.whole == nil {
		return out, true
	}
	whole := s.whole(d)
	out.scale = 100 / whole
	return out, whole > 0
}

// prefix is the folder of a node's series.
func prefix(node string) string { return "system/" + node + "/" }

// moment is the points of one window: one time stamp, one step, a value per series.
// It is sent whole, or with its last point last.
type moment struct {
	at, step int64
	points   []mlflow.Metric
}

// track is a node's series on its way into windows.
type track struct {
	node     string
	start    int64 // ms since 1970, of the baseline
	from     int64 // end of what came before the first bucket
	samples  reporter.Samples
	envelope reporter.Envelope
	gpus     []device
	// thinned tells that kept samples stand for several: live points may be finer.
	thinned bool
	// goesOn tells that more samples follow: the last window is not full, and how long
	// the run will be is not known.
	goesOn bool
	// most is how many moments are asked for; 0 = all.
	most int
}

// moments cuts a track into windows, in the order of time. A kept sample stands for
// the time since the one before it, and belongs to the window in which it was
// taken: it ends there. Values that are not finite were not measured.
func (t track) moments() []moment {
	ends := t.ends()
	cut := t.cutter(ends)
	lines := t.lines()
	var out []moment
	for i := 0; i < len(ends) && (t.most == 0 || len(out) < t.most); {
		if ends[i] <= 0 { // a sample without a time
			i++
			continue
		}
		step, j := cut(i), i+1
		if t.goesOn && step == cut(len(ends)-1) {
			break
		}
		for j < len(ends) && cut(j) == step {
			j++
		}
		if m := t.moment(lines, ends, i, j); len(m.points) > 0 {
			for k := range m.points {
				m.points[k].Step = step
			}
			m.step = step
			out = append(out, m)
		}
		i = j
	}
	return out
}

// ends gives for each kept sample the time of the last sample that it stands for,
// in ms, never falling.
func (t track) ends() []int64 {
	times := []float64(t.envelope[collector.Timestamp.Key()].Max)
	if times == nil {
		times = t.samples.Column(collector.Timestamp.Key())
	}
	out := make([]int64, len(times))
	before := t.from
	for i, ts := range times {
		if ts > 0 && ts < 1<<40 {
			before = max(before, int64(math.Round(ts*1000)))
		}
		out[i] = before
	}
	return out
}

// cutter gives the step of each kept sample. A run of 1 s to 10 s is cut in two, by
// the middle of what a sample stands for: MLflow draws a line from step 1 on.
func (t track) cutter(ends []int64) func(i int) int64 {
	window := Window.Milliseconds()
	if len(ends) > 0 && t.from == t.start && !t.goesOn {
		if length := ends[len(ends)-1] - t.start; length >= 1000 && length < window {
			return func(i int) int64 {
				if t.begin(ends, i)+ends[i]-2*t.start <= length {
					return 0
				}
				return 1
			}
		}
	}
	return func(i int) int64 { return max(0, ends[i]-t.start) / window }
}

// begin is where the time that a kept sample stands for begins.
func (t track) begin(ends []int64, i int) int64 {
	if i == 0 {
		return t.from
	}
	return ends[i-1]
}

// line is one series of a track: the name of its points, and its columns.
type line struct {
	Series
	key   string
	bands []reporter.Band
}

// lines are all series of a track. Those of the host come last, because they are in every
// moment (see anchors), and because a moment whose last point is there is there as a whole.
func (t track) lines() []line {
	var all []Series
	for i, d := range t.gpus[:min(len(t.gpus), collector.MaxGPUs)] {
		for _, s := range gpuTable() {
			if series, ok := s.of(i, d); ok {
				all = append(all, series)
			}
		}
	}
	var out []line
	for _, s := range slices.Concat(all, jobSeries(), hostSeries()) {
		l := line{Series: s, key: prefix(t.node) + s.Name}
		for _, c := range s.keys {
			l.bands = append(l.bands, t.band(c))
		}
		out = append(out, l)
	}
	return out
}

// moment makes the points of the kept samples i…j−1.
func (t track) moment(lines []line, ends []int64, i, j int) moment {
	m := moment{at: ends[j-1]}
	seconds := func(k int) float64 { return float64(ends[k]-t.begin(ends, k)) / 1000 }
	for _, l := range lines {
		sum := 0.0
		for _, b := range l.bands {
			sum += l.part.of(b, i, j, seconds)
		}
		if v := round6(sum * l.scale); !math.IsNaN(v) && !math.IsInf(v, 0) {
			m.points = append(m.points, mlflow.Metric{Key: l.key, Value: v, Timestamp: m.at})
		}
	}
	return m
}

// band is a column's mean and greatest value per kept sample.
func (t track) band(c collector.Column) reporter.Band {
	if band, ok := t.envelope[c.Key()]; ok {
		return band
	}
	values := t.samples.Column(c.Key())
	if t.envelope == nil && slices.Contains(collector.Counters(), c) { // perf.py's are since boot
		values = sinceFirst(values)
	}
	return reporter.Band{Mean: values, Max: values}
}

// sinceFirst subtracts what a counter was at first.
func sinceFirst(values []float64) []float64 {
	out, first := slices.Clone(values), math.NaN()
	for i, v := range out {
		if math.IsNaN(first) {
			first = v
		}
		out[i] = v - first
	}
	return out
}

// of is the mean, the peak or the last of the kept samples i…j−1; NaN where none was measured.
func (p part) of(b reporter.Band, i, j int, weight func(k int) float64) float64 {
	j = min(j, len(b.Mean), len(b.Max))
	switch {
	case i >= j:
		return math.NaN()
	case p == mean:
		return b.MeanOf(i, j, func(k int) float64 { return max(0.001, weight(k)) })
	case p == peak:
		return b.MaxOf(i, j)
	}
	for k := j - 1; k >= i; k-- {
		if v := b.Max[k]; !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// round6 keeps 6 decimals: more is noise that would fill the requests.
func round6(v float64) float64 {
	if r := math.Round(v*1e6) / 1e6; !math.IsInf(r, 0) {
		return r
	}
	return v
}

// nodeTrack is the track of a report's node.
func nodeTrack(name string, n *reporter.Node) track {
	t := track{node: name, samples: n.Samples, envelope: n.Envelope}
	for _, g := range n.GPUs {
		t.gpus = append(t.gpus, device{g.MemoryMB, g.PowerLimitWatts})
	}
	t.thinned = n.Sampling != nil && int64(n.Samples.Len()) < n.Sampling.Samples
	if n.Sampling != nil && !n.Sampling.Start.IsZero() {
		t.start = n.Sampling.Start.UnixMilli()
	} else if ends := t.ends(); len(ends) > 0 {
		t.start = ends[0]
	}
	t.from = t.start
	return t
}
