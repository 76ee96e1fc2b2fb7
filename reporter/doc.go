// Package reporter says what a finished run used: the [Report], the table of metrics, merging, and
// the formats in which a report is stored.
//
// [New] builds a Report from a [collector.Recording]; [Merge] joins the nodes of several. Neither
// draws conclusions: package diagnosis does. A Report is a value that does not change afterwards.
// [Metrics] is the only place that defines a metric, and spells its name.
//
// [Encode], [Decode] and [Scan] are for our own files, [ParsePerfPy] and [EncodePerfPy] for
// perf.py's, [WriteCSV] for spreadsheets. The package opens no files: package reportfile does.
package reporter
