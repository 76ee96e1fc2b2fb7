//go:build amd64 || arm64

package job

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// tasksNeeded is the number of free tasks for starting a job safely: the runtime's threads (it dies if it cannot
	// create one), the job, and a few for the job's own use.
	tasksNeeded = 16

	// tightLimit has two uses. If RLIMIT_NPROC is at least tightLimit, the user's threads are not counted, because
	// counting reads all of /proc. If at least tightLimit tasks are free, a limit is out of reach.
	tightLimit = 4096
)

// Headroom returns an error that names the limit if RLIMIT_NPROC or one of the given limits, those of this process's
// control groups, leaves room for fewer than 16 more processes and threads. A Go program dies if the kernel refuses it
// a thread, so the caller should then become the job with Exec. Unreadable values count as no limit. If a limit is
// within reach, Headroom makes the runtime create the necessary threads before the job can exhaust it.
func Headroom(limits []cgroup.TaskLimit) error {
	if user, ok := userLimit(); ok {
		limits = slices.Insert(slices.Clone(limits), 0, user)
	}

	near := false
	for _, l := range limits {
		left := l.Max - l.Used
		if left < tasksNeeded {
			return fmt.Errorf("limit %s: %d of %d processes and threads used", l.Name, l.Used, l.Max)
		}
		near = near || left < tightLimit
	}
	if near {
		reserveThreads()
	}
	return nil
}

// userLimit returns RLIMIT_NPROC, if it is tight and applies to us.
func userLimit() (cgroup.TaskLimit, bool) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || limit.Cur >= tightLimit || exempt() {
		return cgroup.TaskLimit{}, false
	}
	used := userTasks(os.Getuid())
	return cgroup.TaskLimit{Name: "RLIMIT_NPROC (ulimit -u)", Max: int64(limit.Cur), Used: used}, true
}

// exempt reports whether the kernel does not apply RLIMIT_NPROC to us. In the first user namespace, root is exempt, and
// so are processes with CAP_SYS_RESOURCE or CAP_SYS_ADMIN.
func exempt() bool {
	if !procfile.InHostUserNamespace() {
		return false
	}
	if os.Getuid() == 0 {
		return true
	}

	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&header, &caps[0]) != nil {
		return false
	}
	return caps[0].Effective&(1<<unix.CAP_SYS_RESOURCE|1<<unix.CAP_SYS_ADMIN) != 0
}

// userTasks counts the threads of the user uid that are visible in /proc.
func userTasks(uid int) (total int64) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status, err := procfile.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil {
			continue
		}

		var real int
		if _, err := fmt.Sscan(procfile.StatusValue(status, "Uid"), &real); err == nil && real == uid {
			n, _ := strconv.ParseInt(procfile.StatusValue(status, "Threads"), 10, 64)
			total += n
		}
	}
	return total
}
