package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// twoCPUs returns two of the CPUs that this process may use.
func twoCPUs(t *testing.T) (first, second int) {
	t.Helper()
	var set unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &set))
	var cpus []int
	for i := range 1024 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	if len(cpus) < 2 {
		t.Skip("needs two CPUs")
	}
	return cpus[0], cpus[1]
}

// bindTo binds a thread to one CPU.
func bindTo(t *testing.T, id, cpu int) {
	t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	must(t, unix.SchedSetaffinity(id, &set))
}

// goProgram is the environment variable that makes TestCPUsOf_CountsCPUsOfAllThreads wait for the end of its input, in
// a separate process.
const goProgram = "PERFAGENT_TEST_WAITS"

// aGoProgram starts a child process with several threads.
func aGoProgram(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestCPUsOf_CountsCPUsOfAllThreads$")
	cmd.Env = append(os.Environ(), goProgram+"=1")
	in := check.Value(cmd.StdinPipe())(t)
	out := check.Value(cmd.StdoutPipe())(t)
	must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	check.Value(io.ReadFull(out, make([]byte, len("ready"))))(t)
	return cmd.Process.Pid
}

// The job may use every CPU that any of its threads may use. Main threads are not enough.
func TestCPUsOf_CountsCPUsOfAllThreads(t *testing.T) {
	if os.Getenv(goProgram) != "" {
		fmt.Print("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	first, second := twoCPUs(t)
	a, b := aChild(t), aChild(t)
	bindTo(t, a, first)
	bindTo(t, b, first)
	got := cpusOf([]int{a, b})
	check.True(t, got == 1, "two processes bound to the same CPU: %d CPUs, want 1", got)
	bindTo(t, b, second)
	got = cpusOf([]int{a, b})
	check.True(t, got == 2, "two processes bound to different CPUs: %d CPUs, want 2", got)

	threads := aGoProgram(t)
	bindTo(t, threads, first)
	got, want := cpusOf([]int{threads}), affinity(0)
	check.True(t, got == want, "process with only its main thread bound: %d CPUs, want %d", got, want)

	got = cpusOf([]int{1 << 22})
	check.True(t, got == 0, "process that does not exist: %d CPUs, want 0 (unknown)", got)
}

// ownReader returns a function that reads the children of this process as a job. Everything is due in each call.
func ownReader(t *testing.T, group *cgroup.Group) (read func() *JobUsage) {
	t.Helper()
	r := NewReader(Options{JobOnly: true, Job: JobOptions{
		Source: JobFromTree, Group: group, Tree: process.NewTree(process.Options{Root: os.Getpid()})}})
	t.Cleanup(r.Close)
	r.Baseline()
	return func() *JobUsage {
		r.job.tree.tableAt, r.job.limitsAt = time.Time{}, 0
		reading := r.Read()
		must(t, reading.Failed[SourceJob])
		return reading.Job
	}
}

// If a job limits itself to fewer CPUs than it was given, both numbers are known.
func TestReader_BoundJobHasOwnAndGivenCPUs(t *testing.T) {
	cpu, _ := twoCPUs(t)
	read := ownReader(t, nil)
	child := aChild(t)
	given := affinity(0)
	if l := read().Limits; l.CPUs != float64(given) || l.GivenCPUs != 0 {
		t.Errorf("limits without a binding = %+v, want %d CPUs and GivenCPUs 0", l, given)
	}
	bindTo(t, child, cpu)
	if l := read().Limits; l.CPUs != 1 || l.AffinityCPUs != 1 || l.GivenCPUs != float64(given) {
		t.Errorf("limits when bound to one of %d CPUs = %+v, want 1 CPU, given %d", given, l, given)
	}
}

// A Reader of only a job reads the host's OOM kills in the first and the last Reading, and no other counters of the
// host.
func TestReader_JobOnlyReadsOnlyOOMKillsOfHost(t *testing.T) {
	r := NewReader(Options{JobOnly: true, Job: JobOptions{
		Source: JobFromTree, Tree: process.NewTree(process.Options{Root: os.Getpid()})}})
	t.Cleanup(r.Close)
	if vm := r.Baseline().VM; vm == nil || !math.IsNaN(vm.SwapIn) || !math.IsNaN(vm.MajorFaults) {
		t.Errorf("baseline of a job-only Reader: vmstat = %+v, want only OOM kills", vm)
	}
	for i := range 2 {
		vm := r.Read().VM
		check.True(t, vm == nil, "reading %d of a job-only Reader: vmstat = %+v, want nil", i, vm)
	}
}

// If the job's processes enter a control group, the limits of that group apply to the job.
func TestReader_JobHasLimitsOfGroupItEnters(t *testing.T) {
	testenv.NeedsRoot(t, "which makes control groups")
	dir, file, quota := "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"
	if _, err := os.Stat(dir); err != nil {
		dir, file, quota = "/sys/fs/cgroup", "cpu.max", "50000 100000"
	}
	dir = filepath.Join(dir, "perfagent-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skip("needs a writable hierarchy of control groups: ", err)
	}
	t.Cleanup(func() { _ = unix.Rmdir(dir) })
	if err := os.WriteFile(filepath.Join(dir, file), []byte(quota), 0o600); err != nil {
		t.Skip("needs the cpu controller: ", err)
	}
	own := check.Value(cgroup.Find(cgroup.Options{}))(t)
	read := ownReader(t, own)
	given, home := read().Limits, filepath.Join(filepath.Dir(dir), "cgroup.procs")

	child := aChild(t)
	move := func(file string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(strconv.Itoa(child)), 0o600))
	}
	read()
	move(filepath.Join(dir, "cgroup.procs"))
	t.Cleanup(func() { _ = os.WriteFile(home, []byte(strconv.Itoa(child)), 0o600) })
	use := read()
	if l := use.Limits; l.CPUQuota != .5 || l.CPUs != .5 || l.GivenCPUs != given.CPUs || l.CPUGroup != "/"+filepath.Base(dir) {
		t.Errorf("limits in the group = %+v, want half a CPU from %s, given %v", l, dir, given.CPUs)
	}
	check.True(t, use.Group != nil && use.Group.Periods >= 0, "counters of the group = %+v, want known periods", use.Group)
	move(home)
	if l := read().Limits; l.CPUs != given.CPUs || l.GivenCPUs != 0 {
		t.Errorf("limits after leaving the group = %+v, want %v CPUs and GivenCPUs 0", l, given.CPUs)
	}
}

// An ending process is not mistaken for a process that was moved to the root groups.
func TestControlGroups_DetectsEndingProcess(t *testing.T) {
	stat := func(flags int) string { return fmt.Sprintf("7 (a) R 1 7 7 0 -1 %d 0", flags) }
	for _, test := range []struct {
		name, groups, stat string
		ends               bool
	}{
		{"in a group of v2", "0::/a\n", stat(0x4), false},
		{"in a root group", "4:memory:/\n0::/a\n", stat(0x400000), false},
		{"about to end", "4:memory:/\n0::/a\n", stat(0x400004), true},
		{"killed by a signal", "4:memory:/\n0::/a\n", stat(0x400), true},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"cgroup": test.groups, "stat": test.stat} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		got, err := controlGroups(dir)
		ends := errors.Is(err, fs.ErrNotExist)
		check.True(t, ends == test.ends && (ends || err == nil && string(got) == test.groups),
			"%s: groups = %q, error = %v; want %q, or ErrNotExist if ending: %v", test.name, got, err, test.groups, test.ends)
	}
}

// A zombie is not mistaken for a process that was moved to the root groups.
func TestGroupsOf_IgnoresZombie(t *testing.T) {
	cmd := exec.Command("true")
	must(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	must(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))

	groups, _, _ := (&jobTree{}).groupsOf([]int{cmd.Process.Pid})
	check.True(t, groups == "", "groups of a zombie = %q, want none", groups)
	own := check.Value(os.ReadFile("/proc/self/cgroup"))(t)
	got, err := controlGroups(fmt.Sprintf("/proc/%d", cmd.Process.Pid))
	check.True(t, errors.Is(err, fs.ErrNotExist) || string(got) == string(own),
		"control groups of a zombie = %q, error = %v; want this process's groups, %q, or ErrNotExist", got, err, own)
}

// environsOf keeps only the variables that select GPUs.
func TestEnvironsOf_KeepsOnlyGPUVariables(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "1")
	t.Setenv("A_SECRET", "hidden")
	one := aChild(t)
	t.Setenv("CUDA_VISIBLE_DEVICES", "2,3")
	two, same := aChild(t), aChild(t)
	got := environsOf([]int{one, two, same, 1 << 22})
	check.True(t, len(got) == 2 && len(got[0]) == 1 && got[0][0] == "CUDA_VISIBLE_DEVICES=1" && got[1][0] == "CUDA_VISIBLE_DEVICES=2,3",
		"environments = %q, want CUDA_VISIBLE_DEVICES=1 and CUDA_VISIBLE_DEVICES=2,3", got)
	got = environsOf(make([]int, maxEnvirons+1))
	check.True(t, got == nil, "environments of more than %d processes = %q, want nil", maxEnvirons, got)
}
