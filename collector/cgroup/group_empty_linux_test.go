package cgroup

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// groupHolding starts a process with 64 MiB in the created group.
func groupHolding(t *testing.T, m *JobGroup) *exec.Cmd {
	t.Helper()
	cmd := groupCommand("hold")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))

	t.Cleanup(func() { // if the test ends early
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})

	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the job printed %q, error %v; want ready", line, err)
	}
	return cmd
}

// groupOf creates a group in all hierarchies, or in v2 alone.
func groupOf(t *testing.T, onlyV2 bool) *JobGroup {
	t.Helper()
	m := groupMake(t)
	if !onlyV2 {
		return m
	}

	if m.v2 == nil {
		t.Skip("no cgroup v2 here")
	}
	alone := &JobGroup{v2: &hierarchyDir{m.v2.dir, m.v2.parent}, missing: map[string]error{}}
	t.Cleanup(func() {
		if err := alone.Remove(); err != nil {
			t.Errorf("Remove with v2 alone: %v", err)
		}
		m.v2 = nil
	})
	return alone
}

// A killed process is in its group until its memory is freed: Remove waits for it.
func TestJobGroup_RemoveWaitsForEndingProcess(t *testing.T) {
	for name, onlyV2 := range map[string]bool{"all": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			m := groupOf(t, onlyV2)
			cmd := groupHolding(t, m)
			must(t, cmd.Process.Kill())
			groupRemove(t, m)
			if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + groupName(t)); !onlyV2 && left != nil {
				t.Errorf("groups %v are left after Remove, want none", left)
			}
		})
	}
}

// Remove does not wait for a living process, even if others are ending.
func TestJobGroup_RemoveDoesNotWaitForLivingProcess(t *testing.T) {
	for name, onlyV2 := range map[string]bool{"all": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			m := groupOf(t, onlyV2)
			daemon, killed := groupHolding(t, m), groupHolding(t, m)
			must(t, killed.Process.Kill())
			took := time.Hour
			for range 5 { // the fastest: the machine may stall
				begin := time.Now()
				err := m.Remove()
				if took = min(took, time.Since(begin)); !errors.Is(err, ErrBusy) || strings.Contains(err.Error(), "killed") {
					t.Errorf("Remove with a living process: %v, want ErrBusy without a killed process", err)
				}
			}
			if took > exitTimeout/2 {
				t.Errorf("Remove with a living process took %v, want at most %v", took, exitTimeout/2)
			}
			daemon.Process.Kill()
			groupRemove(t, m)
		})
	}
}

// Remove does not wait forever for a killed process that does not end, as in a frozen group. After its end the group
// can be removed.
func TestJobGroup_RemoveGivesUpOnFrozenProcess(t *testing.T) {
	freezer := "/sys/fs/cgroup/freezer/" + groupName(t)
	if err := os.Mkdir(freezer, 0o755); err != nil {
		t.Skipf("no group of v1's freezer can be made here: run as root on such a system: %v", err)
	}
	defer os.Remove(freezer)
	m := groupMake(t)
	cmd := groupHolding(t, m)
	groupSet(t, freezer+"/cgroup.procs", strconv.Itoa(cmd.Process.Pid))
	groupSet(t, freezer+"/freezer.state", "FROZEN")
	thaw := func() { _ = os.WriteFile(freezer+"/freezer.state", []byte("THAWED"), 0) }
	defer thaw()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if state, err := os.ReadFile(freezer + "/freezer.state"); string(state) == "FROZEN\n" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("state of the freezer %s, error %v; want FROZEN", state, err)
		}
	}

	if isEnding(cmd.Process.Pid) {
		t.Error("isEnding is true for a frozen process")
	}
	must(t, cmd.Process.Kill())
	begin := time.Now()
	err := m.Remove()
	if took := time.Since(begin); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "rmdir") || took < exitTimeout || took > exitTimeout+time.Minute {
		t.Errorf("Remove: %v after %v, want ErrBusy with a hint to rmdir after at least %v", err, took, exitTimeout)
	}
	time.AfterFunc(exitTimeout/10, thaw)
	groupRemove(t, m)
	cmd.Wait()
}

// A zombie has ended, and so has a process that is gone; the state of a process in another pid namespace is unknown.
func TestIsEnding(t *testing.T) {
	if isEnding(os.Getpid()) || isEnding(1) || isEnding(0) {
		t.Error("isEnding is true for this process, process 1 or one of another namespace")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip("needs sleep: ", err)
	}
	pid := cmd.Process.Pid
	if isEnding(pid) {
		t.Error("isEnding is true for a sleep")
	}
	cmd.Process.Kill()
	var info unix.Siginfo
	must(t, unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	if !isEnding(pid) {
		t.Error("isEnding is false for a zombie")
	}
	cmd.Wait()
	if !isEnding(pid) {
		t.Error("isEnding is false for a process that is gone")
	}
}

// groupRemove removes a group of killed processes. A machine may stall for as long as Remove waits: then it tries
// again. In v1 the kernel may no longer list a process whose group is still busy.
func groupRemove(t *testing.T, m *JobGroup) {
	t.Helper()
	for begin := time.Now(); ; {
		start := time.Now()
		err := m.Remove()
		if err == nil {
			return
		}
		if !errors.Is(err, ErrBusy) || time.Since(start) < exitTimeout || time.Since(begin) > time.Minute {
			t.Error(err)
			return
		}
	}
}
