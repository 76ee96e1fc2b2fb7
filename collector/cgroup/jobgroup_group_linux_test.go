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

// groupMake creates a group that is removed at the test's end.
func groupMake(t *testing.T) *JobGroup {
	t.Helper()
	m, err := NewJobGroup(groupName(t))
	if err != nil {
		t.Skipf("no control group can be made here: run as root where the control groups are writable: %v", err)
	}
	t.Cleanup(func() {
		if err := m.Remove(); err != nil {
			t.Errorf("Remove at the end of the test: %v", err)
		}
	})
	return m
}

// groupStart starts a command in the created group.
func groupStart(m *JobGroup, cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = 0 // it would be sent when the thread ends
	return m.Enter(func(fd int) error {
		if fd >= 0 {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		}
		return cmd.Start()
	})
}

// groupPaths returns the paths of a process, or of each of our threads, by hierarchy.
func groupPaths(t *testing.T, text string) map[string]string {
	t.Helper()
	paths := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			t.Fatalf("line %q of cgroup, want ID:CONTROLLERS:PATH", line)
		}
		paths[f[1]] = f[2]
	}
	return paths
}

// groupOurThreads fails if one of our threads is in a group of that name.
func groupOurThreads(t *testing.T, name string) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("threads of this process %v, error %v; want at least one", tasks, err)
	}
	for _, task := range tasks {
		data, err := os.ReadFile(task)
		if err == nil && strings.Contains(string(data), "/"+name+"\n") {
			t.Errorf("thread %s of this process is in the job's group:\n%s", task, data)
		}
	}
}

// A child and its child are in every created group, this process in none; the group stays as long as they live, and is
// removed then.
func TestNewJobGroup_CountsTheJob(t *testing.T) {
	m := groupMake(t)
	name := groupName(t)
	cmd := groupCommand("where")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))
	defer func() { // if the test ends early
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
				t.Fatalf("output of the %s: %v", who, err)
			}
			text.WriteString(line)
		}
		for list, path := range groupPaths(t, text.String()) {
			made := slices.ContainsFunc(strings.Split(list, ","), func(c string) bool {
				return slices.Contains([]string{"cpuacct", "memory", "pids", ""}, c)
			})
			if want := own[list]; made && path != filepath.Join(want, name) || !made && path != want {
				t.Errorf("%s is in group %s of %q, and we are in %s; want one below, made: %v",
					who, path, list, want, made)
			}
		}
	}

	if missing := m.Missing(); len(missing) != 0 {
		t.Errorf("Missing = %v, want nothing", missing)
	}
	pids, err := m.Group().PIDs()
	if err != nil || len(pids) != 2 || !slices.Contains(pids, cmd.Process.Pid) {
		t.Errorf("PIDs = %v, %v; want %d and its child", pids, err, cmd.Process.Pid)
	}
	c := m.Group().Read()
	if c.Processes != 2 || !(c.Threads >= 2) || !(c.CPUSeconds > 0) || !(c.Memory > 0) || !(c.PeakMemory >= c.WorkingSet) || c.OOMKills != 0 || c.Failed != nil {
		t.Errorf("counters %+v, want 2 processes with CPU time and memory, no failures", c)
	}
	if err := m.Remove(); !errors.Is(err, ErrBusy) {
		t.Errorf("Remove with processes inside: %v, want ErrBusy", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the job ended with %v", err)
	}
	groupRemoved(t, m)
}

// groupRemoved removes the group and checks that nothing is left.
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
		t.Error("the job group has no directory: no control group was created")
	}

	for range 2 {
		if err := m.Remove(); err != nil {
			t.Errorf("Remove after the job: %v", err)
		}
	}

	for _, dir := range dirs {
		if exists(dir) {
			t.Errorf("%s is left after Remove", dir)
		}
	}

	c := m.Group().Read()
	failed := c.Failed
	c.Failed = nil
	if c.Processes != c.Processes && failed["cgroup.procs"] == nil || c.CPUSeconds == c.CPUSeconds || len(failed) == 0 {
		t.Errorf("counters after Remove %+v, failures %v; want unknown CPU time, and reasons", c, failed)
	}
}

// While the job is in the group of one hierarchy, the groups of the others stay, too.
func TestJobGroup_RemoveKeepsAllIfOneIsBusy(t *testing.T) {
	m := groupMake(t)
	if len(m.v1) == 0 {
		t.Skip("no cgroup v1 here")
	}
	cmd := groupCommand("burn")
	out, _ := cmd.StdoutPipe()
	must(t, groupStart(m, cmd))
	bufio.NewReader(out).ReadString('\n')
	groupSet(t, filepath.Join(m.v1[0].parent, "cgroup.procs"), fmt.Sprint(cmd.Process.Pid))
	if err := m.Remove(); !errors.Is(err, ErrBusy) || !exists(m.v1[0].dir) {
		t.Errorf("Remove: %v, want ErrBusy; the empty group exists: %v, want true", err, exists(m.v1[0].dir))
	}
	cmd.Process.Kill()
	cmd.Wait()
	groupRemoved(t, m)
}

// Groups that the job created are removed with its group.
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

// Enter returns start's error unchanged, and the thread is back outside.
func TestJobGroup_EnterReturnsErrorOfStart(t *testing.T) {
	m := groupMake(t)
	want := errors.New("no job")
	if err := m.Enter(func(int) error { return want }); err != want {
		t.Errorf("Enter = %v, want the error of start, %v", err, want)
	}
	groupOurThreads(t, groupName(t))
	if len(m.v1) == 0 {
		return
	}

	// If a group cannot be entered, those entered before it are left again.
	last := &m.v1[len(m.v1)-1]
	good := last.dir
	last.dir += "-gone"
	called := false
	err := m.Enter(func(int) error { called = true; return nil })
	if called || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start was called: %v, error %v; want false, ErrNotExist", called, err)
	}
	last.dir = good
	groupOurThreads(t, groupName(t))
}

// A thread that cannot go back ends, so that no part of this process stays in the group.
func TestJobGroup_EnterEndsThreadThatCannotGoBack(t *testing.T) {
	m := groupMake(t)
	if len(m.v1) == 0 {
		t.Skip("no cgroup v1 here")
	}
	b := &m.v1[0]
	good := b.parent
	b.parent += "-gone"
	tid := 0
	if err := m.Enter(func(int) error { tid = unix.Gettid(); return nil }); err != nil {
		t.Fatal(err)
	}
	b.parent = good
	if m.missing["thread"] == nil {
		t.Error("Missing has no reason for the thread that could not go back")
	}
	delete(m.missing, "thread")
	if tid == os.Getpid() {
		t.Error("Enter used the main thread, which Go cannot end")
	}

	for deadline := time.Now().Add(5 * time.Second); exists(fmt.Sprintf("/proc/self/task/%d", tid)); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the thread that could not go back has not ended")
		}
	}

	groupOurThreads(t, groupName(t))
}

func TestNewJobGroup_RefusesBadNamesAndOtherUsers(t *testing.T) {
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
			t.Errorf("NewJobGroup as nobody = %v, %v; want ErrPermission with the name", m, err)
		}
	})

	if left, _ := filepath.Glob("/sys/fs/cgroup/*/" + name); left != nil {
		t.Errorf("groups %v are left, want none", left)
	}
}

// groupOutput returns the output of a mode, with its error if it fails.
func groupOutput(cmd *exec.Cmd) ([]byte, error) {
	cmd.Stderr = nil
	return cmd.CombinedOutput()
}

// groupIsolated runs a mode of this binary with new namespaces.
func groupIsolated(t *testing.T, flags uintptr, mode, arg string) {
	t.Helper()
	cmd := groupCommand(mode, arg)
	cmd.SysProcAttr.Cloneflags = flags
	cmd.SysProcAttr.Pdeathsig = 0
	out, err := groupOutput(cmd)
	if errors.Is(err, unix.EPERM) {
		t.Skip("namespaces are not allowed here: run as root")
	}
	if err != nil {
		t.Errorf("test in its namespace: %v: %s", err, out)
	}
}

func TestNewJobGroup_WithV2Alone(t *testing.T) {
	groupIsolated(t, syscall.CLONE_NEWNS, "v2", groupName(t))
}
func TestNewJobGroup_ReadOnlyFails(t *testing.T) {
	groupIsolated(t, syscall.CLONE_NEWNS, "readonly", groupName(t))
}

// groupV1Memory returns the created group's directory in v1's memory hierarchy.
func groupV1Memory(t *testing.T, m *JobGroup) string {
	t.Helper()
	p := m.Group().memory
	if !p.hasCounters() || p.v2 {
		t.Skip("no memory controller of cgroup v1 here")
	}
	return p.dir()
}

func TestGroup_InNamespaceHasLimits(t *testing.T) {
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

// A process alone in its v2 group moves to a separate one, so that controllers can be enabled.
func TestNewJobGroup_MovesAgentAside(t *testing.T) {
	top := "/sys/fs/cgroup/unified"
	there, _ := os.ReadFile(top + "/cgroup.controllers")
	on, _ := os.ReadFile(top + "/cgroup.subtree_control")
	if !hasWord(there, "hugetlb") {
		t.Skip("v2 has no controller hugetlb here")
	}
	own := filepath.Join(top, groupName(t))
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Skipf("no control group can be made here: run as root where the control groups are writable: %v", err)
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
		t.Errorf("process alone in its group: %v: %s", err, out)
	}
}

func groupSet(t *testing.T, path, text string) {
	t.Helper()
	must(t, writeFile(path, text))
}

// An OOM kill at the job's memory limit is counted once, also in a group below; the peak is the limit.
func TestGroup_CountsOOMKillOnce(t *testing.T) {
	m := groupMake(t)
	g := m.Group()
	if !g.memory.hasCounters() || g.own.oom == "" {
		t.Skip("no memory controller here")
	}
	dir, limit := g.memory.dir(), "memory.limit_in_bytes"
	if g.memory.v2 {
		limit = "memory.max"
	}
	groupSet(t, filepath.Join(dir, limit), "67108864")
	if l := g.Limits(); l.Memory != 64<<20 || l.MemoryGroup != g.memory.names[0] {
		t.Fatalf("limits %+v, want 64 MiB of group %s", l, g.memory.names[0])
	}
	before := g.Read()
	groupEaten(t, m)
	c := g.Read()
	if before.OOMKills != 0 || c.OOMKills != 1 {
		t.Errorf("OOM kills %v, then %v; want 0, then 1", before.OOMKills, c.OOMKills)
	}
	// The kernel may let a page or two pass.
	if g.own.peak != "" && (c.PeakMemory < 63<<20 || c.PeakMemory > 65<<20) || c.LimitPeak != c.PeakMemory && g.own.peak != "" {
		t.Errorf("peak %v, peak of the limiting group %v; want 63 to 65 MiB, the same", c.PeakMemory, c.LimitPeak)
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
		t.Errorf("OOM kills %v after one in a group below, want 2", c.OOMKills)
	}
}

// groupEaten runs a job that is killed for its memory.
func groupEaten(t *testing.T, m *JobGroup) {
	t.Helper()
	cmd := groupCommand("eat")
	must(t, groupStart(m, cmd))
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the job ended with %v, want SIGKILL", err)
	}
}

// Periods and throttled time are the kernel's, of the group with the quota, which is an ancestor of the process's
// group.
func TestGroup_CountsThrottlingOfGroupWithQuota(t *testing.T) {
	g, err := Find(Options{})
	if err != nil || g.cpu == nil || g.cpu.v2 {
		t.Skip("no cpu controller of cgroup v1 here")
	}
	top := filepath.Join(g.cpu.dir(), groupName(t))
	leaf := filepath.Join(top, "leaf")
	for _, dir := range []string{top, leaf} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("no control group can be made here: run as root: %v", err)
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
		t.Errorf("limits %+v, want .2 CPUs of the group %s", l, groupName(t))
	}
	before := job.Read()
	cmd.Process.Signal(unix.SIGUSR1)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the job ended with %v", err)
	}
	var c Counters
	var v [3]float64
	var data []byte
	for before := []byte(nil); ; before = data { // the kernel counts a period or two after the job's end
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
		t.Errorf("periods %v, throttled %v, %v s; want the numbers in cpu.stat: %s",
			c.Periods, c.ThrottledPeriods, c.ThrottledSeconds, data)
	}
	if n := c.ThrottledPeriods - before.ThrottledPeriods; n < 5 || c.Periods-before.Periods < n {
		t.Errorf("throttled in %v of %v periods, want at least 5 and at most all", n, c.Periods-before.Periods)
	}

	for _, dir := range []string{leaf, top} { // although its files are kept open
		if err := os.Remove(dir); err != nil {
			t.Errorf("a group with open files cannot be removed: %v", err)
		}
	}

	if c := job.Read(); c.Periods == c.Periods || !errors.Is(c.Failed["cpu.stat"], unix.ENODEV) {
		t.Errorf("after the removal: periods %v, failures %v; want NaN, ENODEV", c.Periods, c.Failed)
	}
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range open {
		if file, _ := os.Readlink(fd); strings.HasPrefix(file, job.quotaStat) {
			t.Errorf("%s of a removed group is kept open", file)
		}
	}
}

// This machine's groups: the numbers are consistent.
func TestGroup_ReadsThisMachine(t *testing.T) {
	g, err := Find(Options{})
	if err != nil {
		t.Skip(err)
	}
	l, c := g.Limits(), g.Read()
	t.Logf("%s %s: %+v\n%+v", g.Version(), g.Path(), l, c)
	if len(c.Failed) > 0 || len(l.Failed) > 0 {
		t.Errorf("failures of counters %v, of limits %v; want none", c.Failed, l.Failed)
	}
	pids, err := g.PIDs()
	if len(g.primary) > 0 && (err != nil || !slices.Contains(pids, os.Getpid())) {
		t.Errorf("PIDs = %v, %v; want this process, %d, among them", pids, err, os.Getpid())
	}
}
