package host

import "golang.org/x/sys/unix"

// affinity returns on how many CPUs this process, and so the job, may run; 0 is unknown.
func affinity() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(unix.Getpid(), &set) != nil {
		return 0
	}
	return set.Count()
}
