package process

import (
	"os"
	"strconv"

	"github.com/perfagent/perfagent/internal/procfile"
)

// maxSubtree is the maximum number of processes of a subtree that are read.
const maxSubtree = 32

// A UsageReader reads the usage of single processes of this host. The zero value is ready to use.
type UsageReader struct{ file procfile.Buffer }

// Self returns the usage of this process.
func (r *UsageReader) Self() Usage { return r.read("/proc/self") }

// Subtree returns the usage of process pid and all its descendants, up to maxSubtree processes.
func (r *UsageReader) Subtree(pid int) (sum Usage) {
	todo := []int{pid}
	for i := 0; i < len(todo) && i < maxSubtree; i++ {
		name := strconv.Itoa(todo[i])
		u := r.read("/proc/" + name)
		if u.Processes == 0 {
			continue
		}
		sum = sum.Plus(u)
		children, err := r.file.Read("/proc/"+name+"/task/"+name+"/children", maxFile) // CONFIG_PROC_CHILDREN
		if err == nil {
			todo = procfile.AppendPIDs(todo, children)
		}
	}
	return sum
}

// read reads stat and statm (proc(5)) in dir, a process's directory in procfs.
func (r *UsageReader) read(dir string) (u Usage) {
	data, err := r.file.Read(dir+"/stat", maxFile)
	if err != nil {
		return Usage{}
	}
	s, err := parseStat(data, anyPID)
	if err != nil {
		return Usage{}
	}
	u.CPUSeconds, u.Threads, u.Processes = s.ticks/procfile.UserHZ, s.threads, 1

	data, err = r.file.Read(dir+"/statm", maxFile)
	if err != nil {
		return u
	}
	var pages [3][]byte // size, resident, shared
	if procfile.SplitFields(data, pages[:]) < len(pages) {
		return u
	}
	resident, _ := procfile.ParseCount(pages[1])
	shared, _ := procfile.ParseCount(pages[2])
	u.Private = max(0, float64(resident)-float64(shared)) * float64(os.Getpagesize())
	return u
}
