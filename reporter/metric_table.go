package reporter

import (
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
)

var metricTable = filled([]Metric{
	{
		Name: MetricCPUPeak, PerfPy: true,
		Meaning: "highest use of the node's CPUs together",
		How:     "greatest, over all samples, of the mean over CPUs",
		formula: maxOf(collector.CPUAvg),
	},
	{
		Name: MetricCPUMean, PerfPy: true,
		Meaning: "mean use of the node's CPUs",
		How:     "mean over CPUs, weighted by the time that each sample stands for",
		formula: meanOf(collector.CPUAvg),
	},
	{
		Name: "cpu_avg_utilization_at100_pct", PerfPy: true,
		Meaning: "time with all CPUs fully busy",
		How:     "share of the time with the mean over CPUs ≥ 99.95, which rounds to 100.0",
		formula: shareOf(collector.CPUAvg, fullyBusy),
	},
	{
		Name: MetricCPUOver80, PerfPy: true,
		Meaning: "time with the CPUs at 80 % or more",
		How:     "share of the time with the mean over CPUs ≥ 80",
		formula: shareOf(collector.CPUAvg, 80),
	},
	{
		Name: "cpu_avg_utilization_over40_pct", PerfPy: true,
		Meaning: "time with the CPUs at 40 % or more",
		How:     "share of the time with the mean over CPUs ≥ 40",
		formula: shareOf(collector.CPUAvg, 40),
	},
	{
		Name: "cpu_avg_utilization_over20_pct", PerfPy: true,
		Meaning: "time with the CPUs at 20 % or more",
		How:     "share of the time with the mean over CPUs ≥ 20",
		formula: shareOf(collector.CPUAvg, 20),
	},
	{
		Name: "max_t_cpu_pct_per_cpu_min", PerfPy: true,
		Meaning: "highest use of the least busy CPU",
		How:     "greatest, over all samples, of the least busy CPU's percent",
		formula: maxOf(collector.CPUMin),
	},
	{
		Name: "max_t_cpu_pct_per_cpu_max", PerfPy: true,
		Meaning: "highest use of the busiest CPU",
		How:     "greatest, over all samples, of the most busy CPU's percent",
		formula: maxOf(collector.CPUMax),
	},
	{
		Name: MetricCPUHours, Unit: collector.CPUHours, Across: collector.Sum, PerfPy: true,
		Meaning: "CPU time that the node offered",
		How:     "start to end on the monotonic clock × the node's logical CPUs / 3600",
		formula: computed(cpuHours, noColumn),
	},
	{
		Name: MetricUnusedCPUHours, Unit: collector.CPUHours, Across: collector.Sum, PerfPy: true,
		Meaning: "CPU time that was not used",
		How:     "node_cpu_hours × (100 − cpu_avg_utilization_pct) / 100",
		formula: computed(unusedCPUHours, noColumn),
	},
	{
		Name: MetricMemoryPeak, PerfPy: true,
		Meaning: "highest use of the node's memory",
		How:     "greatest of (total − available) / total",
		formula: maxOf(collector.MemPercent),
	},
	{
		Name: MetricDiskPeak, PerfPy: true,
		Meaning: "highest fill of the file system (the fullest of --disk-path)",
		How:     "greatest of used / (used + available to users)",
		formula: maxOf(collector.DiskPercent),
	},
	{
		Name: MetricDiskRead, PerfPy: true,
		Meaning: "bytes read from the node's disks",
		How:     "sum over whole disks since the job's start, each byte once",
		formula: totalOf(collector.DiskRead),
	},
	{
		Name: MetricDiskWritten, PerfPy: true,
		Meaning: "bytes written to the node's disks",
		How:     "sum over whole disks since the job's start, each byte once",
		formula: totalOf(collector.DiskWrite),
	},
	{
		Name: MetricLoopbackSent, PerfPy: true,
		Meaning: "bytes sent over loopback",
		How:     "sum over lo since the job's start",
		formula: totalOf(collector.NetLoSent),
	},
	{
		Name: MetricNetworkSent, PerfPy: true,
		Meaning: "bytes sent to other hosts",
		How:     "sum over the counted interfaces since the job's start, each byte once",
		formula: totalOf(collector.NetExtSent),
	},
	{
		Name: MetricLoopbackReceived, PerfPy: true,
		Meaning: "bytes received over loopback",
		How:     "sum over lo since the job's start",
		formula: totalOf(collector.NetLoRecv),
	},
	{
		Name: MetricNetworkReceived, PerfPy: true,
		Meaning: "bytes received from other hosts",
		How:     "sum over the counted interfaces since the job's start, each byte once",
		formula: totalOf(collector.NetExtRecv),
	},
	{
		Name: MetricWall, Group: GroupJob, Unit: collector.Seconds, Across: collector.Max,
		Meaning: "how long the job ran",
		How:     "from its start to its end on the monotonic clock; exact",
		formula: computed(jobWall, noColumn),
	},
	{
		Name: MetricJobCPU, Group: GroupJob, Unit: collector.Seconds, Across: collector.Sum,
		Meaning: "CPU time of the job",
		How: "user + system of all its processes to its end, short children and daemons included; wait4 and what " +
			"goes on, or the job's control group; exact",
		formula: inPhases(computed(jobCPUSeconds, noColumn)),
	},
	{
		Name: MetricJobMaxRSS, Group: GroupJob, Unit: collector.Mebibytes, Across: collector.Max,
		Meaning: "peak memory of the job's largest process",
		How: "greatest ru_maxrss of the same processes (wait4); exact, but an upper bound where the job is " +
			"smaller than perfagent; of an attached job the highest peak in the table of processes",
		formula: computed(jobMaxRSS, noColumn),
	},
	{
		Name:    "boot_total_disk_io_read_mb",
		Meaning: "bytes read from the node's disks since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		formula: bootOf(collector.DiskRead),
	},
	{
		Name:    "boot_total_disk_io_write_mb",
		Meaning: "bytes written to the node's disks since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		formula: bootOf(collector.DiskWrite),
	},
	{
		Name:    "boot_total_net_io_lo_sent_mb",
		Meaning: "bytes sent over loopback since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		formula: bootOf(collector.NetLoSent),
	},
	{
		Name:    "boot_total_net_io_ext_sent_mb",
		Meaning: "bytes sent to other hosts since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		formula: bootOf(collector.NetExtSent),
	},
	{
		Name:    "boot_total_net_io_lo_recv_mb",
		Meaning: "bytes received over loopback since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		formula: bootOf(collector.NetLoRecv),
	},
	{
		Name:    "boot_total_net_io_ext_recv_mb",
		Meaning: "bytes received from other hosts since boot",
		How:     "the kernel's counters at the end, same devices as the total",
		formula: bootOf(collector.NetExtRecv),
	},
	{
		Name: MetricJobCores, Group: GroupJob, Unit: collector.CPUs, Across: collector.Sum,
		Meaning: "CPUs that the job kept busy, on average",
		How:     "job_cpu_seconds / wall_seconds",
		formula: inPhases(computed(jobCores, noColumn)),
	},
	{
		Name: MetricJobCoresPeak, Group: GroupJob,
		Meaning: "most CPUs that the job kept busy in a sample",
		How:     "greatest, over all samples, of the job's CPU time / time",
		formula: maxOf(collector.JobCPU),
	},
	{
		Name: MetricJobMemoryPeak, Group: GroupJob, Unit: collector.Mebibytes, Across: collector.Max,
		Meaning: "highest memory of the whole job",
		How: "greatest of the samples (pss, rss or cgroup, see job.memory_kind, with swap), of the largest process (wait4), " +
			"and of the control group's own peak less its page cache, and less what the job read from storage and " +
			"wrote",
		formula: inPhases(computed(jobPeakMemory, collector.JobMemory)),
	},
	{
		Name: MetricJobProcesses, Group: GroupJob,
		Meaning: "most processes that the job had at once",
		How:     "greatest over all samples",
		formula: maxOf(collector.JobProcesses),
	},
	{
		Name: MetricJobThreads, Group: GroupJob,
		Meaning: "most threads that the job had at once",
		How:     "greatest over all samples",
		formula: maxOf(collector.JobThreads),
	},
	{
		Name: MetricJobRead, Group: GroupJob,
		Meaning: "bytes that the job read from storage",
		How: "read_bytes of /proc/PID/io and ru_inblock of what has ended, or io.stat of the job's control " +
			"group; page cache hits are not in it",
		formula: totalOf(collector.JobRead),
	},
	{
		Name: MetricJobWritten, Group: GroupJob,
		Meaning: "bytes that the job wrote to storage",
		How:     "write_bytes of /proc/PID/io and ru_oublock of what has ended, or io.stat of the job's control group",
		formula: totalOf(collector.JobWrite),
	},
	{
		Name: MetricLimitCPU, Group: GroupLimits, Unit: collector.Percent, Across: collector.Mean,
		Meaning: "how much of the CPUs that it may use the job used",
		How:     "job_cpu_seconds / (wall_seconds × limits.cpus), of a limit that changes its mean over time",
		formula: computed(limitCPU, noColumn),
	},
	{
		Name: MetricThrottled, Group: GroupLimits, Unit: collector.PercentOfPeriods, Across: collector.Mean,
		Meaning: "CPU quota periods in which the job was stopped",
		How:     "growth of nr_throttled / growth of nr_periods of the group that sets the quota (cpu.stat)",
		formula: computed(throttledPeriods, collector.JobThrottled),
	},
	{
		Name: MetricThrottledSeconds, Group: GroupLimits, Unit: collector.Seconds, Across: collector.Sum,
		Meaning: "how long the CPU quota stopped the job, summed over CPUs",
		How:     "growth of throttled_time (v1) or throttled_usec (v2) of the same group",
		formula: ofAccount(func(a *collector.Account) series.Optional {
			return a.ThrottledSeconds
		}, collector.JobThrottled),
	},
	{
		Name: MetricLimitMemory, Group: GroupLimits, Unit: collector.Percent, Across: collector.Max,
		Meaning: "how close the job came to its memory limit",
		How: "greatest of the samples' working set (use less inactive page cache) of the group that sets the " +
			"limit and, between samples, of the kernel's own peak of that group less its page cache, and less what " +
			"the job read from storage and wrote / limit",
		formula: computed(limitMemory, collector.LimitMemoryPercent),
	},
	{
		Name: MetricJobOOMKills, Group: GroupJob, Unit: collector.Processes, Across: collector.Sum,
		Meaning: "out-of-memory kills in the control group that the job is in",
		How:     "growth of oom_kill of memory.events or memory.oom_control",
		formula: ofAccount(func(a *collector.Account) series.Optional { return a.OOMKills }, collector.JobPageCache),
	},
	{
		Name: MetricHostOOMKills, Unit: collector.Processes, Across: collector.Sum,
		Meaning: "out-of-memory kills on the node, in any group",
		How:     "growth of oom_kill of /proc/vmstat",
		formula: ofAccount(func(a *collector.Account) series.Optional { return a.HostOOMKills }, collector.SwapIn),
	},
	{
		Name: MetricJobPSICPU, Group: GroupJob,
		Meaning: "time in which a task of the job waited for a CPU",
		How:     "growth of total of cpu.pressure some / time",
		formula: stallOf(func(a *collector.Account) series.Optional {
			return a.JobStall.CPUSome
		}, collector.JobPSICPUSome),
	},
	{
		Name: MetricJobPSIMemory, Group: GroupJob,
		Meaning: "time in which all tasks of the job waited for memory",
		How:     "growth of total of memory.pressure full / time",
		formula: stallOf(func(a *collector.Account) series.Optional {
			return a.JobStall.MemoryFull
		}, collector.JobPSIMemoryFull),
	},
	{
		Name: MetricJobPSIIO, Group: GroupJob,
		Meaning: "time in which all tasks of the job waited for storage",
		How:     "growth of total of io.pressure full / time",
		formula: stallOf(func(a *collector.Account) series.Optional {
			return a.JobStall.IOFull
		}, collector.JobPSIIOFull),
	},
	{
		Name:    MetricPSICPUSome,
		Meaning: "time in which a task of the node waited for a CPU",
		How:     "growth of total of /proc/pressure/cpu some / time",
		formula: stallOf(func(a *collector.Account) series.Optional {
			return a.HostStall.CPUSome
		}, collector.PSICPUSome),
	},
	{
		Name:    MetricPSIMemoryFull,
		Meaning: "time in which all tasks of the node waited for memory",
		How:     "growth of total of /proc/pressure/memory full / time",
		formula: stallOf(func(a *collector.Account) series.Optional {
			return a.HostStall.MemoryFull
		}, collector.PSIMemoryFull),
	},
	{
		Name:    MetricPSIIOFull,
		Meaning: "time in which all tasks of the node waited for storage",
		How:     "growth of total of /proc/pressure/io full / time",
		formula: stallOf(func(a *collector.Account) series.Optional {
			return a.HostStall.IOFull
		}, collector.PSIIOFull),
	},
	{
		Name:    MetricIOWait,
		Meaning: "mean share of CPU time that was idle and waited for storage",
		How:     "growth of iowait of /proc/stat / growth of all modes, weighted by time",
		formula: meanOf(collector.CPUIowait),
	},
	{
		Name:    MetricSteal,
		Meaning: "mean share of CPU time that the hypervisor gave to others",
		How:     "growth of steal of /proc/stat / growth of all modes, weighted by time",
		formula: meanOf(collector.CPUSteal),
	},
	{
		Name:    MetricLoad,
		Meaning: "highest load average of a minute",
		How:     "greatest, over all samples, of /proc/loadavg's first number",
		formula: maxOf(collector.Load1),
	},
	{
		Name:    MetricRunning,
		Meaning: "most tasks that ran or waited for a CPU at once",
		How:     "greatest, over all samples, of /proc/loadavg's fourth field",
		formula: maxOf(collector.ProcsRunning),
	},
	{
		Name:    MetricSwapIn,
		Meaning: "bytes that came back from the node's swap",
		How:     "growth of pswpin of /proc/vmstat × page size",
		formula: totalOf(collector.SwapIn),
	},
	{
		Name:    MetricSwapOut,
		Meaning: "bytes that went to the node's swap",
		How:     "growth of pswpout of /proc/vmstat × page size",
		formula: totalOf(collector.SwapOut),
	},
	{
		Name:    "total_net_ib_recv_mb",
		Meaning: "bytes received by the node's ports of InfiniBand and other RDMA devices",
		How:     "growth of port_rcv_data of /sys/class/infiniband × 4; with the bytes of IP over InfiniBand",
		formula: totalOf(collector.NetIBRecv),
	},
	{
		Name:    "total_net_ib_sent_mb",
		Meaning: "bytes sent by the node's ports of InfiniBand and other RDMA devices",
		How:     "growth of port_xmit_data of /sys/class/infiniband × 4; with the bytes of IP over InfiniBand",
		formula: totalOf(collector.NetIBSent),
	},
	{
		Name:    MetricCPUTemperature,
		Meaning: "highest temperature of the node's CPU packages",
		How:     "greatest over all samples, of the sensors of coretemp, k10temp, zenpower or x86_pkg_temp; read every 5 s",
		formula: maxOf(collector.CPUTemperature),
	},
	{
		Name:    MetricCPUThrottleEvents,
		Meaning: "times that cores and packages of the node's CPUs were clocked down for their heat",
		How: "growth of core_throttle_count and package_throttle_count of /sys/devices/system/cpu, of each core and " +
			"package once, from the first second on",
		formula: totalOf(collector.CPUThrottleEvents),
	},
	{
		Name:    MetricCPUThrottleSeconds,
		Meaning: "for how long the node's CPUs were clocked down for their heat",
		How: "growth of core_throttle_total_time_ms and package_throttle_total_time_ms, of the core or package for " +
			"which it is the longest; where the kernel counts it",
		formula: totalOf(collector.CPUThrottleSeconds),
	},
	{
		Name:    MetricNodeEnergy,
		Meaning: "energy that the node's CPU packages and their memory took",
		How: "growth of energy_uj of /sys/class/powercap/intel-rapl:*, of the packages and their dram; without fans, " +
			"disks, GPUs and power supplies",
		formula: totalOf(collector.NodeEnergy),
	},
	{
		Name:    MetricNodePowerPeak,
		Meaning: "highest power that the node's CPU packages and their memory drew",
		How:     "greatest, over all samples, of the same energy / time",
		formula: maxOf(collector.NodePower),
	},
	{
		Name:    MetricNFSRead,
		Meaning: "bytes that came from NFS servers to the node",
		How:     "growth of the fifth number after bytes: of /proc/self/mountstats, of each superblock once",
		formula: totalOf(collector.NFSRead),
	},
	{
		Name:    MetricNFSWritten,
		Meaning: "bytes that went from the node to NFS servers",
		How:     "growth of the sixth number after bytes: of /proc/self/mountstats, of each superblock once",
		formula: totalOf(collector.NFSWrite),
	},
	{
		Name:    MetricLustreRead,
		Meaning: "bytes that the node's processes read from Lustre",
		How:     "growth of the sum of read_bytes of llite/*/stats; what came from the page cache is in it",
		formula: totalOf(collector.LustreRead),
	},
	{
		Name:    MetricLustreWritten,
		Meaning: "bytes that the node's processes wrote to Lustre",
		How:     "growth of the sum of write_bytes of llite/*/stats",
		formula: totalOf(collector.LustreWrite),
	},
})
