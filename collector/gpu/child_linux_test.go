package gpu

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
)

// A shell script prints the state in which it was started. A Go program would change that state.
func TestChild_StartsWithCleanState(t *testing.T) {
	dir := t.TempDir()
	script := `#!/bin/sh
{
	while read -r key value; do # by the shell itself, which blocks signals while it forks
		case $key in SigBlk:|SigIgn:) echo $value ;; esac
	done </proc/$$/status
	readlink /proc/$$/cwd
	ls -l /proc/$$/fd
	sleep 1000 >&2 & # holds the pipe, too
	echo $!
} >"$GPU_OUT.part"
mv "$GPU_OUT.part" "$GPU_OUT"
wait
`

	must(t, os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755))
	var inherited []int // descriptors that a job's shell may have passed to perfagent
	for range 3 {
		fd := check.Value(unix.Open("/proc/self/maps", unix.O_RDONLY, 0))(t)
		defer unix.Close(fd)
		inherited = append(inherited, fd)
	}

	out := filepath.Join(dir, "out")
	m := gpuOpen(t, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "GPU_OUT=" + out})
	m.timing.grace = time.Hour
	stop := gpuRun(t, m)
	var text []byte
	gpuWait(t, m, "the shell", func(Reading) bool {
		var err error
		text, err = os.ReadFile(out)
		return err == nil && m.PID() > 0 // the ID is set a moment after the shell starts
	})

	pid := m.PID()
	stop() // both end long before grace
	l := strings.Split(strings.TrimSpace(string(text)), "\n")
	sleep := check.Value(strconv.Atoi(l[len(l)-1]))(t)
	gpuWaitEnded(t, pid)
	gpuWaitEnded(t, sleep)
	blocked, ignored := gpuMask(t, l[0]), gpuMask(t, l[1])
	check.True(t, blocked == 0 && ignored>>(uint(unix.SIGPIPE)-1)&1 == 0,
		"blocked signals = %x, ignored signals = %x; want none blocked, and SIGPIPE not ignored", blocked, ignored)
	fds := strings.Join(l[3:], "\n")
	check.True(t, l[2] == "/" && strings.Contains(fds, " 0 -> /dev/null") && strings.Contains(fds, " 2 -> pipe:") && !strings.Contains(fds, "/maps"),
		"directory = %s, descriptors:\n%s\nwant /, and only null and pipes but none of these: %v", l[2], fds, inherited)
}

// gpuMask parses a signal mask from /proc/PID/status.
func gpuMask(t *testing.T, line string) uint64 {
	t.Helper()
	f := strings.Fields(line)
	mask := check.Value(strconv.ParseUint(f[len(f)-1], 16, 64))(t)
	return mask
}

// When perfagent is killed, the query ends: because of the broken pipe or, if the query hangs and writes nothing,
// because its parent has died.
func TestChild_EndsWhenPerfagentIsKilled(t *testing.T) {
	for _, fake := range []string{"", "hang:1", "stubborn"} {
		self := check.Value(os.Executable())(t)
		cmd := exec.Command(self)
		cmd.Args[0] = "gpu-monitor"
		cmd.Env = gpuEnv(t, "h200.txt", fake)
		out := check.Value(cmd.StdoutPipe())(t)
		must(t, cmd.Start())
		var pid int
		if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil || gpuEnded(pid) {
			t.Fatalf("fake %q: process = %d, error = %v; want a living process", fake, pid, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		gpuWaitEnded(t, pid)
	}
}

// Without pidfds (before Linux 5.4), a child is identified by its start time.
func TestChild_IdentifiedByStartTimeWithoutPidfd(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	must(t, cmd.Start())
	c := &child{process: process{pidfd: -1}, pid: cmd.Process.Pid}
	c.identify(false)
	check.True(t, c.alive() && !c.ended(), "alive = false or ended = true for a living child")
	other := &child{process: process{pidfd: -1, startTime: c.startTime + "0"}, pid: c.pid}
	check.True(t, !other.alive() && other.ended(), "alive = true or ended = false for a later process with the same ID")
	_ = cmd.Process.Kill()
	gpuWaitEnded(t, c.pid)
	check.True(t, c.ended(), "ended = false for a zombie")
	_ = cmd.Wait()
	check.True(t, !c.alive() && c.ended(), "alive = true or ended = false for a reaped child")
}

// With or without a pidfd, reap kills the rest of a script's process group, but never the group of a later process with
// the same ID.
func TestChild_ReapKillsOnlyItsGroup(t *testing.T) {
	for _, pidfd := range []bool{true, false} {
		c := &child{}
		attributes := c.attributes()
		cmd := exec.Command("sh", "-c", "trap '' TERM; sleep 1000 & echo $!; read end")
		cmd.SysProcAttr = attributes
		in := check.Value(cmd.StdinPipe())(t)
		out := check.Value(cmd.StdoutPipe())(t)
		must(t, cmd.Start())
		var left int
		check.Value(fmt.Fscan(out, &left))(t)
		c.pid = cmd.Process.Pid
		if !pidfd {
			c.release()
		}
		c.identify(false)
		check.True(t, !c.reap() && !gpuEnded(left), "reap killed the group while the script was running")
		in.Close()
		gpuWaitEnded(t, c.pid)
		other := &child{process: process{pidfd: -1, startTime: "1"}, pid: c.pid}
		other.signalGroup(unix.SIGKILL)
		if other.reap(); gpuEnded(left) {
			t.Error("reap killed the group of a later process with the same ID")
		}
		c.reap()
		gpuWaitEnded(t, left)
		_ = cmd.Wait()
		c.release()
	}
}
