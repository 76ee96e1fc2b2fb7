// Package reportfile is the front door to files that hold a report: it tells perfagent reports,
// journals and perf.py's JSON apart, writes reports and pages whole or not at all, and locks a
// report that is being pushed.
package reportfile
