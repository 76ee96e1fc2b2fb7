// Package reportfile reads and writes files that contain a report. It distinguishes perfagent reports, journals and
// perf.py's JSON, writes reports and pages completely or not at all, and locks a report during a push.
package reportfile
