// Package reporter reports the resource usage of a finished run: the [Report], the table of metrics, merging, and
// the formats in which a report is stored.
//
// [New] builds a Report from a [collector.Recording]; [Merge] joins the nodes of several. Neither
// draws conclusions: package diagnosis does. A Report does not change after it was built.
// [Metrics] is the only place that defines a metric and its name.
//
// [Encode], [Decode] and [Scan] are for perfagent's own files, [ParsePerfPy] and [EncodePerfPy] for
// perf.py's, [WriteCSV] for spreadsheets. The package opens no files: package reportfile does.
package reporter
