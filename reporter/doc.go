// Package reporter reports the resource usage of a run. It defines the [Report] and the table of metrics, merges
// reports, and encodes and decodes the formats in which they are stored.
//
// [New] builds a Report from a [collector.Recording]; [Merge] joins the nodes of several Reports. Neither draws
// conclusions; package diagnosis does. A Report does not change once it is built. [Metrics] is the only place that
// defines a metric and its name.
//
// [Encode], [Decode] and [Scan] handle perfagent's own files, [ParsePerfPy] and [EncodePerfPy] handle perf.py's files,
// and [WriteCSV] writes tables for spreadsheets. The package opens no files except the temporary file of a [Merger];
// package reportfile does.
package reporter
