package host

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxThreads is the largest number of threads for which the affinity is read at a time. It takes about 3 µs per
	// thread.
	maxThreads = 1024
	// maxEnvirons is the largest number of environments that are read at a time. It takes about 15 µs per environment.
	maxEnvirons = 256
	// maxEnviron is the maximum size of an environment, in bytes.
	maxEnviron = 1 << 20
)

// affinity returns the number of CPUs on which the process may run; 0 = unknown. pid 0 means this process.
func affinity(pid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(cmp.Or(pid, unix.Getpid()), &set) != nil {
		return 0
	}
	return set.Count()
}

// readSelfLimits returns the limits that the processes pids have imposed on themselves.
func (j *jobTree) readSelfLimits(pids []int, q treeRequest) selfLimits {
	if len(pids) == 0 {
		return selfLimits{}
	}
	b := selfLimits{cpus: cpusOf(pids)}
	if q.groups {
		b.groups, b.pid, b.known = j.groupsOf(pids)
	}
	if q.environs {
		b.environs = environsOf(pids)
	}
	return b
}

// cpusOf returns the number of CPUs on which at least one thread of the processes may run. It stops counting at the
// number of CPUs that this process may use. It returns 0 if the affinity of any thread is unknown.
func cpusOf(pids []int) int {
	var union, set unix.CPUSet
	enough, left := affinity(0), maxThreads
	for _, pid := range pids {
		threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		if left -= len(threads); left < 0 || err != nil && !isEnded(err) {
			return 0
		}
		for _, t := range threads {
			id, _ := strconv.Atoi(t.Name())
			if err := unix.SchedGetaffinity(id, &set); err == unix.ESRCH {
				continue
			} else if err != nil {
				return 0
			}
			for i := range union {
				union[i] |= set[i]
			}
			if union.Count() >= enough {
				return union.Count()
			}
		}
	}
	return union.Count()
}

// isEnded reports whether err means that a process has ended.
func isEnded(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// groupsOf returns the control groups that contain all processes, as listed in procfs, and one of the processes. groups
// is "" if a process is still in the job's initial groups. Otherwise, known is false if the groups of the processes
// differ or are unknown.
func (j *jobTree) groupsOf(pids []int) (groups string, pid int, known bool) {
	if j.initialGroups == "" {
		data, err := controlGroups("/proc/" + strconv.Itoa(cmp.Or(j.pid, unix.Getpid())))
		if err != nil {
			return "", 0, false
		}
		j.initialGroups = string(data)
	}
	for _, p := range pids {
		data, err := controlGroups("/proc/" + strconv.Itoa(p))
		switch now := string(data); {
		case err != nil && isEnded(err):
		case err != nil || len(data) == 0:
			return "", 0, false
		case now == j.initialGroups:
			return "", 0, true
		case pid == 0:
			groups, pid = now, p
		case now != groups:
			return "", 0, false
		}
	}
	return groups, pid, pid != 0
}

// controlGroups returns the file cgroup of dir, a process's directory in procfs. The error wraps fs.ErrNotExist if the
// process is ending, because the file then lists the root group for each v1 hierarchy.
func controlGroups(dir string) ([]byte, error) {
	groups, err := procfile.ReadFile(dir + "/cgroup")
	if err != nil || !bytes.Contains(groups, []byte(":/\n")) {
		return groups, err
	}
	if stat, err := procfile.ReadFile(dir + "/stat"); err == nil && procfile.IsExiting(stat) {
		return nil, fmt.Errorf("read %s/cgroup: the process is about to end: %w", dir, fs.ErrNotExist)
	}
	return groups, nil
}

// environsOf returns the distinct environments of the processes, reduced to the variables that gpu.JobDevices reads. It
// returns nil if an environment cannot be read.
func environsOf(pids []int) [][]string {
	if len(pids) > maxEnvirons {
		return nil
	}
	out := [][]string{}
	for _, pid := range pids {
		data, err := procfile.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil && isEnded(err) {
			continue
		}
		if err != nil || len(data) > maxEnviron {
			return nil
		}
		var env []string
		for entry := range strings.SplitSeq(string(data), "\x00") {
			if name, _, _ := strings.Cut(entry, "="); gpu.IsSelectionVariable(name) {
				env = append(env, entry)
			}
		}
		if !slices.ContainsFunc(out, func(e []string) bool { return slices.Equal(e, env) }) {
			out = append(out, env)
		}
	}
	return out
}
