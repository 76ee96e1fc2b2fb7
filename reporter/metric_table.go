package reporter

import (
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
)

var metricTable = []Metric{
	{
		Name: MetricCPUPeak, Unit: "percent", PerfPy: true,
		Meaning: "highest use of the node's CPUs together",
		How:     "greatest, over all samples, of the mean over CPUs",
		value:   maxOf(collector.CPUAvg),
	},
	{
		Name: MetricCPUMean, Unit: "percent", PerfPy: true,
		Meaning: "mean use of the node's CPUs",
		How:     "mean over CPUs, weighted by the time that each sample stands for",
		value:   meanOf(collector.CPUAvg),
	},
	{
		Name: "cpu_avg_utilization_at100_pct", Unit: "percent of time", PerfPy: true,
		Meaning: "time with all CPUs fully busy",
		How:     "share of the time with the mean over CPUs ≥ 99.95, which rounds to 100.0",
		value:   cpuAt100,
	},
	{
		Name: MetricCPUOver80, Unit: "percent of time", PerfPy: true,
		Meaning: "time with the CPUs at 80 % or more",
		How:     "share of the time with the mean over CPUs ≥ 80",
		value:   cpuOver(80),
	},
	{
		Name: "cpu_avg_utilization_over40_pct", Unit: "percent of time", PerfPy: true,
		Meaning: "time with the CPUs at 40 % or more",
		How:     "share of the time with the mean over CPUs ≥ 40",
		value:   cpuOver(40),
	},
	{
		Name: "cpu_avg_utilization_over20_pct", Unit: "percent of time", PerfPy: true,
		Meaning: "time with the CPUs at 20 % or more",
		How:     "share of the time with the mean over CPUs ≥ 20",
		value:   cpuOver(20),
	},
	{
		Name: "max_t_cpu_pct_per_cpu_min", Unit: "percent", PerfPy: true,
		Meaning: "highest use of the least busy CPU",
		How:     "greatest, over all samples, of the least busy CPU's percent",
		value:   maxOf(collector.CPUMin),
	},
	{
		Name: "max_t_cpu_pct_per_cpu_max", Unit: "percent", PerfPy: true,
		Meaning: "highest use of the busiest CPU",
		How:     "greatest, over all samples, of the most busy CPU's percent",
		value:   maxOf(collector.CPUMax),
	},
	{
		Name: MetricCPUHours, Unit: "CPU hours", PerfPy: true,
		Meaning: "CPU time that the node offered",
		How:     "start to end on the monotonic clock × the node's logical CPUs / 3600",
		value:   cpuHours,
	},
	{
		Name: MetricUnusedCPUHours, Unit: "CPU hours", PerfPy: true,
		Meaning: "CPU time that nobody used",
		How:     "node_cpu_hours × (100 − cpu_avg_utilization_pct) / 100",
		value:   unusedCPUHours,
	},
	{
		Name: MetricMemoryPeak, Unit: "percent", PerfPy: true,
		Meaning: "highest use of the node's memory",
		How:     "greatest of (total − available) / total",
		value:   maxOf(collector.MemPercent),
	},
	{
		Name: MetricDiskPeak, Unit: "percent", PerfPy: true,
		Meaning: "highest fill of the file system (the fullest of --disk-path)",
		How:     "greatest of used / (used + available to users)",
		value:   maxOf(collector.DiskPercent),
	},
	{
		Name: MetricDiskRead, Unit: "MiB (2^20 bytes)", PerfPy: true,
		Meaning: "bytes read from the node's disks",
		How:     "sum over whole disks since the job's start, each byte once",
		value:   maxOf(collector.DiskRead),
	},
	{
		Name: MetricDiskWritten, Unit: "MiB (2^20 bytes)", PerfPy: true,
		Meaning: "bytes written to the node's disks",
		How:     "sum over whole disks since the job's start, each byte once",
		value:   maxOf(collector.DiskWrite),
	},
	{
		Name: MetricLoopbackSent, Unit: "MiB (2^20 bytes)", PerfPy: true,
		Meaning: "bytes sent over loopback",
		How:     "sum over lo since the job's start",
		value:   maxOf(collector.NetLoSent),
	},
	{
		Name: MetricNetworkSent, Unit: "MiB (2^20 bytes)", PerfPy: true,
		Meaning: "bytes sent to other hosts",
		How:     "sum over the counted interfaces since the job's start, each byte once",
		value:   maxOf(collector.NetExtSent),
	},
	{
		Name: MetricLoopbackReceived, Unit: "MiB (2^20 bytes)", PerfPy: true,
		Meaning: "bytes received over loopback",
		How:     "sum over lo since the job's start",
		value:   maxOf(collector.NetLoRecv),
	},
	{
		Name: MetricNetworkReceived, Unit: "MiB (2^20 bytes)", PerfPy: true,
		Meaning: "bytes received from other hosts",
		How:     "sum over the counted interfaces since the job's start, each byte once",
		value:   maxOf(collector.NetExtRecv),
	},
	{
		Name: MetricWall, Unit: "seconds",
		Meaning: "how long the job ran",
		How:     "from its start to its end on the monotonic clock; exact",
		value:   jobWall,
	},
	{
		Name: MetricJobCPU, Unit: "seconds",
		Meaning: "CPU time of the job",
		How: "user + system of all its processes to its end, short children and daemons included; wait4 and what " +
			"goes on, or the job's control group; exact",
		value: jobCPUSeconds,
	},
	{
		Name: MetricJobMaxRSS, Unit: "MiB (2^20 bytes)",
		Meaning: "peak memory of the job's largest process",
		How: "greatest ru_maxrss of the same processes (wait4); exact, but an upper bound where the job is " +
			"smaller than perfagent",
		value: ofJob(jobRSS),
	},
	{
		Name: "boot_total_disk_io_read_mb", Unit: "MiB (2^20 bytes)",
		Meaning: "bytes read from the node's disks since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		value:   bootOf(0),
	},
	{
		Name: "boot_total_disk_io_write_mb", Unit: "MiB (2^20 bytes)",
		Meaning: "bytes written to the node's disks since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		value:   bootOf(1),
	},
	{
		Name: "boot_total_net_io_lo_sent_mb", Unit: "MiB (2^20 bytes)",
		Meaning: "bytes sent over loopback since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		value:   bootOf(2),
	},
	{
		Name: "boot_total_net_io_ext_sent_mb", Unit: "MiB (2^20 bytes)",
		Meaning: "bytes sent to other hosts since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		value:   bootOf(3),
	},
	{
		Name: "boot_total_net_io_lo_recv_mb", Unit: "MiB (2^20 bytes)",
		Meaning: "bytes received over loopback since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		value:   bootOf(4),
	},
	{
		Name: "boot_total_net_io_ext_recv_mb", Unit: "MiB (2^20 bytes)",
		Meaning: "bytes received from other hosts since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		value:   bootOf(5),
	},
	{
		Name: MetricJobCores, Unit: "CPUs",
		Meaning: "CPUs that the job kept busy, on average",
		How:     "job_cpu_seconds / wall_seconds",
		value:   jobCores,
	},
	{
		Name: MetricJobCoresPeak, Unit: "CPUs",
		Meaning: "most CPUs that the job kept busy in a sample",
		How:     "greatest, over all samples, of the job's CPU time / time",
		value:   maxOf(collector.JobCPU),
	},
	{
		Name: MetricJobMemoryPeak, Unit: "MiB (2^20 bytes)",
		Meaning: "highest memory of the whole job",
		How: "greatest of the samples (pss, rss or cgroup, see job.memory_kind), of the largest process (wait4), " +
			"and of the control group's own peak less its page cache, and less what the job read from storage and " +
			"wrote",
		value: jobPeakMemory,
	},
	{
		Name: MetricJobProcesses, Unit: "processes",
		Meaning: "most processes that the job had at once",
		How:     "greatest over all samples",
		value:   maxOf(collector.JobProcesses),
	},
	{
		Name: MetricJobThreads, Unit: "threads",
		Meaning: "most threads that the job had at once",
		How:     "greatest over all samples",
		value:   maxOf(collector.JobThreads),
	},
	{
		Name: MetricJobRead, Unit: "MiB (2^20 bytes)",
		Meaning: "bytes that the job read from storage",
		How: "read_bytes of /proc/PID/io and ru_inblock of what has ended, or io.stat of the job's control " +
			"group; page cache hits are not in it",
		value: maxOf(collector.JobRead),
	},
	{
		Name: MetricJobWritten, Unit: "MiB (2^20 bytes)",
		Meaning: "bytes that the job wrote to storage",
		How:     "write_bytes of /proc/PID/io and ru_oublock of what has ended, or io.stat of the job's control group",
		value:   maxOf(collector.JobWrite),
	},
	{
		Name: MetricLimitCPU, Unit: "percent",
		Meaning: "how much of the CPUs that it may use the job used",
		How:     "job_cpu_seconds / (wall_seconds × limits.cpus), of a limit that changes its mean over time",
		value:   limitCPU,
	},
	{
		Name: MetricThrottled, Unit: "percent of periods",
		Meaning: "CPU quota periods in which the job was stopped",
		How:     "growth of nr_throttled / growth of nr_periods of the group that sets the quota (cpu.stat)",
		value:   throttledPeriods,
	},
	{
		Name: MetricThrottledSeconds, Unit: "seconds",
		Meaning: "how long the CPU quota stopped the job, summed over CPUs",
		How:     "growth of throttled_time (v1) or throttled_usec (v2) of the same group",
		value: ofAccount(func(a *collector.Account) series.Optional {
			return a.ThrottledSeconds
		}, collector.JobThrottled),
	},
	{
		Name: MetricLimitMemory, Unit: "percent",
		Meaning: "how close the job came to its memory limit",
		How: "greatest of the samples' working set (use less inactive page cache) of the group that sets the " +
			"limit and, between samples, of the kernel's own peak of that group less its page cache, and less what " +
			"the job read from storage and wrote / limit",
		value: limitMemory,
	},
	{
		Name: MetricJobOOMKills, Unit: "processes",
		Meaning: "processes killed for want of memory in the control group that the job is in",
		How:     "growth of oom_kill of memory.events or memory.oom_control",
		value:   ofAccount(func(a *collector.Account) series.Optional { return a.OOMKills }, collector.JobPageCache),
	},
	{
		Name: MetricHostOOMKills, Unit: "processes",
		Meaning: "processes killed for want of memory on the node, in whatever group",
		How:     "growth of oom_kill of /proc/vmstat",
		value:   ofAccount(func(a *collector.Account) series.Optional { return a.HostOOMKills }, collector.SwapIn),
	},
	{
		Name: MetricJobPSICPU, Unit: "percent of time",
		Meaning: "time in which a task of the job waited for a CPU",
		How:     "growth of total of cpu.pressure some / time",
		value: stallOf(func(a *collector.Account) series.Optional {
			return a.JobStall.CPUSome
		}, collector.JobPSICPUSome),
	},
	{
		Name: MetricJobPSIMemory, Unit: "percent of time",
		Meaning: "time in which all tasks of the job waited for memory",
		How:     "growth of total of memory.pressure full / time",
		value: stallOf(func(a *collector.Account) series.Optional {
			return a.JobStall.MemoryFull
		}, collector.JobPSIMemoryFull),
	},
	{
		Name: MetricJobPSIIO, Unit: "percent of time",
		Meaning: "time in which all tasks of the job waited for storage",
		How:     "growth of total of io.pressure full / time",
		value: stallOf(func(a *collector.Account) series.Optional {
			return a.JobStall.IOFull
		}, collector.JobPSIIOFull),
	},
	{
		Name: MetricPSICPUSome, Unit: "percent of time",
		Meaning: "time in which a task of the node waited for a CPU",
		How:     "growth of total of /proc/pressure/cpu some / time",
		value: stallOf(func(a *collector.Account) series.Optional {
			return a.HostStall.CPUSome
		}, collector.PSICPUSome),
	},
	{
		Name: MetricPSIMemoryFull, Unit: "percent of time",
		Meaning: "time in which all tasks of the node waited for memory",
		How:     "growth of total of /proc/pressure/memory full / time",
		value: stallOf(func(a *collector.Account) series.Optional {
			return a.HostStall.MemoryFull
		}, collector.PSIMemoryFull),
	},
	{
		Name: MetricPSIIOFull, Unit: "percent of time",
		Meaning: "time in which all tasks of the node waited for storage",
		How:     "growth of total of /proc/pressure/io full / time",
		value: stallOf(func(a *collector.Account) series.Optional {
			return a.HostStall.IOFull
		}, collector.PSIIOFull),
	},
	{
		Name: MetricIOWait, Unit: "percent",
		Meaning: "mean share of CPU time that was idle and waited for storage",
		How:     "growth of iowait of /proc/stat / growth of all modes, weighted by time",
		value:   meanOf(collector.CPUIowait),
	},
	{
		Name: MetricSteal, Unit: "percent",
		Meaning: "mean share of CPU time that the hypervisor gave to others",
		How:     "growth of steal of /proc/stat / growth of all modes, weighted by time",
		value:   meanOf(collector.CPUSteal),
	},
	{
		Name: MetricLoad, Unit: "tasks",
		Meaning: "highest load average of a minute",
		How:     "greatest, over all samples, of /proc/loadavg's first number",
		value:   maxOf(collector.Load1),
	},
	{
		Name: MetricRunning, Unit: "tasks",
		Meaning: "most tasks that ran or waited for a CPU at once",
		How:     "greatest, over all samples, of /proc/loadavg's fourth field",
		value:   maxOf(collector.ProcsRunning),
	},
	{
		Name: MetricSwapIn, Unit: "MiB (2^20 bytes)",
		Meaning: "bytes that came back from the node's swap",
		How:     "growth of pswpin of /proc/vmstat × page size",
		value:   maxOf(collector.SwapIn),
	},
	{
		Name: MetricSwapOut, Unit: "MiB (2^20 bytes)",
		Meaning: "bytes that went to the node's swap",
		How:     "growth of pswpout of /proc/vmstat × page size",
		value:   maxOf(collector.SwapOut),
	},
}
