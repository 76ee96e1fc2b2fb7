// Package host reads the kernel's counters of this machine, and of a job on it, at one instant.
//
// A [Reader] takes a [Reading]: raw counters and gauges, never rates. Each kernel file has its own Go file:
// cpu_linux.go reads /proc/stat, diskio_linux.go reads /proc/diskstats. A source that fails leaves its part of the
// Reading unset, with the error in [Reading.Failed], and is tried again in the next Reading. On systems other than
// Linux the numbers come from gopsutil. With [Options.Gopsutil], they also do on Linux, for comparison.
//
// The job's usage combines the numbers of its control group and its processes: [JobOptions] configures the sources,
// [JobUsage] is the result. The victims of the OOM killer come from the kernel's log ([Reader.Victims]).
//
// The package does not compare Readings; package collector does. If a file system, process or driver hangs, the package
// waits for it only once, and briefly.
package host
