// Package process measures what the processes of a job use: CPU time, memory, storage bytes, and
// how many they are. It reads procfs, in one pass over it, and runs no other program.
//
// A [Tree] is the job: all descendants of one process. Each call of [Tree.Read] is a scan, unless
// the last scan cost so much that this one is put off. What scans, memory and storage bytes cost is
// measured as CPU time of the reading thread, and each has an interval of its own that follows from
// its cost.
//
// A [UsageReader] reads what single processes use. The package knows nothing of reports, control
// groups or samples.
package process
