// Package cgroup reads the limits and counters of the control groups of a process.
//
// A process is in one group of every mounted hierarchy: of one tree in cgroup v2, of one tree per controller or set of
// controllers in v1, of both in a hybrid. [Find] resolves each separately, from /proc/PID/cgroup (the groups of the
// process) and /proc/PID/mountinfo (the part of each tree that is visible here, and where); it guesses no path.
//
//   - [Group.Limits] reads the limits, which may change while a job runs.
//   - [Group.Read] takes one sample of the counters, as the kernel counts them. The package
//     computes nothing from two samples.
//   - [NewJobGroup] creates a group for a job below perfagent's, [JobGroup.Enter] starts a child
//     in it, [JobGroup.Remove] removes it.
//
// A process in the root group of a hierarchy is in no group there: the root's counters are the machine's, so the
// numbers are unknown. An unknown number is NaN; if it should exist, [Counters.Failed] has the reason.
package cgroup
