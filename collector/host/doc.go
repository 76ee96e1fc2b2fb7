// Package host reads the kernel's counters of this machine, and of a job on it, at one instant.
//
// A [Reader] takes a [Reading]: raw counters and gauges, never rates. Each kernel file has its own Go file:
// cpu_linux.go reads /proc/stat, diskio_linux.go reads /proc/diskstats. A source that fails leaves its part of the
// Reading unset, with the error in [Reading.Failed], and is tried again in the next Reading. On systems without these
// files, and on Linux with [Options.Gopsutil], the numbers come from gopsutil, so that one can be checked against the
// other.
//
// The job's usage combines the numbers of its control group and its processes: [JobOptions] configures the sources,
// [JobUsage] is the result. The kernel's log names the victims of its OOM killer ([Reader.Victims]).
//
// The package compares no two Readings; package collector does. A file system, process or driver that hangs is waited
// for once, and briefly.
package host
