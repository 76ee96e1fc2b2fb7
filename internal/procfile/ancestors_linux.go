package procfile

import (
	"iter"
	"os"
	"strconv"
)

// A Process is a process according to /proc/PID/stat (proc_pid_stat(5)).
type Process struct {
	PID    int
	Name   string // comm
	State  byte   // R, S, D, Z, T, …
	Parent int    // 0 if it is outside this namespace
	Start  uint64 // clock ticks since boot
}

// ReadProcess reads the process with the given ID. ok is false if there is none, or if it may not be read.
func ReadProcess(pid int) (p Process, ok bool) {
	var stat Buffer
	data, err := stat.Read("/proc/"+strconv.Itoa(pid)+"/stat", 4096)
	if err != nil {
		return Process{PID: pid}, false
	}

	var f [StatStart + 1][]byte
	_, name, n := SplitStat(data, f[:])
	if n < len(f) || len(f[StatState]) != 1 {
		return Process{PID: pid}, false
	}
	parent, err := strconv.Atoi(string(f[StatParent]))
	start, ok := ParseCount(f[StatStart])

	return Process{pid, string(name), f[StatState][0], parent, start}, ok && err == nil
}

// maxAncestors bounds the walk up to the first process.
const maxAncestors = 64

// Ancestors returns the processes above this one, the parent first. If a process may not be read, it is the last one,
// and only its PID is set.
func Ancestors() iter.Seq[Process] { return Lineage(os.Getppid()) }

// Lineage returns the process with the given ID and the processes above it, as Ancestors does.
func Lineage(pid int) iter.Seq[Process] {
	return func(yield func(Process) bool) {
		pid := pid
		for range maxAncestors {
			if pid <= 0 {
				return
			}
			p, ok := ReadProcess(pid)
			if !yield(p) || !ok {
				return
			}
			pid = p.Parent
		}
	}
}

// IsAncestor reports whether the process pid is an ancestor of this process.
func IsAncestor(pid int) bool {
	for p := range Ancestors() {
		if p.PID == pid {
			return true
		}
	}
	return false
}
