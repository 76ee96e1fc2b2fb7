// Package process says what the processes of a job use: processor time, memory,
// storage bytes, how many they are. It reads procfs, in one pass over it, and
// runs no other program.
//
// A [Tree] is the job: all descendants of one process. Each call of [Tree.Read]
// is a scan, unless the last scan cost so much that this one is put off: what
// scans, memory and storage bytes cost is measured, as processor time of the
// thread that reads, and each has a beat of its own that follows from its cost.
//
// The package knows nothing of jobs' reports, control groups or samples.
package process
