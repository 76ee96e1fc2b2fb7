package reporter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/series"
)

// Metric is one row of the table: a number that every report gives.
type Metric struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`
	Meaning string `json:"meaning"`
	How     string `json:"how"` // how it is computed
	// PerfPy tells that perf.py has the metric: the first eighteen.
	PerfPy bool `json:"perf_py"`

	value func(*facts) (float64, error)
}

// facts is what metrics are computed from. An error of a value says why it is
// absent.
type facts struct {
	summary [collector.NumColumns]*series.Summary
	// at100 is the level of cpu_avg_utilization_at100_pct: 99.95, or perf.py's 100.
	at100 float64
	wall  func() (float64, error) // seconds from start to end
	cpus  int
	boot  [6]float64 // by collector.Counters; NaN = never read
	job   *Job
	noJob error // why job is nil
	// why says why a column was never measured.
	why func(collector.Column) error
	// perfpy: computed from samples by perf.py's rules.
	perfpy bool
}

// Metrics is the one table of metrics, in the order of output: perf.py's
// eighteen, the exact ones of the job, the counters since boot.
func Metrics() []Metric { return metricTable }

// MetricNamed finds a metric.
func MetricNamed(name string) (Metric, bool) {
	for _, m := range metricTable {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// The metrics that the terminal summary picks out of the table.
const (
	cpuPeakMetric     = "max_t_cpu_pct_per_cpu_avg"
	cpuMeanMetric     = "cpu_avg_utilization_pct"
	cpuOver80Metric   = "cpu_avg_utilization_over80_pct"
	cpuHoursMetric    = "node_cpu_hours"
	unusedHoursMetric = "node_unused_cpu_hours"
	memPeakMetric     = "max_t_mem_percent"
	diskPeakMetric    = "max_t_disk_usage_percent"
	diskReadMetric    = "total_disk_io_read_mb"
	diskWriteMetric   = "total_disk_io_write_mb"
	loSentMetric      = "total_net_io_lo_sent_mb"
	extSentMetric     = "total_net_io_ext_sent_mb"
	loRecvMetric      = "total_net_io_lo_recv_mb"
	extRecvMetric     = "total_net_io_ext_recv_mb"
	wallMetric        = "wall_seconds"
	jobRSSMetric      = "job_max_rss_mb"
)

var metricTable = []Metric{
	{cpuPeakMetric, "percent", "highest use of the node's CPUs together", "greatest, over all samples, of the mean over CPUs", true, maxOf(collector.CPUAvg)},
	{cpuMeanMetric, "percent", "mean use of the node's CPUs", "mean over CPUs, weighted by the time that each sample stands for", true, meanOf(collector.CPUAvg)},
	{"cpu_avg_utilization_at100_pct", "percent of time", "time with all CPUs fully busy", "share of the time with the mean over CPUs ≥ 99.95, which rounds to 100.0", true, cpuAt100},
	{cpuOver80Metric, "percent of time", "time with the CPUs at 80 % or more", "share of the time with the mean over CPUs ≥ 80", true, cpuOver(80)},
	{"cpu_avg_utilization_over40_pct", "percent of time", "time with the CPUs at 40 % or more", "share of the time with the mean over CPUs ≥ 40", true, cpuOver(40)},
	{"cpu_avg_utilization_over20_pct", "percent of time", "time with the CPUs at 20 % or more", "share of the time with the mean over CPUs ≥ 20", true, cpuOver(20)},
	{"max_t_cpu_pct_per_cpu_min", "percent", "highest use of the least busy CPU", "greatest, over all samples, of the least busy CPU's percent", true, maxOf(collector.CPUMin)},
	{"max_t_cpu_pct_per_cpu_max", "percent", "highest use of the busiest CPU", "greatest, over all samples, of the most busy CPU's percent", true, maxOf(collector.CPUMax)},
	{cpuHoursMetric, "CPU hours", "CPU time that the node offered", "start to end on the monotonic clock × the node's logical CPUs / 3600", true, cpuHours},
	{unusedHoursMetric, "CPU hours", "CPU time that nobody used", "node_cpu_hours × (100 − cpu_avg_utilization_pct) / 100", true, unusedCPUHours},
	{memPeakMetric, "percent", "highest use of the node's memory", "greatest of (total − available) / total", true, maxOf(collector.MemPercent)},
	{diskPeakMetric, "percent", "highest fill of the file system (the fullest of --disk-path)", "greatest of used / (used + available to users)", true, maxOf(collector.DiskPercent)},
	{diskReadMetric, "MiB (2^20 bytes)", "bytes read from the node's disks", "sum over whole disks since the job's start, each byte once", true, maxOf(collector.DiskRead)},
	{diskWriteMetric, "MiB (2^20 bytes)", "bytes written to the node's disks", "sum over whole disks since the job's start, each byte once", true, maxOf(collector.DiskWrite)},
	{loSentMetric, "MiB (2^20 bytes)", "bytes sent over loopback", "sum over lo since the job's start", true, maxOf(collector.NetLoSent)},
	{extSentMetric, "MiB (2^20 bytes)", "bytes sent to other hosts", "sum over the counted interfaces since the job's start, each byte once", true, maxOf(collector.NetExtSent)},
	{loRecvMetric, "MiB (2^20 bytes)", "bytes received over loopback", "sum over lo since the job's start", true, maxOf(collector.NetLoRecv)},
	{extRecvMetric, "MiB (2^20 bytes)", "bytes received from other hosts", "sum over the counted interfaces since the job's start, each byte once", true, maxOf(collector.NetExtRecv)},
	{wallMetric, "seconds", "how long the job ran", "from its start to its end on the monotonic clock; exact", false, jobWall},
	{"job_cpu_seconds", "seconds", "CPU time of the job", "user + system of the job, the children that it waited for and reaped orphans (wait4); exact", false, ofJob(jobCPU)},
	{jobRSSMetric, "MiB (2^20 bytes)", "peak memory of the job's largest process", "greatest ru_maxrss of the same processes (wait4); exact, but an upper bound where the job is smaller than perfagent", false, ofJob(jobRSS)},
	{"boot_total_disk_io_read_mb", "MiB (2^20 bytes)", "bytes read from the node's disks since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(0)},
	{"boot_total_disk_io_write_mb", "MiB (2^20 bytes)", "bytes written to the node's disks since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(1)},
	{"boot_total_net_io_lo_sent_mb", "MiB (2^20 bytes)", "bytes sent over loopback since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(2)},
	{"boot_total_net_io_ext_sent_mb", "MiB (2^20 bytes)", "bytes sent to other hosts since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(3)},
	{"boot_total_net_io_lo_recv_mb", "MiB (2^20 bytes)", "bytes received over loopback since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(4)},
	{"boot_total_net_io_ext_recv_mb", "MiB (2^20 bytes)", "bytes received from other hosts since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(5)},
}

// Why the exact numbers of a job are absent.
var (
	errNoJob     = errors.New("no job was wrapped")
	errJobGoesOn = errors.New("the job's end is not known")
)

type metricFunc = func(*facts) (float64, error)

func maxOf(c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.summary[c].Max(); ok {
			return v, nil
		}
		return 0, f.why(c)
	}
}

func meanOf(c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.summary[c].Mean(); ok {
			return v, nil
		}
		return 0, f.why(c)
	}
}

func cpuOver(level float64) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.summary[collector.CPUAvg].Share(level); ok {
			return v, nil
		}
		return 0, f.why(collector.CPUAvg)
	}
}

func cpuAt100(f *facts) (float64, error) { return cpuOver(f.at100)(f) }

func cpuHours(f *facts) (float64, error) {
	wall, err := f.wall()
	if err != nil {
		return 0, err
	}
	if f.cpus == 0 {
		if f.perfpy {
			return 0, errors.New("perf.py's file does not tell the number of CPUs: give --cpus N")
		}
		return 0, fmt.Errorf("the number of CPUs is unknown: %w", f.why(collector.CPUAvg))
	}
	return wall * float64(f.cpus) / 3600, nil
}

func unusedCPUHours(f *facts) (float64, error) {
	hours, err := cpuHours(f)
	if err != nil {
		return 0, err
	}
	mean, err := meanOf(collector.CPUAvg)(f)
	if err != nil {
		return 0, err
	}
	return hours * (100 - mean) / 100, nil
}

func bootOf(counter int) metricFunc {
	return func(f *facts) (float64, error) {
		if v := f.boot[counter]; v == v { // not NaN
			return v, nil
		}
		return 0, f.why(collector.Counters()[counter])
	}
}

func ofJob(value func(*Job) float64) metricFunc {
	return func(f *facts) (float64, error) {
		if f.job == nil {
			return 0, f.noJob
		}
		return value(f.job), nil
	}
}

// jobWall is the run's length where a job was wrapped.
func jobWall(f *facts) (float64, error) {
	if f.job == nil {
		return 0, f.noJob
	}
	return f.wall()
}

func jobCPU(j *Job) float64 { return j.UserSeconds + j.SystemSeconds }
func jobRSS(j *Job) float64 { return j.MaxRSSMB }

// needsJob tells whether a metric needs a wrapped job.
func needsJob(name string) bool {
	return name == wallMetric || strings.HasPrefix(name, "job_")
}

// compute evaluates the table. What is absent comes back with its reason.
func (f *facts) compute() (Values, []Missing) {
	values := make(Values, len(metricTable))
	var missing []Missing
	for _, m := range metricTable {
		if f.perfpy && !m.PerfPy {
			continue
		}
		v, err := m.value(f)
		if err != nil {
			missing = append(missing, Missing{m.Name, err.Error()})
			continue
		}
		values[m.Name] = v
	}
	return values, missing
}
