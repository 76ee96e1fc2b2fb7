// Package collector samples a host while a job runs, and keeps the account of the run.
//
// The life of a sample:
//
//  1. A [host.Reader] takes a [host.Reading]: what the kernel said at one instant, as raw counters and gauges. It
//     reads all files. This package reads none.
//  2. [CounterState.Next], a pure function of what went before and of the new Reading, makes a [Sample]. There,
//     and only there, ticks become percents and bytes become rates.
//  3. The ledger, a pure function too, brings the [Account] of the job up to the Reading: its limits, and its OOM
//     kills and stalls since the baseline.
//  4. The [Sampler], one goroutine, adds every Sample to the running summaries (exact totals, peaks, shares) and to the
//     ring (pictures), and hands it to an observer (the journal).
//  5. When the job ends the Sampler takes a closing Reading, and its [Recording] is what the report is made from.
//
// Each column of a Sample is one row of the table in sample.go. The package knows nothing of
// commands, reports or servers. Absent is written NaN inside the arithmetic and never leaves the
// program as a number.
package collector
