package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// exitTimeout is the longest time that Remove waits for ending processes, in total. The kernel needs 100 to 200 ms per
// GiB to free the memory of a process.
const exitTimeout = 500 * time.Millisecond

// livingTimeout is the time after which a process that does not seem to be ending counts as living. For a moment, the
// kernel shows neither that a killed process has a pending SIGKILL nor that it is exiting.
const livingTimeout = 20 * time.Millisecond

// awaitEmpty waits until no process is left in the groups. A killed process stays in its group until its memory is
// freed, often after its parent has ended. If a process is not ending, awaitEmpty returns ErrBusy after livingTimeout.
func awaitEmpty(dirs []hierarchyDir) error {
	until, lastEnding := time.Now().Add(exitTimeout), time.Now()
	for {
		dir, n, living := findOccupied(dirs)
		if !living {
			lastEnding = time.Now()
		}
		switch {
		case n == 0:
			return nil
		case living && time.Since(lastEnding) >= livingTimeout:
			return fmt.Errorf("remove control group %s: %w: processes in it: %d", dir, ErrBusy, n)
		case !living && time.Now().After(until):
			return fmt.Errorf("remove control group %s: %w: %d killed processes in it have not ended yet; "+
				"once they have, remove the group with rmdir", dir, ErrBusy, n)
		}

		time.Sleep(2 * time.Millisecond)
	}
}

// findOccupied returns a group that holds processes, their number, and whether one of them is not ending. It skips
// unreadable groups; their removal fails later, with the kernel's error.
func findOccupied(dirs []hierarchyDir) (dir string, n int, living bool) {
	for _, b := range dirs {
		pids, err := processesIn(b.dir)
		if err == nil && len(pids) == 0 && isPopulated(b.dir) {
			dir, n = b.dir, max(n, 1)
		}
		if err != nil || len(pids) == 0 {
			continue
		}
		dir, n = b.dir, len(pids)
		if slices.ContainsFunc(pids, func(pid int) bool { return !isEnding(pid) }) {
			return dir, n, true
		}
	}
	return dir, n, false
}

// isPopulated reports whether the v2 group dir has processes. Unlike cgroup.procs, it includes processes that have
// ended but still hold memory.
func isPopulated(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	return err == nil && slices.Contains(strings.Split(string(data), "\n"), "populated 1")
}

// processesIn returns the processes of the group dir and all groups below it.
func processesIn(dir string) (pids []int, err error) {
	var file procfile.Buffer
	err = walk(dir, func(d string) error {
		data, err := file.Read(filepath.Join(d, "cgroup.procs"), maxTable)
		pids = procfile.AppendPIDs(pids, data)
		return err
	})
	return pids, err
}

// isEnding reports whether the process has ended or all its threads are ending.
func isEnding(pid int) bool {
	if pid <= 0 { // process of another PID namespace
		return false
	}
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil { // ended, or hidden by procfs
		return errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	return !slices.ContainsFunc(threads, func(e os.DirEntry) bool {
		return !isTaskEnding(filepath.Join(tasks, e.Name()))
	})
}

// isTaskEnding reports whether the thread with the directory dir in procfs has begun to exit, or has a pending SIGKILL.
func isTaskEnding(dir string) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err == nil && procfile.IsExiting(stat) {
		return true
	}
	status, errStatus := os.ReadFile(filepath.Join(dir, "status"))
	if err := cmp.Or(err, errStatus); err != nil {
		return isGone(err) || errors.Is(err, unix.ESRCH)
	}
	const kill = uint(unix.SIGKILL)
	return procfile.HasSignal(status, "SigPnd", kill) || procfile.HasSignal(status, "ShdPnd", kill)
}
