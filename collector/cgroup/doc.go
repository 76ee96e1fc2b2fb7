// Package cgroup reads the limits and counters of the control groups of a process.
//
// A process is in one group of every mounted hierarchy. cgroup v2 has one hierarchy, v1 has one hierarchy per
// controller or set of controllers, and a hybrid system has both kinds. [Find] finds the group in each hierarchy
// separately, from /proc/PID/cgroup (the groups of the process) and /proc/PID/mountinfo (which part of each hierarchy
// is visible, and where). It does not guess paths.
//
//   - [Group.Limits] reads the limits, which may change while a job runs.
//   - [Group.Read] takes one sample of the counters, as counted by the kernel. The package
//     never computes values from several samples.
//   - [NewJobGroup] creates a group for a job below perfagent's group, [JobGroup.Enter] starts a child
//     in the created group, [JobGroup.Remove] removes the group.
//
// The counters of a hierarchy's root group are the machine's, so the numbers of a process in the root group are
// unknown. An unknown number is NaN; if it should exist, [Counters.Failed] holds the reason.
package cgroup
