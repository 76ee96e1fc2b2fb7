// Package reportfile is the front door to files that hold a report.
package reportfile
