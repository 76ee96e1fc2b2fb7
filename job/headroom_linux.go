package job

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// tasksNeeded is what must be left before it is safe for a Go program
	// to start a job: the runtime's own threads (it dies when it cannot
	// make one), the job, and a few for the job itself.
	tasksNeeded = 16

	// tightLimit is the RLIMIT_NPROC from which on the user's threads are
	// not counted, because counting reads all of /proc.
	tightLimit = 4096
)

// Headroom returns an error that names the limit when fewer than about sixteen
// more processes or threads may be made by us, by RLIMIT_NPROC or by the pids
// controller of a control group. A Go program dies when the kernel refuses it a
// thread, so the caller then does better to become the job with Exec. What
// cannot be read counts as no limit. Where a limit is in reach it has the runtime
// make the threads that we shall need, before the job can use the limit up.
func Headroom() error {
	if headroom(tightLimit) == nil { // the usual case, with one look
		return nil
	}
	if err := headroom(tasksNeeded); err != nil {
		return err
	}
	reserveThreads() // the job may use up the limit before we have what we need
	return nil
}

// headroom returns an error when fewer than so many more can be made. A limit of
// the user that is not tight is not looked at.
func headroom(need int) error {
	if err := userHeadroom(need); err != nil {
		return err
	}
	return groupHeadroom(need)
}

// userHeadroom looks at RLIMIT_NPROC.
func userHeadroom(need int) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || limit.Cur >= tightLimit || exempt() {
		return nil
	}
	used := userTasks(os.Getuid())
	if used+need > int(limit.Cur) {
		return fmt.Errorf("limit RLIMIT_NPROC (ulimit -u): %d of %d processes and threads used", used, limit.Cur)
	}
	return nil
}

// exempt tells whether the kernel does not apply RLIMIT_NPROC to us: root, or
// capable, of the first user namespace.
func exempt() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err == nil {
		f := bytes.Fields(ids)
		if len(f) != 3 || string(f[1]) != "0" || string(f[2]) != "4294967295" {
			return false
		}
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

// userTasks counts the threads of a user that /proc shows.
func userTasks(uid int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	total := 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil {
			continue
		}
		if field(status, "Uid:") == strconv.Itoa(uid) {
			n, _ := strconv.Atoi(field(status, "Threads:"))
			total += n
		}
	}
	return total
}

// field is the first value of a line of /proc/PID/status.
func field(status []byte, key string) string {
	_, rest, ok := bytes.Cut(status, []byte("\n"+key))
	if !ok {
		return ""
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) == 0 {
		return ""
	}
	return string(f[0])
}

// groupHeadroom looks at the pids controller of our control group and of all
// its ancestors that can be seen.
func groupHeadroom(need int) error {
	list, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(list)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		mount := ""
		switch {
		case f[0] == "0" && f[1] == "":
			mount = "/sys/fs/cgroup"
		case f[1] == "pids":
			mount = "/sys/fs/cgroup/pids"
		default:
			continue
		}
		if err := pidsHeadroom(mount, f[2], need); err != nil {
			return err
		}
	}
	return nil
}

// pidsHeadroom walks from a group up to the root of what is mounted. In a
// container the lower part of the path may not be there.
func pidsHeadroom(mount, group string, need int) error {
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		dir := path.Join(mount, group)
		limit, limited := number(dir + "/pids.max")
		if limited {
			used, ok := number(dir + "/pids.current")
			if ok && used+int64(need) > limit {
				return fmt.Errorf("limit %s/pids.max: %d of %d processes and threads used", dir, used, limit)
			}
		}
		if group == "/" {
			return nil
		}
	}
}

// number reads a file that holds one number; "max" is none.
func number(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}
