// Package cgroup reads the limits and counters of the control groups of a process.
//
// A process is in one group of every mounted hierarchy. cgroup v2 has one hierarchy, v1 has one per controller or set
// of controllers, and a hybrid system has both kinds. [Find] finds the group in each hierarchy separately, from
// /proc/PID/cgroup (the groups of the process) and /proc/PID/mountinfo (which part of each hierarchy is visible, and
// where); it guesses no path.
//
//   - [Group.Limits] reads the limits, which may change while a job runs.
//   - [Group.Read] takes one sample of the counters, as the kernel counts them. The package
//     computes nothing from two samples.
//   - [NewJobGroup] creates a group for a job below perfagent's, [JobGroup.Enter] starts a child
//     in it, [JobGroup.Remove] removes it.
//
// The counters of a hierarchy's root group are the machine's, so the numbers of a process in it are unknown. An unknown
// number is NaN; if it should exist, [Counters.Failed] has the reason.
package cgroup
