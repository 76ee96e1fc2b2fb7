// Package host reads what the kernel says about this machine, and about a job on it, at one
// instant.
//
// A [Reader] takes a [Reading]: raw counters and gauges, never rates. Each of the kernel's files is
// one file of this package: /proc/stat is read in cpu_linux.go, /proc/diskstats in diskio_linux.go.
// A source that fails leaves its part of the Reading absent, with the error in [Reading.Failed],
// and is asked again next time. On systems without these files gopsutil is asked instead, and
// where [Options] say so on Linux too, so that one can be checked by the other.
//
// What the job itself uses is put together from the numbers of its control group and its
// processes: [JobOptions] say where to look, [JobUsage] is what was found. The kernel's log names
// the victims of its OOM killer ([Reader.Victims]).
//
// The package computes nothing from two Readings; package collector does. A file system, a process
// or a driver that hangs is waited for once, and briefly.
package host
