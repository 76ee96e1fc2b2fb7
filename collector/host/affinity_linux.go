package host

import (
	"cmp"

	"golang.org/x/sys/unix"
)

// affinity returns on how many CPUs a process, and so the job, may run; 0 is unknown. Process 0 is this
// one.
func affinity(pid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(cmp.Or(pid, unix.Getpid()), &set) != nil {
		return 0
	}
	return set.Count()
}
