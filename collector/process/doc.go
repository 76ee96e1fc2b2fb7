// Package process measures the processes of a job: their CPU time, memory, storage I/O and number. It reads procfs, in
// one pass over it, and runs no other program.
//
// A [Tree] is the job: all descendants of one process. Each call of [Tree.Read] is a scan, unless the cost of the last
// scan defers this one. The costs of scans, memory and storage I/O are measured as CPU time of the reading thread, and
// each cost determines its interval.
//
// A [UsageReader] reads the usage of single processes. The package does not know reports, control groups or samples.
package process
