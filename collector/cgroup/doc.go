// Package cgroup reads what the control groups of a process allow and count.
//
// A process is in one group of every mounted hierarchy: of one tree in cgroup v2, of one for each
// controller or set of controllers in v1, of both in a hybrid. [Find] resolves each by itself, from
// /proc/PID/cgroup (the groups of the process) and /proc/PID/mountinfo (what of that tree is
// visible here, and where); no path is guessed.
//
//   - [Group.Limits] reads the limits, which may change while a job runs.
//   - [Group.Read] takes one sample of the counters. Nothing is computed from two
//     samples here: counters are returned as the kernel counts them.
//   - [NewJobGroup] makes a group for a job below our own, [JobGroup.Enter] starts a child in
//     it, [JobGroup.Remove] removes it.
//
// A process in the root group of a hierarchy is in no group there: what the root counts is the
// machine's, not its own, and is absent. Absent is NaN, and has its reason in [Counters.Failed] if
// it should have been there. The package imports nothing of ours but the reader of kernel files.
package cgroup
