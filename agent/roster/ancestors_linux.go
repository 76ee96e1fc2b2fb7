package roster

import (
	"os"
	"slices"
	"strconv"

	"github.com/perfagent/perfagent/internal/procfile"
)

// maxAncestors bounds the way up to the first process.
const maxAncestors = 64

// ancestors returns the processes above this one, the parent first.
func ancestors() []int {
	var out []int
	for pid := os.Getppid(); pid > 0 && len(out) < maxAncestors; pid = parentOf(pid) {
		out = append(out, pid)
	}

	return out
}

// parentOf returns the parent of a process, 0 if it is not known.
func parentOf(pid int) int {
	var stat procfile.Buffer
	data, err := stat.Read("/proc/"+strconv.Itoa(pid)+"/stat", 4096)
	if err != nil {
		return 0
	}

	var f [procfile.StatParent + 1][]byte
	if _, _, n := procfile.SplitStat(data, f[:]); n < len(f) {
		return 0
	}
	parent, err := strconv.Atoi(string(f[procfile.StatParent]))
	if err != nil {
		return 0
	}

	return parent
}

// Descends reports whether this process descends from another one.
func Descends(pid int) bool { return slices.Contains(ancestors(), pid) }
