package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
)

// groupName returns a name unique to this test and run.
func groupName(t testing.TB) string {
	return fmt.Sprintf("perfagent-test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}

// groupMake creates a group that is removed at the end of the test.
func groupMake(t *testing.T) *JobGroup {
	t.Helper()
	m, err := NewJobGroup(groupName(t))
	if err != nil {
		t.Skipf("cannot create a control group; run as root with writable control groups: %v", err)
	}
	t.Cleanup(func() { must(t, m.Remove()) })
	return m
}

// groupStart starts a command in the created group.
func groupStart(m *JobGroup, cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = 0 // the signal would be sent when the thread ends
	return m.Enter(func(fd int) error {
		if fd >= 0 {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		}
		return cmd.Start()
	})
}

// groupPaths parses text, the content of a file cgroup in procfs, and returns the paths by hierarchy.
func groupPaths(t *testing.T, text string) map[string]string {
	t.Helper()
	paths := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			t.Fatalf("line of cgroup = %q, want ID:CONTROLLERS:PATH", line)
		}
		paths[f[1]] = f[2]
	}
	return paths
}

// groupOurThreads fails the test if a thread of this process is in the group name.
func groupOurThreads(t *testing.T, name string) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("threads of this process = %v, error = %v; want at least one", tasks, err)
	}
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		check.True(t, err != nil || !strings.Contains(string(data), "/"+name+"\n"),
			"thread %s of this process is in the job's group:\n%s", task, data)
	}
}

// A child and its child are in every created group, and this process is in none of them. Remove fails as long as the
// children live, and succeeds after that.
func TestNewJobGroup_CountsOnlyTheJob(t *testing.T) {
	m := groupMake(t)
	name := groupName(t)
	cmd := groupCommand("where")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))
	defer func() { // in case the test ends early
		cmd.Process.Kill()
		cmd.Wait()
	}()
	groupOurThreads(t, name)
	ours, _ := os.ReadFile("/proc/self/cgroup")
	own := groupPaths(t, string(ours))
	r := bufio.NewReader(out)
	for _, who := range []string{"child", "grandchild"} {
		var text strings.Builder
		for line := "x"; strings.TrimSpace(line) != ""; {
			var err error
			if line, err = r.ReadString('\n'); err != nil {
				t.Fatalf("read output of the %s: %v", who, err)
			}
			text.WriteString(line)
		}
		for list, path := range groupPaths(t, text.String()) {
			made := slices.ContainsFunc(strings.Split(list, ","), func(c string) bool {
				return slices.Contains([]string{"cpuacct", "memory", "pids", ""}, c)
			})
			if want := own[list]; made && path != filepath.Join(want, name) || !made && path != want {
				t.Errorf("%s is in group %s of %q, this process in %s; want a group below if created (%v), else the same",
					who, path, list, want, made)
			}
		}
	}

	missing := m.Missing()
	check.True(t, len(missing) == 0, "Missing = %v, want none", missing)
	pids, err := m.Group().PIDs()
	check.True(t, err == nil && len(pids) == 2 && slices.Contains(pids, cmd.Process.Pid),
		"PIDs = %v, %v; want %d and its child", pids, err, cmd.Process.Pid)
	c := m.Group().Read()
	check.True(t, c.Processes == 2 && c.Threads >= 2 && c.CPUSeconds > 0 && c.Memory > 0 && c.PeakMemory >= c.WorkingSet && c.OOMKills == 0 && c.Failed == nil,
		"counters = %+v, want 2 processes with CPU time and memory, and no failures", c)
	err = m.Remove()
	check.True(t, errors.Is(err, ErrBusy), "Remove with processes in the group = %v, want ErrBusy", err)
	in.Close()
	must(t, cmd.Wait())
	groupRemoved(t, m)
}

// groupRemoved removes the group and checks that nothing is left behind.
func groupRemoved(t *testing.T, m *JobGroup) {
	t.Helper()
	var dirs []string
	for _, b := range m.v1 {
		dirs = append(dirs, b.dir)
	}
	if m.v2 != nil {
		dirs = append(dirs, m.v2.dir)
	}
	check.True(t, len(dirs) != 0, "the job's group has no directory, want at least one")

	for range 2 {
		must(t, m.Remove())
	}

	for _, dir := range dirs {
		check.True(t, !exists(dir), "%s still exists after Remove", dir)
	}

	c := m.Group().Read()
	failed := c.Failed
	c.Failed = nil
	check.True(t, (c.Processes == c.Processes || failed["cgroup.procs"] != nil) && c.CPUSeconds != c.CPUSeconds && len(failed) != 0,
		"counters after Remove = %+v, failures = %v; want unknown CPU time, and reasons", c, failed)
}

// While the job is in the group of one hierarchy, Remove keeps the groups of all hierarchies.
func TestJobGroup_RemoveKeepsAllIfOneIsBusy(t *testing.T) {
	m := groupMake(t)
	if len(m.v1) == 0 {
		t.Skip("needs cgroup v1")
	}
	cmd := groupReady(t, m, "burn")
	groupSet(t, filepath.Join(m.v1[0].parent, "cgroup.procs"), fmt.Sprint(cmd.Process.Pid))
	if err := m.Remove(); !errors.Is(err, ErrBusy) || !exists(m.v1[0].dir) {
		t.Errorf("Remove = %v, want ErrBusy; empty group exists = %v, want true", err, exists(m.v1[0].dir))
	}
	cmd.Process.Kill()
	cmd.Wait()
	groupRemoved(t, m)
}

// Remove also removes groups that the job created below its group.
func TestJobGroup_RemovesGroupsBelow(t *testing.T) {
	m := groupMake(t)
	for _, b := range append(slices.Clone(m.v1), hierarchyDir{dir: m.Group().primary[0].dir()}) {
		for _, d := range []string{"a", "a/b", "c"} {
			if err := os.Mkdir(filepath.Join(b.dir, d), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	groupRemoved(t, m)
}

// Enter returns the error of start unchanged, and the thread leaves the group.
func TestJobGroup_EnterReturnsErrorOfStart(t *testing.T) {
	m := groupMake(t)
	want := errors.New("no job")
	err := m.Enter(func(int) error { return want })
	check.True(t, err == want, "Enter = %v, want the error returned by start, %v", err, want)
	groupOurThreads(t, groupName(t))
	if len(m.v1) == 0 {
		return
	}

	// If a group cannot be entered, the thread leaves the groups that it has already entered.
	last := &m.v1[len(m.v1)-1]
	good := last.dir
	last.dir += "-gone"
	called := false
	err = m.Enter(func(int) error { called = true; return nil })
	check.True(t, !called && errors.Is(err, os.ErrNotExist),
		"start was called = %v, error = %v; want false, ErrNotExist", called, err)
	last.dir = good
	groupOurThreads(t, groupName(t))
}

// A thread that cannot leave the group ends, so that no part of this process stays in the group.
func TestJobGroup_EnterEndsThreadThatCannotLeave(t *testing.T) {
	m := groupMake(t)
	if len(m.v1) == 0 {
		t.Skip("needs cgroup v1")
	}
	b := &m.v1[0]
	good := b.parent
	b.parent += "-gone"
	tid := 0
	must(t, m.Enter(func(int) error { tid = unix.Gettid(); return nil }))
	b.parent = good
	check.True(t, m.missing["thread"] != nil, "Missing has no reason for the thread that could not leave the group")
	delete(m.missing, "thread")
	check.True(t, tid != os.Getpid(), "Enter used the main thread, which the Go runtime cannot end")

	for deadline := time.Now().Add(time.Minute); exists(fmt.Sprintf("/proc/self/task/%d", tid)); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the thread that could not leave the group has not ended")
		}
	}

	groupOurThreads(t, groupName(t))
}

func TestNewJobGroup_RejectsBadNamesAndUnprivilegedUsers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", ".", "..", "a/b", "../x", "a\nb"} {
		m, err := NewJobGroup(name)
		check.True(t, m == nil && err != nil, "NewJobGroup(%q) = %v, %v; want an error", name, m, err)
	}

	name := groupName(t)
	groupAsNobody(t, func() {
		m, err := NewJobGroup(name)
		check.True(t, m == nil && errors.Is(err, os.ErrPermission) && strings.Count(err.Error(), name) >= 2,
			"NewJobGroup as nobody = %v, %v; want ErrPermission that contains the name", m, err)
	})

	left, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	check.True(t, left == nil, "groups left = %v, want none", left)
}

// groupOutput returns the standard output and error of cmd, and an error if cmd fails.
func groupOutput(cmd *exec.Cmd) ([]byte, error) {
	cmd.Stderr = nil
	return cmd.CombinedOutput()
}

// groupIsolated runs this binary in the given mode with a new mount namespace.
func groupIsolated(t *testing.T, mode, arg string) {
	t.Helper()
	cmd := groupCommand(mode, arg)
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	cmd.SysProcAttr.Pdeathsig = 0
	out, err := groupOutput(cmd)
	if errors.Is(err, unix.EPERM) {
		t.Skip("cannot create namespaces; run as root")
	}
	check.True(t, err == nil, "test in its namespace: %v: %s", err, out)
}

func TestNewJobGroup_WorksWithOnlyV2(t *testing.T)       { groupIsolated(t, "v2", groupName(t)) }
func TestNewJobGroup_FailsOnReadOnlyMounts(t *testing.T) { groupIsolated(t, "readonly", groupName(t)) }

func TestGroup_HasLimitsInNamespace(t *testing.T) {
	m := groupMake(t)
	p := m.Group().memory
	if !p.hasCounters() || p.v2 {
		t.Skip("needs the memory controller of cgroup v1")
	}
	groupSet(t, filepath.Join(p.dir(), "memory.limit_in_bytes"), "128M")
	cmd := groupCommand("namespace")
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))
	text, _ := io.ReadAll(out)
	err := cmd.Wait()
	check.True(t, err == nil, "test in its namespace: %v: %s", err, text)
}

// If this process is alone in its v2 group, it moves to a separate group, so that controllers can be enabled.
func TestNewJobGroup_MovesAgentToSeparateGroup(t *testing.T) {
	top := "/sys/fs/cgroup/unified"
	there, _ := os.ReadFile(top + "/cgroup.controllers")
	on, _ := os.ReadFile(top + "/cgroup.subtree_control")
	if !hasWord(there, "hugetlb") {
		t.Skip("needs the controller hugetlb of cgroup v2")
	}
	own := filepath.Join(top, groupName(t))
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Skipf("cannot create a control group; run as root with writable control groups: %v", err)
	}
	defer os.Remove(own)
	if !hasWord(on, "hugetlb") {
		groupSet(t, top+"/cgroup.subtree_control", "+hugetlb")
		defer groupSet(t, top+"/cgroup.subtree_control", "-hugetlb")
	}
	fd, err := unix.Open(own, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	cmd := groupCommand("alone", "job"+groupName(t))
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
	out, err := groupOutput(cmd)
	check.True(t, err == nil, "process that is alone in its group: %v: %s", err, out)
}

func groupSet(t *testing.T, path, text string) {
	t.Helper()
	must(t, writeFile(path, text))
}

// An OOM kill at the job's memory limit is counted once, even if it happens in a group below. The peak is the limit.
func TestGroup_CountsOOMKillOnce(t *testing.T) {
	m := groupMake(t)
	g := m.Group()
	if !g.memory.hasCounters() || g.own.oom == "" {
		t.Skip("needs the memory controller")
	}
	dir, limit := g.memory.dir(), "memory.limit_in_bytes"
	if g.memory.v2 {
		limit = "memory.max"
	}
	groupSet(t, filepath.Join(dir, limit), "67108864")
	if l := g.Limits(); l.Memory != 64<<20 || l.MemoryGroup != g.memory.names[0] {
		t.Errorf("limits = %+v, want 64 MiB of group %s", l, g.memory.names[0])
	}
	before := g.Read()
	groupEaten(t, m)
	c := g.Read()
	check.True(t, before.OOMKills == 0 && c.OOMKills == 1,
		"OOMKills before and after the kill = %v, %v; want 0, 1", before.OOMKills, c.OOMKills)
	// The kernel may allow a page or two more.
	check.True(t, (g.own.peak == "" || c.PeakMemory >= 63<<20 && c.PeakMemory <= 65<<20) && (c.LimitPeak == c.PeakMemory || g.own.peak == ""),
		"PeakMemory = %v, LimitPeak = %v; want 63 to 65 MiB, both equal", c.PeakMemory, c.LimitPeak)
	sub := filepath.Join(dir, "sub")
	must(t, os.Mkdir(sub, 0o755))
	deeper := &JobGroup{v1: []hierarchyDir{{sub, g.memory.dirs[1]}}, missing: map[string]error{}}
	if g.memory.v2 {
		deeper = &JobGroup{v2: &hierarchyDir{dir: sub}, missing: map[string]error{}}
	}
	groupEaten(t, deeper)
	g.descendantOOMs.next = time.Time{}
	c = g.Read()
	check.True(t, c.OOMKills == 2, "OOMKills after a kill in a group below = %v, want 2", c.OOMKills)
}

// groupEaten runs a job that is killed because it exceeds the memory limit.
func groupEaten(t *testing.T, m *JobGroup) {
	t.Helper()
	cmd := groupCommand("eat")
	must(t, groupStart(m, cmd))
	err := cmd.Wait()
	var exit *exec.ExitError
	check.True(t, errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL,
		"job ended with %v, want SIGKILL", err)
}

// Periods and throttled time equal the kernel's numbers for the group with the quota, which is an ancestor of the
// process's group.
func TestGroup_CountsThrottlingOfGroupWithQuota(t *testing.T) {
	g, err := Find(Options{})
	if err != nil || g.cpu == nil || g.cpu.v2 {
		t.Skip("needs the cpu controller of cgroup v1")
	}
	top := filepath.Join(g.cpu.dir(), groupName(t))
	leaf := filepath.Join(top, "leaf")
	for _, dir := range []string{top, leaf} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("cannot create a control group; run as root: %v", err)
		}
		defer os.Remove(dir)
	}

	groupSet(t, top+"/cpu.cfs_quota_us", "20000")
	deeper := &JobGroup{v1: []hierarchyDir{{leaf, g.cpu.dir()}}, missing: map[string]error{}}
	cmd := groupReady(t, deeper, "burn", top+"/cpu.stat")
	job, err := Find(Options{PID: cmd.Process.Pid})
	must(t, err)
	if l := job.Limits(); l.CPUs != .2 || !strings.HasSuffix(l.CPUGroup, groupName(t)) {
		t.Errorf("limits = %+v, want .2 CPUs of the group %s", l, groupName(t))
	}
	before := job.Read()
	cmd.Process.Signal(unix.SIGUSR1)
	must(t, cmd.Wait())
	var c Counters
	var v [3]float64
	var data []byte
	for before := []byte(nil); ; before = data { // the kernel still counts a period or two after the job's end
		c = job.Read()
		data, err = os.ReadFile(top + "/cpu.stat")
		must(t, err)
		if bytes.Equal(before, data) {
			break
		}
	}

	parseKeys(data, []string{"nr_periods", "nr_throttled", "throttled_time"}, v[:])
	groupSame(t, "periods, throttled periods and seconds", []float64{c.Periods, c.ThrottledPeriods, c.ThrottledSeconds}, []float64{v[0], v[1], v[2] / 1e9})
	if n := c.ThrottledPeriods - before.ThrottledPeriods; n < 5 || c.Periods-before.Periods < n {
		t.Errorf("throttled in %v of %v periods, want at least 5 and at most all", n, c.Periods-before.Periods)
	}

	for _, dir := range []string{leaf, top} { // works although Group keeps files open
		must(t, os.Remove(dir))
	}

	if c := job.Read(); c.Periods == c.Periods || !errors.Is(c.Failed["cpu.stat"], unix.ENODEV) {
		t.Errorf("after the removal: Periods = %v, failures = %v; want NaN, ENODEV", c.Periods, c.Failed)
	}
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range open {
		file, _ := os.Readlink(fd)
		check.True(t, !strings.HasPrefix(file, job.quotaStat), "%s of a removed group is still open", file)
	}
}

func TestGroup_ReadsThisMachine(t *testing.T) {
	g, err := Find(Options{})
	if err != nil {
		t.Skip(err)
	}
	l, c := g.Limits(), g.Read()
	t.Logf("%s %s: %+v\n%+v", g.Version(), g.Path(), l, c)
	check.True(t, len(c.Failed) == 0 && len(l.Failed) == 0,
		"failures of counters = %v, of limits = %v; want none", c.Failed, l.Failed)
	pids, err := g.PIDs()
	check.True(t, len(g.primary) == 0 || err == nil && slices.Contains(pids, os.Getpid()),
		"PIDs = %v, %v; want a list that contains this process, %d", pids, err, os.Getpid())
}

// groupReady starts a process in the created group, and waits until it is ready.
func groupReady(t *testing.T, m *JobGroup, mode string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := groupCommand(mode, args...)
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
		must(t, alone.Remove())
		m.v2 = nil
	})
	return alone
}

// A killed process stays in its group until its memory is freed, so Remove waits for the process.
func TestJobGroup_RemoveWaitsForEndingProcess(t *testing.T) {
	for name, onlyV2 := range map[string]bool{"all": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			m := groupOf(t, onlyV2)
			cmd := groupReady(t, m, "hold")
			must(t, cmd.Process.Kill())
			groupRemove(t, m)
			left, _ := filepath.Glob("/sys/fs/cgroup/*/" + groupName(t))
			check.True(t, onlyV2 || left == nil, "groups left after Remove = %v, want none", left)
		})
	}
}

// Remove does not wait for a living process, even if other processes are ending.
func TestJobGroup_RemoveDoesNotWaitForLivingProcess(t *testing.T) {
	for name, onlyV2 := range map[string]bool{"all": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			m := groupOf(t, onlyV2)
			daemon, killed := groupReady(t, m, "hold"), groupReady(t, m, "hold")
			must(t, killed.Process.Kill())
			took := time.Hour
			// Repeat until one call is fast: the machine may stall.
			for start := time.Now(); took > exitTimeout/2 && time.Since(start) < time.Minute; {
				begin := time.Now()
				err := m.Remove()
				if took = min(took, time.Since(begin)); !errors.Is(err, ErrBusy) || strings.Contains(err.Error(), "killed") {
					t.Errorf("Remove with a living process = %v, want ErrBusy that mentions no killed process", err)
				}
			}
			check.True(t, took <= exitTimeout/2, "Remove with a living process took %v, want at most %v", took, exitTimeout/2)
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
	cmd := groupReady(t, m, "hold")
	groupSet(t, freezer+"/cgroup.procs", strconv.Itoa(cmd.Process.Pid))
	groupSet(t, freezer+"/freezer.state", "FROZEN")
	thaw := func() { _ = os.WriteFile(freezer+"/freezer.state", []byte("THAWED"), 0) }
	defer thaw()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
		if state, err := os.ReadFile(freezer + "/freezer.state"); string(state) == "FROZEN\n" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("state of the freezer = %s, error = %v; want FROZEN", state, err)
		}
	}

	check.True(t, !isEnding(cmd.Process.Pid), "isEnding = true for a frozen process")
	must(t, cmd.Process.Kill())
	begin := time.Now()
	err := m.Remove()
	if took := time.Since(begin); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "rmdir") || took < exitTimeout || took > exitTimeout+5*time.Minute {
		t.Errorf("Remove = %v after %v, want ErrBusy that mentions rmdir after at least %v", err, took, exitTimeout)
	}
	time.AfterFunc(exitTimeout/10, thaw)
	groupRemove(t, m)
	cmd.Wait()
}

// A zombie and a process that no longer exists have ended. The state of a process in another PID namespace is unknown.
func TestIsEnding_RecognizesEndedProcesses(t *testing.T) {
	check.True(t, !isEnding(os.Getpid()) && !isEnding(1) && !isEnding(0),
		"isEnding = true for this process, process 1 or a process of another namespace")
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Skip("needs sleep: ", err)
	}
	pid := cmd.Process.Pid
	check.True(t, !isEnding(pid), "isEnding = true for a sleeping process")
	cmd.Process.Kill()
	var info unix.Siginfo
	must(t, unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	check.True(t, isEnding(pid), "isEnding = false for a zombie")
	cmd.Wait()
	check.True(t, isEnding(pid), "isEnding = false for a process that does not exist")
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
		if !errors.Is(err, ErrBusy) || time.Since(start) < exitTimeout || time.Since(begin) > 5*time.Minute {
			t.Error(err)
			return
		}
	}
}
