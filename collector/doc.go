// Package collector samples a host while a job runs, and keeps the [Account] of the run.
//
// A sample goes through these steps:
//
//  1. A [host.Reader] takes a [host.Reading]: raw counters and gauges at one instant. It reads all kernel files; this
//     package reads none.
//  2. [CounterState.Next], a pure function of the earlier state and the new Reading, makes a [Sample]. Only there do
//     ticks become percentages and bytes become rates.
//  3. The accountTracker, also a pure function, updates the [Account] of the job: its limits, OOM kills and stalls
//     since the baseline.
//  4. The [Sampler], one goroutine, adds every Sample to the running summaries (exact totals, peaks, shares) and to the
//     ring (for charts), and passes it to an observer (the journal).
//  5. When the job ends, the Sampler takes a closing Reading. The report is built from its [Recording].
//
// Each column of a Sample is a row of the table in column.go. The package does not depend on commands, reports or
// servers. Missing values are NaN in memory and are never written as a number.
package collector
