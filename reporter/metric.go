package reporter

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
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
	summary []*series.Summary // by collector.Column
	// at100 is the level of cpu_avg_utilization_at100_pct: 99.95, or perf.py's 100.
	at100 float64
	wall  func() (float64, error) // seconds from start to end
	cpus  int
	// length is the time between the first and the last Reading, seconds.
	length float64
	boot   [6]float64 // by collector.Counters; NaN = never read
	job    *Job
	noJob  error // why job is nil
	// account is nil for a report that has none: perf.py's.
	account *collector.Account
	gpus    []collector.GPU
	// why says why a column was never measured.
	why func(collector.Column) error
	// perfpy: computed from samples by perf.py's rules.
	perfpy bool
}

// Metrics is the one table of metrics, in the order of output: perf.py's
// eighteen, the exact ones of the job, the counters since boot.
func Metrics() []Metric { return metricTable }

// MetricNamed finds a metric, also one of a GPU by its own name: gpu_0_energy_joules.
func MetricNamed(name string) (Metric, bool) {
	for _, m := range metricTable {
		if m.Name == name {
			return m, true
		}
	}
	return gpuMetricNamed(name)
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

	jobCPUMetric        = "job_cpu_seconds"
	jobCoresMetric      = "job_avg_cpu_cores"
	jobCoresPeakMetric  = "max_t_job_cpu_cores"
	jobPeakMemoryMetric = "job_peak_memory_mb"
	jobProcessesMetric  = "max_t_job_processes"
	jobThreadsMetric    = "max_t_job_threads"
	jobReadMetric       = "total_job_io_read_mb"
	jobWriteMetric      = "total_job_io_write_mb"
	throttledMetric     = "job_throttled_periods_pct"
	throttledForMetric  = "job_throttled_seconds"
	limitMemoryMetric   = "max_t_limit_memory_pct"
	limitCPUMetric      = "limit_cpu_utilization_pct"
	iowaitMetric        = "cpu_avg_iowait_pct"
	stealMetric         = "cpu_avg_steal_pct"
	loadMetric          = "max_t_load_1m"
	runningMetric       = "max_t_procs_running"
	swapInMetric        = "total_swap_in_mb"
	swapOutMetric       = "total_swap_out_mb"
	oomMetric           = "job_oom_kills"
	hostOOMMetric       = "host_oom_kills"
	psiMemoryFullMetric = "psi_memory_full_avg_pct"
	psiIOFullMetric     = "psi_io_full_avg_pct"
	psiCPUSomeMetric    = "psi_cpu_some_avg_pct"
	jobPSICPUMetric     = "job_psi_cpu_some_avg_pct"
	jobPSIMemoryMetric  = "job_psi_memory_full_avg_pct"
	jobPSIIOMetric      = "job_psi_io_full_avg_pct"
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
	{jobCPUMetric, "seconds", "CPU time of the job", "user + system of all its processes to its end, short children and daemons included; wait4 and what goes on, or the job's control group; exact", false, jobCPUSeconds},
	{jobRSSMetric, "MiB (2^20 bytes)", "peak memory of the job's largest process", "greatest ru_maxrss of the same processes (wait4); exact, but an upper bound where the job is smaller than perfagent", false, ofJob(jobRSS)},
	{"boot_total_disk_io_read_mb", "MiB (2^20 bytes)", "bytes read from the node's disks since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(0)},
	{"boot_total_disk_io_write_mb", "MiB (2^20 bytes)", "bytes written to the node's disks since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(1)},
	{"boot_total_net_io_lo_sent_mb", "MiB (2^20 bytes)", "bytes sent over loopback since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(2)},
	{"boot_total_net_io_ext_sent_mb", "MiB (2^20 bytes)", "bytes sent to other hosts since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(3)},
	{"boot_total_net_io_lo_recv_mb", "MiB (2^20 bytes)", "bytes received over loopback since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(4)},
	{"boot_total_net_io_ext_recv_mb", "MiB (2^20 bytes)", "bytes received from other hosts since boot", "the kernel's counters at the end, same devices as the total", false, bootOf(5)},
	{jobCoresMetric, "CPUs", "CPUs that the job kept busy, on average", "job_cpu_seconds / wall_seconds", false, jobCores},
	{jobCoresPeakMetric, "CPUs", "most CPUs that the job kept busy in a sample", "greatest, over all samples, of the job's CPU time / time", false, maxOf(collector.JobCPU)},
	{jobPeakMemoryMetric, "MiB (2^20 bytes)", "highest memory of the whole job", "greatest of the samples (pss, rss or cgroup, see job.memory_kind), of the largest process (wait4), and of the control group's own peak less its page cache, and less what the job read from storage and wrote", false, jobPeakMemory},
	{jobProcessesMetric, "processes", "most processes that the job had at once", "greatest over all samples", false, maxOf(collector.JobProcesses)},
	{jobThreadsMetric, "threads", "most threads that the job had at once", "greatest over all samples", false, maxOf(collector.JobThreads)},
	{jobReadMetric, "MiB (2^20 bytes)", "bytes that the job read from storage", "read_bytes of /proc/PID/io and ru_inblock of what has ended, or io.stat of the job's control group; page cache hits are not in it", false, maxOf(collector.JobRead)},
	{jobWriteMetric, "MiB (2^20 bytes)", "bytes that the job wrote to storage", "write_bytes of /proc/PID/io and ru_oublock of what has ended, or io.stat of the job's control group", false, maxOf(collector.JobWrite)},
	{limitCPUMetric, "percent", "how much of the CPUs that it may use the job used", "job_cpu_seconds / (wall_seconds × limits.cpus), of a limit that changes its mean over time", false, limitCPU},
	{throttledMetric, "percent of periods", "CPU quota periods in which the job was stopped", "growth of nr_throttled / growth of nr_periods of the group that sets the quota (cpu.stat)", false, throttledPeriods},
	{throttledForMetric, "seconds", "how long the CPU quota stopped the job, summed over CPUs", "growth of throttled_time (v1) or throttled_usec (v2) of the same group", false, ofAccount(func(a *collector.Account) series.Optional { return a.ThrottledSeconds }, collector.JobThrottled)},
	{limitMemoryMetric, "percent", "how close the job came to its memory limit", "greatest of the samples' working set (use less inactive page cache) of the group that sets the limit and, between samples, of the kernel's own peak of that group less its page cache, and less what the job read from storage and wrote / limit", false, limitMemory},
	{oomMetric, "processes", "processes killed for want of memory in the control group that the job is in", "growth of oom_kill of memory.events or memory.oom_control", false, ofAccount(func(a *collector.Account) series.Optional { return a.OOMKills }, collector.JobPageCache)},
	{hostOOMMetric, "processes", "processes killed for want of memory on the node, in whatever group", "growth of oom_kill of /proc/vmstat", false, ofAccount(func(a *collector.Account) series.Optional { return a.HostOOMKills }, collector.SwapIn)},
	{jobPSICPUMetric, "percent of time", "time in which a task of the job waited for a CPU", "growth of total of cpu.pressure some / time", false, stallOf(func(a *collector.Account) series.Optional { return a.JobStall.CPUSome }, collector.JobPSICPUSome)},
	{jobPSIMemoryMetric, "percent of time", "time in which all tasks of the job waited for memory", "growth of total of memory.pressure full / time", false, stallOf(func(a *collector.Account) series.Optional { return a.JobStall.MemoryFull }, collector.JobPSIMemoryFull)},
	{jobPSIIOMetric, "percent of time", "time in which all tasks of the job waited for storage", "growth of total of io.pressure full / time", false, stallOf(func(a *collector.Account) series.Optional { return a.JobStall.IOFull }, collector.JobPSIIOFull)},
	{psiCPUSomeMetric, "percent of time", "time in which a task of the node waited for a CPU", "growth of total of /proc/pressure/cpu some / time", false, stallOf(func(a *collector.Account) series.Optional { return a.HostStall.CPUSome }, collector.PSICPUSome)},
	{psiMemoryFullMetric, "percent of time", "time in which all tasks of the node waited for memory", "growth of total of /proc/pressure/memory full / time", false, stallOf(func(a *collector.Account) series.Optional { return a.HostStall.MemoryFull }, collector.PSIMemoryFull)},
	{psiIOFullMetric, "percent of time", "time in which all tasks of the node waited for storage", "growth of total of /proc/pressure/io full / time", false, stallOf(func(a *collector.Account) series.Optional { return a.HostStall.IOFull }, collector.PSIIOFull)},
	{iowaitMetric, "percent", "mean share of CPU time that was idle and waited for storage", "growth of iowait of /proc/stat / growth of all modes, weighted by time", false, meanOf(collector.CPUIowait)},
	{stealMetric, "percent", "mean share of CPU time that the hypervisor gave to others", "growth of steal of /proc/stat / growth of all modes, weighted by time", false, meanOf(collector.CPUSteal)},
	{loadMetric, "tasks", "highest load average of a minute", "greatest, over all samples, of /proc/loadavg's first number", false, maxOf(collector.Load1)},
	{runningMetric, "tasks", "most tasks that ran or waited for a CPU at once", "greatest, over all samples, of /proc/loadavg's fourth field", false, maxOf(collector.ProcsRunning)},
	{swapInMetric, "MiB (2^20 bytes)", "bytes that came back from the node's swap", "growth of pswpin of /proc/vmstat × page size", false, maxOf(collector.SwapIn)},
	{swapOutMetric, "MiB (2^20 bytes)", "bytes that went to the node's swap", "growth of pswpout of /proc/vmstat × page size", false, maxOf(collector.SwapOut)},
}

// Why the exact numbers of a job are absent.
var (
	errNoJob     = errors.New("no job was wrapped")
	errJobGoesOn = errors.New("the job's end is not known")

	errNoGroup       = errors.New("there is no control group to be seen")
	errNoMemoryLimit = errors.New("no control group limits the memory")
	errNoQuota       = errors.New("no control group limits the CPU time")
	errNoPeriod      = errors.New("no period of the CPU quota passed while the job ran")
	errSharedGroup   = errors.New("others are in the job's control group: perfagent run --cgroup create makes one for the job")
	errJobOver       = errors.New("the job ended before it was looked at")
	errNoEnergy      = errors.New("the device has no energy counter that can be read")
	errNoCounter     = errors.New("the control group has no such counter")
)

// NothingAmiss tells whether a reason of Missing is that there was nothing to measure: no
// job, no limit. A summary for people says nothing of it.
func NothingAmiss(why string) bool {
	for _, err := range []error{errNoJob, errNoGroup, errNoMemoryLimit, errNoQuota, errNoPeriod, errSharedGroup, errJobOver, errNoEnergy, errNoCounter} {
		if why == err.Error() {
			return true
		}
	}
	return false
}

// column is the summary of a column; an empty one where there is none.
func (f *facts) column(c collector.Column) *series.Summary {
	if int(c) < len(f.summary) {
		return f.summary[c]
	}
	return series.NewSummary()
}

type metricFunc = func(*facts) (float64, error)

func maxOf(c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.column(c).Max(); ok {
			return v, nil
		}
		return 0, f.why(c)
	}
}

func meanOf(c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.column(c).Mean(); ok {
			return v, nil
		}
		return 0, f.why(c)
	}
}

func cpuOver(level float64) metricFunc {
	return func(f *facts) (float64, error) {
		if v, ok := f.column(collector.CPUAvg).Share(level); ok {
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

// errOpenCPU is why the job's CPU time is not told: job.cpu_seconds has what is known of it.
var errOpenCPU = errors.New("what processes of the job that go on have used could not be read at its end")

// jobCPUSeconds is the job's CPU time; of a job the end of which is not known, what its
// account says so far.
func jobCPUSeconds(f *facts) (float64, error) {
	switch {
	case f.account != nil && f.account.CPUOpen:
		return 0, errOpenCPU
	case f.job != nil:
		return jobCPU(f.job), nil
	case f.account != nil && f.account.CPUSeconds.Known():
		return float64(f.account.CPUSeconds), nil
	}
	return 0, f.noJob
}

func jobCores(f *facts) (float64, error) {
	cpu, err := jobCPUSeconds(f)
	if err != nil {
		return 0, err
	}
	return perWall(f, cpu)
}

// perWall divides by the run's length.
func perWall(f *facts, v float64) (float64, error) {
	wall, err := f.wall()
	if err != nil {
		return 0, err
	}
	if !(wall > 0) {
		return 0, errors.New("the run has no length")
	}
	return v / wall, nil
}

func limitCPU(f *facts) (float64, error) {
	cpu, err := jobCPUSeconds(f)
	if err != nil {
		return 0, err
	}
	wall, err := f.wall()
	if err != nil {
		return 0, err
	}
	if f.account == nil || !(f.account.Limits.CPUs > 0) || !(wall > 0) {
		return 0, errors.New("how many CPUs the job may use is not known")
	}
	allowed := wall * f.account.Limits.CPUs
	if a := f.account; a.LimitCPUSeconds > 0 && f.length > 0 { // the limit may have changed meanwhile
		allowed = wall * a.LimitCPUSeconds / f.length
	}
	return min(100, 100*cpu/allowed), nil
}

func jobPeakMemory(f *facts) (float64, error) {
	if f.job != nil && f.job.PeakMemoryMB > 0 {
		return f.job.PeakMemoryMB, nil
	}
	return maxOf(collector.JobMemory)(f)
}

// limitMemory is how much of the limit was reached. Between samples the kernel's own peak
// tells, and that it had to kill.
func limitMemory(f *facts) (float64, error) {
	pct, err := maxOf(collector.LimitMemoryPercent)(f)
	if f.account != nil && f.account.FullAtKillMB.Known() && limitKills(f.account) > 0 {
		return 100, nil
	}
	if between := limitReached(f); between > pct {
		return between, nil
	}
	return pct, err
}

// limitReached is what the kernel's peaks tell of the time between samples, without page
// cache that may have come and gone.
func limitReached(f *facts) float64 {
	a := f.account
	if a == nil || f.job == nil || !(a.Limits.MemoryMB > 0) {
		return math.NaN()
	}
	return float64(a.LimitReachedPct) - 100*unseenCache(f.job, a)/float64(a.Limits.MemoryMB)
}

func throttledPeriods(f *facts) (float64, error) {
	if f.account == nil || !(f.account.Periods > 0) || !f.account.Throttled.Known() {
		return 0, f.why(collector.JobThrottled)
	}
	return 100 * float64(f.account.Throttled/f.account.Periods), nil
}

// ofAccount gives a counter of the account; the column tells why it is absent.
func ofAccount(value func(*collector.Account) series.Optional, c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		if f.account != nil {
			if v := value(f.account); v.Known() {
				return float64(v), nil
			}
		}
		return 0, f.why(c)
	}
}

// stallOf gives the share of the run that a stall took.
func stallOf(value func(*collector.Account) series.Optional, c collector.Column) metricFunc {
	return func(f *facts) (float64, error) {
		seconds, err := ofAccount(value, c)(f)
		if err != nil {
			return 0, err
		}
		share, err := perWall(f, seconds)
		return min(100, 100*share), err
	}
}

func jobCPU(j *Job) float64 { return j.CPUSeconds }
func jobRSS(j *Job) float64 { return j.MaxRSSMB }

// GPUMetrics lists the metrics that each GPU has one of, in the order of output. {i} in
// their names stands for the device's place among the node's GPUs, from 0 on.
func GPUMetrics() []Metric {
	var out []Metric
	for _, m := range gpuMetrics() {
		out = append(out, m.Metric)
	}
	return out
}

// GPUMetrics lists the metrics that the node's GPUs may have, by their own names.
func (n *Node) GPUMetrics() []Metric {
	var out []Metric
	for i := range min(len(n.GPUs), collector.MaxGPUs) {
		for _, m := range gpuMetrics() {
			named, _ := gpuMetricNamed(gpuMetricName(m.Name, i))
			out = append(out, named)
		}
	}
	return out
}

// gpuMetricNamed finds the metric of a GPU.
func gpuMetricNamed(name string) (Metric, bool) {
	if !strings.Contains(name, "gpu_") {
		return Metric{}, false
	}
	for _, m := range gpuMetrics() {
		before, after, _ := strings.Cut(m.Name, "{i}")
		number, ok := strings.CutPrefix(name, before)
		if ok {
			number, ok = strings.CutSuffix(number, after)
		}
		device, err := strconv.Atoi(number)
		if ok && err == nil && device >= 0 && device < collector.MaxGPUs && gpuMetricName(m.Name, device) == name {
			m.Name = name
			m.Metric.value = func(f *facts) (float64, error) { return m.value(f, device) }
			return m.Metric, true
		}
	}
	return Metric{}, false
}

// gpuMetric is a metric that each GPU has one of; {i} stands for the device's place among
// the node's GPUs.
type gpuMetric struct {
	Metric
	value func(f *facts, device int) (float64, error)
}

// gpuMetrics lists them. Like the table, it is in the order of output.
func gpuMetrics() []gpuMetric {
	return []gpuMetric{
		{Metric{Name: "gpu_{i}_avg_utilization_pct", Unit: "percent", Meaning: "share of the time in which any kernel ran on the GPU; how much of it the kernels used is not known",
			How: "mean of the driver's utilization, weighted by time"}, gpuMean(collector.GPUUtilization)},
		{Metric{Name: "max_t_gpu_{i}_memory_used_mb", Unit: "MiB (2^20 bytes)", Meaning: "highest memory in use on the GPU, by whomever",
			How: "greatest over all samples"}, gpuMax(collector.GPUMemoryUsed)},
		{Metric{Name: "max_t_gpu_{i}_power_watts", Unit: "W", Meaning: "highest power that the GPU drew", How: "greatest over all samples"}, gpuMax(collector.GPUPower)},
		{Metric{Name: "max_t_gpu_{i}_temperature_celsius", Unit: "°C", Meaning: "highest temperature of the GPU", How: "greatest over all samples"}, gpuMax(collector.GPUTemperature)},
		{Metric{Name: "gpu_{i}_energy_joules", Unit: "J", Meaning: "energy that the GPU took", How: "growth of the device's own counter; exact"}, gpuEnergy},
	}
}

func gpuMax(k collector.GPUKey) func(*facts, int) (float64, error) {
	return func(f *facts, device int) (float64, error) { return maxOf(collector.GPUColumn(device, k))(f) }
}

func gpuMean(k collector.GPUKey) func(*facts, int) (float64, error) {
	return func(f *facts, device int) (float64, error) { return meanOf(collector.GPUColumn(device, k))(f) }
}

func gpuEnergy(f *facts, device int) (float64, error) {
	if device >= len(f.gpus) {
		return 0, f.why(collector.GPUColumn(device, collector.GPUPower))
	}
	if v := f.gpus[device].EnergyJoules; v.Known() {
		return float64(v), nil
	}
	return 0, errNoEnergy
}

// gpuMetricName is the name of a device's metric.
func gpuMetricName(pattern string, device int) string {
	return strings.Replace(pattern, "{i}", strconv.Itoa(device), 1)
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
	for i := range f.gpus {
		for _, m := range gpuMetrics() {
			name := gpuMetricName(m.Name, i)
			if v, err := m.value(f, i); err != nil {
				missing = append(missing, Missing{name, err.Error()})
			} else {
				values[name] = v
			}
		}
	}
	return values, missing
}
