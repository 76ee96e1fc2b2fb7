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

// groupHolding starts a process in the created group that uses 64 MiB of memory.
func groupHolding(t *testing.T, m *JobGroup) *exec.Cmd {
	t.Helper()
	cmd := groupCommand("hold")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))

	t.Cleanup(func() { // in case the test ends early
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})

	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the job printed %q, error %v; want ready", line, err)
	}
	return cmd
}

// groupOf creates a group in all hierarchies, or only in v2.
func groupOf(t *testing.T, onlyV2 bool) *JobGroup {
	t.Helper()
	m := groupMake(t)
	if !onlyV2 {
		return m
	}

	if m.v2 == nil {
		t.Skip("needs cgroup v2")
	}
	alone := &JobGroup{v2: &hierarchyDir{m.v2.dir, m.v2.parent}, missing: map[string]error{}}
	t.Cleanup(func() {
		if err := alone.Remove(); err != nil {
			t.Errorf("Remove of a group only in v2: %v", err)
		}
		m.v2 = nil
	})
	return alone
}

// A killed process stays in its group until its memory is freed, so Remove waits for the process.
func TestJobGroup_RemoveWaitsForEndingProcess(t *testing.T) {
	for name, onlyV2 := range map[string]bool{"all": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			m := groupOf(t, onlyV2)
			cmd := groupHolding(t, m)
			must(t, cmd.Process.Kill())
			groupRemove(t, m)
			if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + groupName(t)); !onlyV2 && left != nil {
				t.Errorf("groups left after Remove = %v, want none", left)
			}
		})
	}
}

// Remove does not wait for a living process, even if other processes are ending.
func TestJobGroup_RemoveDoesNotWaitForLivingProcess(t *testing.T) {
	for name, onlyV2 := range map[string]bool{"all": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			m := groupOf(t, onlyV2)
			daemon, killed := groupHolding(t, m), groupHolding(t, m)
			must(t, killed.Process.Kill())
			took := time.Hour
			for range 5 { // use the fastest call: the machine may stall
				begin := time.Now()
				err := m.Remove()
				if took = min(took, time.Since(begin)); !errors.Is(err, ErrBusy) || strings.Contains(err.Error(), "killed") {
					t.Errorf("Remove with a living process = %v, want ErrBusy that mentions no killed process", err)
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

// Remove does not wait forever for a killed process that does not end, as in a frozen group. After the process has
// ended, the group can be removed.
func TestJobGroup_RemoveGivesUpOnFrozenProcess(t *testing.T) {
	freezer := "/sys/fs/cgroup/freezer/" + groupName(t)
	if err := os.Mkdir(freezer, 0o755); err != nil {
		t.Skipf("cannot create a group of v1's freezer; run as root on a system with v1: %v", err)
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
			t.Fatalf("state of the freezer = %s, error = %v; want FROZEN", state, err)
		}
	}

	if isEnding(cmd.Process.Pid) {
		t.Error("isEnding = true for a frozen process")
	}
	must(t, cmd.Process.Kill())
	begin := time.Now()
	err := m.Remove()
	if took := time.Since(begin); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "rmdir") || took < exitTimeout || took > exitTimeout+time.Minute {
		t.Errorf("Remove = %v after %v, want ErrBusy that mentions rmdir after at least %v", err, took, exitTimeout)
	}
	time.AfterFunc(exitTimeout/10, thaw)
	groupRemove(t, m)
	cmd.Wait()
}

// A zombie and a process that no longer exists have ended. The state of a process in another PID namespace is unknown.
func TestIsEnding_RecognizesEndedProcesses(t *testing.T) {
	if isEnding(os.Getpid()) || isEnding(1) || isEnding(0) {
		t.Error("isEnding = true for this process, process 1 or a process of another namespace")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip("needs sleep: ", err)
	}
	pid := cmd.Process.Pid
	if isEnding(pid) {
		t.Error("isEnding = true for a sleeping process")
	}
	cmd.Process.Kill()
	var info unix.Siginfo
	must(t, unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	if !isEnding(pid) {
		t.Error("isEnding = false for a zombie")
	}
	cmd.Wait()
	if !isEnding(pid) {
		t.Error("isEnding = false for a process that does not exist")
	}
}

// groupRemove removes a group of killed processes. It retries if the machine stalls for as long as Remove waits, or if
// the kernel no longer lists a process although its v1 group is still busy.
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
