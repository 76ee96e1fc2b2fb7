// Package collector says what the host did while a job ran.
//
// The life of a sample:
//
//  1. A [Reader] takes a [Reading]: what the kernel said at one instant, as raw
//     counters and gauges, never rates. Each source (cpu, memory, disk, disk_io,
//     network) is one file of this package; one that fails leaves its part
//     absent, with the error, and is asked again next time.
//  2. [Progress.Next], a pure function of what went before and of the new
//     Reading, makes a [Sample]. There, and only there, ticks become percents
//     and bytes become rates.
//  3. The [Sampler], one goroutine, adds every Sample to the running summaries
//     (exact totals, peaks, shares) and to the ring (pictures), and hands it to
//     an observer (the journal).
//  4. When the job ends the Sampler takes a closing Reading, and its
//     [Recording] is what the report is made from.
//
// The package knows nothing of jobs, files of its callers or reports. Absent is
// written NaN inside the arithmetic and never leaves the program as a number.
package collector
