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
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	t.Cleanup(func() {
		if err := m.Remove(); err != nil {
			t.Errorf("Remove at the end of the test = %v, want nil", err)
		}
	})
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
		if err == nil && strings.Contains(string(data), "/"+name+"\n") {
			t.Errorf("thread %s of this process is in the job's group:\n%s", task, data)
		}
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

	if missing := m.Missing(); len(missing) != 0 {
		t.Errorf("Missing = %v, want none", missing)
	}
	pids, err := m.Group().PIDs()
	if err != nil || len(pids) != 2 || !slices.Contains(pids, cmd.Process.Pid) {
		t.Errorf("PIDs = %v, %v; want %d and its child", pids, err, cmd.Process.Pid)
	}
	c := m.Group().Read()
	if c.Processes != 2 || !(c.Threads >= 2) || !(c.CPUSeconds > 0) || !(c.Memory > 0) || !(c.PeakMemory >= c.WorkingSet) || c.OOMKills != 0 || c.Failed != nil {
		t.Errorf("counters = %+v, want 2 processes with CPU time and memory, and no failures", c)
	}
	if err := m.Remove(); !errors.Is(err, ErrBusy) {
		t.Errorf("Remove with processes in the group = %v, want ErrBusy", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the job ended with %v", err)
	}
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
	if len(dirs) == 0 {
		t.Error("the job's group has no directory, want at least one")
	}

	for range 2 {
		if err := m.Remove(); err != nil {
			t.Errorf("Remove after the job = %v, want nil", err)
		}
	}

	for _, dir := range dirs {
		if exists(dir) {
			t.Errorf("%s still exists after Remove", dir)
		}
	}

	c := m.Group().Read()
	failed := c.Failed
	c.Failed = nil
	if c.Processes != c.Processes && failed["cgroup.procs"] == nil || c.CPUSeconds == c.CPUSeconds || len(failed) == 0 {
		t.Errorf("counters after Remove = %+v, failures = %v; want unknown CPU time, and reasons", c, failed)
	}
}

// While the job is in the group of one hierarchy, Remove keeps the groups of all hierarchies.
func TestJobGroup_RemoveKeepsAllIfOneIsBusy(t *testing.T) {
	m := groupMake(t)
	if len(m.v1) == 0 {
		t.Skip("needs cgroup v1")
	}
	cmd := groupCommand("burn")
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))
	bufio.NewReader(out).ReadString('\n')
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
	if err := m.Enter(func(int) error { return want }); err != want {
		t.Errorf("Enter = %v, want the error returned by start, %v", err, want)
	}
	groupOurThreads(t, groupName(t))
	if len(m.v1) == 0 {
		return
	}

	// If a group cannot be entered, the thread leaves the groups that it has already entered.
	last := &m.v1[len(m.v1)-1]
	good := last.dir
	last.dir += "-gone"
	called := false
	err := m.Enter(func(int) error { called = true; return nil })
	if called || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start was called = %v, error = %v; want false, ErrNotExist", called, err)
	}
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
	if m.missing["thread"] == nil {
		t.Error("Missing has no reason for the thread that could not leave the group")
	}
	delete(m.missing, "thread")
	if tid == os.Getpid() {
		t.Error("Enter used the main thread, which the Go runtime cannot end")
	}

	for deadline := time.Now().Add(5 * time.Second); exists(fmt.Sprintf("/proc/self/task/%d", tid)); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the thread that could not leave the group has not ended")
		}
	}

	groupOurThreads(t, groupName(t))
}

func TestNewJobGroup_RejectsBadNamesAndUnprivilegedUsers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", ".", "..", "a/b", "../x", "a\nb"} {
		if m, err := NewJobGroup(name); m != nil || err == nil {
			t.Errorf("NewJobGroup(%q) = %v, %v; want an error", name, m, err)
		}
	}

	name := groupName(t)
	groupAsNobody(t, func() {
		m, err := NewJobGroup(name)
		if m != nil || !errors.Is(err, os.ErrPermission) || strings.Count(err.Error(), name) < 2 {
			t.Errorf("NewJobGroup as nobody = %v, %v; want ErrPermission that contains the name", m, err)
		}
	})

	if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + name); left != nil {
		t.Errorf("groups left = %v, want none", left)
	}
}

// groupOutput returns the standard output and error of cmd, and an error if cmd fails.
func groupOutput(cmd *exec.Cmd) ([]byte, error) {
	cmd.Stderr = nil
	return cmd.CombinedOutput()
}

// groupIsolated runs this binary in the given mode with new namespaces.
func groupIsolated(t *testing.T, flags uintptr, mode, arg string) {
	t.Helper()
	cmd := groupCommand(mode, arg)
	cmd.SysProcAttr.Cloneflags = flags
	cmd.SysProcAttr.Pdeathsig = 0
	out, err := groupOutput(cmd)
	if errors.Is(err, unix.EPERM) {
		t.Skip("cannot create namespaces; run as root")
	}
	if err != nil {
		t.Errorf("test in its namespace: %v: %s", err, out)
	}
}

func TestNewJobGroup_WorksWithOnlyV2(t *testing.T) {
	groupIsolated(t, syscall.CLONE_NEWNS, "v2", groupName(t))
}
func TestNewJobGroup_FailsOnReadOnlyMounts(t *testing.T) {
	groupIsolated(t, syscall.CLONE_NEWNS, "readonly", groupName(t))
}

// groupV1Memory returns the created group's directory in v1's memory hierarchy.
func groupV1Memory(t *testing.T, m *JobGroup) string {
	t.Helper()
	p := m.Group().memory
	if !p.hasCounters() || p.v2 {
		t.Skip("needs the memory controller of cgroup v1")
	}
	return p.dir()
}

func TestGroup_HasLimitsInNamespace(t *testing.T) {
	m := groupMake(t)
	groupSet(t, filepath.Join(groupV1Memory(t, m), "memory.limit_in_bytes"), "128M")
	cmd := groupCommand("namespace")
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))
	text, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("test in its namespace: %v: %s", err, text)
	}
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
	if out, err := groupOutput(cmd); err != nil {
		t.Errorf("process that is alone in its group: %v: %s", err, out)
	}
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
		t.Fatalf("limits = %+v, want 64 MiB of group %s", l, g.memory.names[0])
	}
	before := g.Read()
	groupEaten(t, m)
	c := g.Read()
	if before.OOMKills != 0 || c.OOMKills != 1 {
		t.Errorf("OOMKills before and after the kill = %v, %v; want 0, 1", before.OOMKills, c.OOMKills)
	}
	// The kernel may allow a page or two more.
	if g.own.peak != "" && (c.PeakMemory < 63<<20 || c.PeakMemory > 65<<20) || c.LimitPeak != c.PeakMemory && g.own.peak != "" {
		t.Errorf("PeakMemory = %v, LimitPeak = %v; want 63 to 65 MiB, both equal", c.PeakMemory, c.LimitPeak)
	}
	sub := filepath.Join(dir, "sub")
	must(t, os.Mkdir(sub, 0o755))
	deeper := &JobGroup{v1: []hierarchyDir{{sub, g.memory.dirs[1]}}, missing: map[string]error{}}
	if g.memory.v2 {
		deeper = &JobGroup{v2: &hierarchyDir{dir: sub}, missing: map[string]error{}}
	}
	groupEaten(t, deeper)
	g.descendantOOMs.next = time.Time{}
	if c := g.Read(); c.OOMKills != 2 {
		t.Errorf("OOMKills after a kill in a group below = %v, want 2", c.OOMKills)
	}
}

// groupEaten runs a job that is killed because it exceeds the memory limit.
func groupEaten(t *testing.T, m *JobGroup) {
	t.Helper()
	cmd := groupCommand("eat")
	must(t, groupStart(m, cmd))
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("job ended with %v, want SIGKILL", err)
	}
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
	cmd := groupCommand("burn", top+"/cpu.stat")
	out, _ := cmd.StdoutPipe()
	deeper := &JobGroup{v1: []hierarchyDir{{leaf, g.cpu.dir()}}, missing: map[string]error{}}
	must(t, groupStart(deeper, cmd))
	bufio.NewReader(out).ReadString('\n')
	job, err := Find(Options{PID: cmd.Process.Pid})
	must(t, err)
	if l := job.Limits(); l.CPUs != .2 || !strings.HasSuffix(l.CPUGroup, groupName(t)) {
		t.Errorf("limits = %+v, want .2 CPUs of the group %s", l, groupName(t))
	}
	before := job.Read()
	cmd.Process.Signal(unix.SIGUSR1)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the job ended with %v", err)
	}
	var c Counters
	var v [3]float64
	var data []byte
	for before := []byte(nil); ; before = data { // the kernel still counts a period or two after the job's end
		c = job.Read()
		if data, err = os.ReadFile(top + "/cpu.stat"); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, data) {
			break
		}
	}

	parseKeys(data, []string{"nr_periods", "nr_throttled", "throttled_time"}, v[:])
	if c.Periods != v[0] || c.ThrottledPeriods != v[1] || c.ThrottledSeconds != v[2]/1e9 {
		t.Errorf("Periods = %v, ThrottledPeriods = %v, ThrottledSeconds = %v; want the numbers in cpu.stat: %s",
			c.Periods, c.ThrottledPeriods, c.ThrottledSeconds, data)
	}
	if n := c.ThrottledPeriods - before.ThrottledPeriods; n < 5 || c.Periods-before.Periods < n {
		t.Errorf("throttled in %v of %v periods, want at least 5 and at most all", n, c.Periods-before.Periods)
	}

	for _, dir := range []string{leaf, top} { // works although Group keeps files open
		if err := os.Remove(dir); err != nil {
			t.Errorf("remove a group with open files: %v", err)
		}
	}

	if c := job.Read(); c.Periods == c.Periods || !errors.Is(c.Failed["cpu.stat"], unix.ENODEV) {
		t.Errorf("after the removal: Periods = %v, failures = %v; want NaN, ENODEV", c.Periods, c.Failed)
	}
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range open {
		if file, _ := os.Readlink(fd); strings.HasPrefix(file, job.quotaStat) {
			t.Errorf("%s of a removed group is still open", file)
		}
	}
}

func TestGroup_ReadsThisMachine(t *testing.T) {
	g, err := Find(Options{})
	if err != nil {
		t.Skip(err)
	}
	l, c := g.Limits(), g.Read()
	t.Logf("%s %s: %+v\n%+v", g.Version(), g.Path(), l, c)
	if len(c.Failed) > 0 || len(l.Failed) > 0 {
		t.Errorf("failures of counters = %v, of limits = %v; want none", c.Failed, l.Failed)
	}
	pids, err := g.PIDs()
	if len(g.primary) > 0 && (err != nil || !slices.Contains(pids, os.Getpid())) {
		t.Errorf("PIDs = %v, %v; want a list that contains this process, %d", pids, err, os.Getpid())
	}
}
