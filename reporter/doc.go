// Package reporter says what a finished run used: the [Report], its file, the
// one table of metrics, and the summary that people read.
//
// A [collector.Recording] becomes a Report by [New]; a Report is a value that
// nobody changes afterwards. [Metrics] is the only place that spells the name of
// a metric. [Read] gives a Report from any file that we know: our own, perf.py's,
// or a [Journal] that a crash left behind.
package reporter
