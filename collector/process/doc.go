// Package process measures the processes of a job: their CPU time, memory, storage I/O and number. It reads procfs in
// one pass and runs no other program.
//
// A [Tree] tracks the processes of a job: all descendants of one process. Each call to [Tree.Read] scans them, unless
// the previous scan was so expensive that this one is deferred. Scans, measurements of memory and measurements of
// storage I/O are timed separately by the CPU time of the reading thread; the more CPU time one of them takes, the less
// often it runs.
//
// A [UsageReader] reads the usage of single processes. The package is independent of reports, control groups and
// samples.
package process
