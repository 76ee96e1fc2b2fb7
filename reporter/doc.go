// Package reporter reports the resource usage of a finished run: the [Report], the table of metrics, merging, and
// the formats in which a report is stored.
//
// [New] builds a Report from a [collector.Recording]; [Merge] joins the nodes of several Reports. Neither draws
// conclusions: package diagnosis does. A Report does not change once it is built. [Metrics] is the only place that
// defines a metric and its name.
//
// [Encode], [Decode] and [Scan] handle perfagent's own files, [ParsePerfPy] and [EncodePerfPy] perf.py's files;
// [WriteCSV] writes for spreadsheets. The package opens no files: package reportfile does.
package reporter
