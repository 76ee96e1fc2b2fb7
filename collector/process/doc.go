// Package process measures the processes of a job: their CPU time, memory, storage I/O and number. It reads procfs, in
// one pass, and runs no other program.
//
// A [Tree] tracks the processes of a job: all descendants of one process. Each call to [Tree.Read] is a scan, unless
// the previous scan cost so much that this one is deferred. The costs of scanning and of measuring memory and storage
// I/O are measured as CPU time of the reading thread, and each cost determines how often it is paid.
//
// A [UsageReader] reads the usage of single processes. The package does not know reports, control groups or samples.
package process
