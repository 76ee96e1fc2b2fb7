package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// emptyGroupIn returns a group without processes, in a tree copied to root.
func emptyGroupIn(t *testing.T, root string) *cgroup.Group {
	t.Helper()
	for name, text := range map[string]string{
		"proc/42/cgroup": "0::/job\n", "proc/42/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/cgroup.procs": "1\n", "sys/fs/cgroup/job/cgroup.procs": "",
		"sys/fs/cgroup/job/cgroup.events": "populated 0\n", "sys/fs/cgroup/job/cpu.stat": "usage_usec 7000000\n",
	} {
		write(t, root, name, []byte(text))
	}

	g := check.Value(cgroup.Find(cgroup.Options{Proc: root + "/proc", Sys: root + "/sys", PID: 42}))(t)
	return g
}

// At the usual interval, the limits of a limited job are read in each sample. Without limits, or if another perfagent
// measures the host, they are read every five seconds.
func TestReader_ReadsLimitsOfLimitedJobMoreOften(t *testing.T) {
	root := t.TempDir()
	group := emptyGroupIn(t, root)
	now := time.Second
	r := openJob(t, JobOptions{Source: JobFromCreated, Group: group}, &now)
	r.Baseline()
	for _, step := range []struct {
		limit string
		after float64 // seconds
		want  series.Optional
		host  bool
	}{
		{"1073741824", 1, series.Unknown(), false}, {"1073741824", 3, series.Unknown(), false}, {"1073741824", 1, 1024, false},
		{"2147483648", 1, 1024, false}, {"2147483648", 4, 2048, false},
		{"536870912", 1, 512, true}, {"268435456", 1, 256, true}, {"max", 1, series.Unknown(), true},
		{"536870912", 1, series.Unknown(), true}, {"536870912", 4, 512, true},
	} {
		if step.host {
			r.MeasureHost()
		}
		write(t, root, "sys/fs/cgroup/job/memory.max", []byte(step.limit+"\n"))
		now += time.Duration(step.after * float64(time.Second))
		got := r.Read().Job.Limits.MemoryMB
		check.True(t, got == step.want || !got.Known() && !step.want.Known(), "%+v: MemoryMB = %v, want %v", step, got, step.want)
	}
}

// If a reader of the job panics, at the baseline or later, the job's numbers are missing but the run goes on.
func TestReader_PanicAffectsOnlyJobUsage(t *testing.T) {
	damaged := true
	reader := openFixture(t, "healthy")
	reader.job = jobReader{JobOptions: JobOptions{Source: JobFromCreated, Group: emptyGroupIn(t, t.TempDir()), Reaped: func() ReapedUsage {
		if damaged {
			panic("index out of range")
		}
		return ReapedUsage{}
	}}, tree: newJobTree(JobOptions{})}

	for what, read := range map[string]func() *Reading{"baseline": reader.Baseline, "reading": reader.Read} {
		damaged = true
		if r := read(); r.Failed[SourceJob] == nil || !strings.Contains(r.Failed[SourceJob].Error(), "index out of range") || r.CPU == nil {
			t.Errorf("%s: failures = %v, CPUs = %v; want the panic as the job's failure, and CPUs", what, r.Failed, r.CPU)
		}
		damaged = false
		r := read()
		check.True(t, r.Failed[SourceJob] == nil && r.Job != nil && r.Job.CPUSeconds == 7 && (math.IsNaN(r.Job.Processes) || what != "reading"),
			"%s after the panic: usage = %+v, failures = %v; want 7 s of CPU time and no failure", what, r.Job, r.Failed)
	}
}

// The error contains every reason why processes of the job could not be read.
func TestFileErrors_ContainsEveryReason(t *testing.T) {
	if err := fileErrors(nil); err != nil {
		t.Errorf("fileErrors(nil) = %v, want nil", err)
	}
	stat, io := errors.New("no stat"), errors.New("no io")
	err := fileErrors(map[string]error{"stat": stat, "io": io})
	var why []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		why = append(why, e.Error())
	}
	if got := strings.Join(why, "|"); got != "io: no io|stat: no stat" || !errors.Is(err, stat) || !errors.Is(err, io) {
		t.Errorf("reasons = %q, want io before stat, both of them wrapped", got)
	}
}

// aBusyChild starts a process that uses CPU time until the test ends. It returns after the process has used some.
func aBusyChild(t *testing.T) (pid int) {
	t.Helper()
	child := exec.Command("sh", "-c", "while :; do :; done")
	must(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	awaitCPU(t, child.Process.Pid, 100*time.Millisecond)
	return child.Process.Pid
}

// awaitCPU waits until the process pid has used more additional CPU time.
func awaitCPU(t *testing.T, pid int, more time.Duration) {
	t.Helper()
	begin, _ := process.CPUTime(pid)
	for {
		used, ok := process.CPUTime(pid)
		if !ok {
			t.Fatalf("process %d has no CPU clock; it may have ended", pid)
		}
		if used >= begin+more {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A group counts less than the job has certainly used if processes are in another group or the group's counter is a
// stub. In that case, the same Reading already uses the numbers of the processes.
func TestReader_UsesProcessesIfGroupCountsLess(t *testing.T) {
	busy := aBusyChild(t)
	for name, test := range map[string]struct {
		main, whole bool // whether the main process is known, and whether the processes can be found
		reaped      float64
		prove       bool
		want        bool
	}{
		"clock of the main process":            {main: true, want: true},
		"clock of the main process, processes": {main: true, whole: true, want: true},
		"wait4":                                {reaped: 1, want: true},
		"processes, verified in each Reading":  {whole: true, prove: true, want: true},
		"processes, verified occasionally":     {whole: true, want: true},
		"nothing known":                        {},
	} {
		for tries := 1; ; tries++ {
			root := t.TempDir()
			group := emptyGroupIn(t, root)
			write(t, root, "sys/fs/cgroup/job/memory.current", []byte("1048576\n"))
			reaped := ReapedUsage{}
			job := JobOptions{Source: JobFromCreated, Group: group, VerifyGroup: test.prove, Reaped: func() ReapedUsage { return reaped }}
			job.TreeErr = fmt.Errorf("they cannot be found")
			if test.whole {
				job.Tree, job.TreeErr = process.NewTree(process.Options{Root: os.Getpid()}), nil
			}
			now := time.Second
			r := openJob(t, job, &now)
			r.Baseline()

			if reaped.CPUSeconds = test.reaped; test.main {
				reaped.MainPID = busy
			}
			used, _ := process.CPUTime(busy)
			if !test.main && !test.whole {
				used = time.Duration(test.reaped * float64(time.Second))
			}
			now += tableEarly
			use := r.Read().Job
			counted := use.CPUSeconds - 7
			if use.Outside == test.want && counted >= 0.99*used.Seconds() && use.LateCPUSeconds == 0 {
				break
			}
			if tries == 5 { // on a busy machine, a scan may not end in time
				t.Errorf("%s: Outside = %v, want %v; counted %v s, want 99 %% of %v; LateCPUSeconds = %v, want 0",
					name, use.Outside, test.want, counted, used, use.LateCPUSeconds)
				break
			}
		}
	}
}

// If a group counts the whole job, its numbers are used, no matter what the processes do while they are read.
func TestReader_UsesGroupIfItCountsAll(t *testing.T) {
	busy := aBusyChild(t)
	root := t.TempDir()
	now := time.Second
	r := openJob(t, JobOptions{
		Source: JobFromCreated, Group: emptyGroupIn(t, root), VerifyGroup: true,
		Tree:   process.NewTree(process.Options{Root: os.Getpid()}),
		Reaped: func() ReapedUsage { return ReapedUsage{MainPID: busy} },
	}, &now)
	r.Baseline()
	for range 3 {
		now += time.Second
		used, _ := process.CPUTime(busy)
		counted := 7 + used.Seconds() + 100 // as counted by the kernel until the read
		write(t, root, "sys/fs/cgroup/job/cpu.stat", fmt.Appendf(nil, "usage_usec %.0f\n", counted*1e6))
		if use := r.Read().Job; use.Outside || math.Abs(use.CPUSeconds-counted) > 1e-5 {
			t.Errorf("CPUSeconds = %v, Outside = %v; want the group's %v, false", use.CPUSeconds, use.Outside, counted)
		}
		awaitCPU(t, busy, 10*time.Millisecond)
	}
}

// Usage that the group missed in several Readings is late, not part of the newest Reading.
func TestGroupCheck_ReportsEarlierUsageAsLate(t *testing.T) {
	var w groupCheck
	w.begin(0, &JobUsage{CPUSeconds: 7}, false)
	for _, c := range []struct {
		group, atLeast float64
		want           bool
	}{
		{7, 0, false}, {7, 0.019, false}, {7, 0.03, true}, {17, 10, false}, {17, 10.2, false}, {17, 11, true},
		{17, math.NaN(), false}, {math.NaN(), 10, false},
	} {
		same(t, fmt.Sprintf("undercounts(%v, %v)", c.group, c.atLeast), w.undercounts(c.group, c.atLeast), c.want)
	}

	for _, c := range []struct {
		last, scanned time.Duration
		late          float64
	}{{0, 0, 0}, {5, 5, 0}, {5, 1, 3}} {
		w := groupCheck{cpu: counterPair{7, 0}, last: c.last, scanned: c.scanned}
		use := JobUsage{CPUSeconds: 8}
		if w.addUncountedCPU(&use, 4); use.CPUSeconds != 11 || use.LateCPUSeconds != c.late {
			t.Errorf("%+v: CPUSeconds = %v, want 11; LateCPUSeconds = %v, want %v", c, use.CPUSeconds, use.LateCPUSeconds, c.late)
		}
		use = JobUsage{CPUSeconds: 9}
		if w.addUncountedCPU(&use, 6); use.CPUSeconds != 13 || use.LateCPUSeconds != 0 {
			t.Errorf("%+v, second call: CPUSeconds = %v, LateCPUSeconds = %v; want 13, 0", c, use.CPUSeconds, use.LateCPUSeconds)
		}
	}
}

// Memory without signs of a change is treated as measured in this Reading, and is also the lower bound.
func TestReader_UnchangedMemoryIsNotStale(t *testing.T) {
	aChild(t)
	now := time.Second
	r := openJob(t, JobOptions{Source: JobFromTree, Tree: process.NewTree(process.Options{Root: os.Getpid()})}, &now)
	r.Baseline()
	for range 4 {
		now += time.Second
		if use := r.Read().Job; use.MemoryStale || !(use.Memory > 0) || !(use.MemoryLowerBound > 0) {
			t.Errorf("Memory = %v, MemoryLowerBound = %v, MemoryStale = %v; want both known and not stale",
				use.Memory, use.MemoryLowerBound, use.MemoryStale)
		}
	}
}

func TestJobUsage_ReconcileTasksGivesEachProcessAThread(t *testing.T) {
	for _, c := range []struct{ processes, threads, wantProcesses, wantThreads float64 }{
		{1, 0, 1, 1}, {3, 2, 3, 3}, {2, 5, 2, 5}, {0, 1, nan, nan}, {0, 0, nan, nan}, {nan, nan, nan, nan}, {2, nan, 2, nan},
	} {
		use := JobUsage{Processes: c.processes, Threads: c.threads}
		use.reconcileTasks()
		same(t, fmt.Sprint(c), [2]float64{use.Processes, use.Threads}, [2]float64{c.wantProcesses, c.wantThreads})
	}
}

// While the main process lives, the job has at least one process, and at least as many threads as processes. If no
// process is visible, procfs hides them, so their usage is unknown rather than 0.
func TestReader_CountsLivingMainProcess(t *testing.T) {
	busy := aBusyChild(t)
	now, reaped := time.Second, ReapedUsage{MainPID: busy}
	for source, group := range map[string]func() *JobOptions{
		JobFromCreated: func() *JobOptions { return &JobOptions{Group: emptyGroupIn(t, t.TempDir())} },
		JobFromTree: func() *JobOptions {
			return &JobOptions{Tree: process.NewTree(process.Options{Root: os.Getpid(), Ignore: func(int) bool { return true }})}
		},
	} {
		job := group()
		job.Source, job.Reaped = source, func() ReapedUsage { return reaped }
		r := openJob(t, *job, &now)
		r.Baseline()
		for n := range 3 {
			now += time.Second
			got := r.Read()
			if use := got.Job; source == JobFromCreated && (use.Processes != 1 || use.Threads < 1 && !math.IsNaN(use.Threads)) {
				t.Errorf("%s: %v processes, %v threads; want 1 process, and at least 1 thread or unknown",
					source, use.Processes, use.Threads)
			} else if source == JobFromTree && (!math.IsNaN(use.CPUSeconds) || (got.Failed[SourceJob] == errHidden) != (n > 0)) {
				t.Errorf("%s, reading %d: CPUSeconds = %v, want NaN; failures = %v, want errHidden only after the first reading",
					source, n, use.CPUSeconds, got.Failed)
			}
		}
	}
}

// Swapped-out memory is part of the job's memory, and is also reported separately.
func TestReader_MemoryOfGroupIncludesSwap(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"memory.current":      "104857600\n",
		"memory.stat":         "anon 94371840\nfile 10485760\nshmem 0\ninactive_file 10485760\n",
		"memory.swap.current": "52428800\n",
	} {
		write(t, root, "sys/fs/cgroup/job/"+name, []byte(text))
	}
	r := NewReader(Options{Job: JobOptions{Source: JobFromCreated, Group: emptyGroupIn(t, root), Running: true}, JobOnly: true, Now: eachSecond()})
	t.Cleanup(r.Close)
	write(t, root, "sys/fs/cgroup/job/cgroup.procs", []byte("42\n"))
	use := r.Read().Job
	same(t, "memory and its swapped-out part, MiB", [2]float64{use.Memory / mib, use.Swap / mib}, [2]float64{140, 50})
	same(t, "MemoryKind", use.MemoryKind, MemoryGroup)
}

// The parts of a group's memory come from its memory.stat.
func TestReader_DividesMemoryOfGroup(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"memory.current": "104857600\n",
		"memory.stat":    "anon 52428800\nfile 47185920\nshmem 31457280\nkernel 4194304\nsock 1048576\ninactive_file 10485760\n",
	} {
		write(t, root, "sys/fs/cgroup/job/"+name, []byte(text))
	}
	r := NewReader(Options{Job: JobOptions{Source: JobFromCreated, Group: emptyGroupIn(t, root), Running: true}, JobOnly: true, Now: eachSecond()})
	t.Cleanup(r.Close)
	write(t, root, "sys/fs/cgroup/job/cgroup.procs", []byte("42\n"))
	want := MemoryParts{Anon: 50 * mib, File: 15 * mib, Shmem: 30 * mib, Kernel: 4 * mib, Sock: mib, HugeTLB: math.NaN()}
	same(t, "parts", fmt.Sprint(r.Read().Job.Parts), fmt.Sprint(want))
}

// memoryHolder is a program that uses memory in one of several ways, prints a line, and runs until its input ends.
const memoryHolder = `
import mmap, os, sys
how, mib = sys.argv[1], int(sys.argv[2])
size = mib << 20
if how == "anonymous":
    held = bytearray(size)
    for i in range(0, size, 4096): held[i] = 1
elif how == "mixed":
    held = bytearray(120 << 20)
    for i in range(0, 120 << 20, 4096): held[i] = 1
    maps = []
    for where, size in (("/dev/shm", 100), (sys.argv[3], 80)):
        with open(f"{where}/perfagent-test-{os.getpid()}", "w+b") as f:
            os.unlink(f.name)
            for _ in range(size): f.write(b"x" * (1 << 20))
            f.flush()
            maps.append(mmap.mmap(f.fileno(), size << 20))
            sum(maps[-1][i] for i in range(0, size << 20, 4096))
elif how == "open":
    held = os.memfd_create("held")
    for _ in range(mib): os.write(held, b"x" * (1 << 20))
else:
    held = mmap.mmap(-1, size)
    for i in range(0, size, 4096): held[i] = 1
    for _ in range(2):
        if os.fork() == 0:
            held[0] + sum(held[i] for i in range(0, size, 4096))
            os.write(1, b"child\n")
            sys.stdin.read()
            os._exit(0)
print("held", flush=True)
sys.stdin.read()
`

// The process tree and the control group agree on the memory of a job, for each kind of memory.
func TestTree_AgreesWithGroupOnMemory(t *testing.T) {
	testenv.SkipIfShort(t, "some seconds")
	python := os.Getenv("PERFAGENT_TEST_PYTHON")
	if python == "" {
		python = testenv.NeedsTool(t, "python3", "apt-get install python3, or make test")
	}
	for how, lines := range map[string]int{"anonymous": 1, "open": 1, "mapped": 3, "mixed": 1} {
		t.Run(how, func(t *testing.T) {
			made, err := cgroup.NewJobGroup(fmt.Sprintf("perfagent-test-%d-memory-%s", os.Getpid(), how))
			if err != nil {
				t.Skipf("cannot create a control group; run as root with writable control groups: %v", err)
			}
			defer func() { _ = made.Remove() }()

			tree := process.NewTree(process.Options{Root: os.Getpid()}) // before the job
			defer tree.Close()
			cmd := exec.Command(python, "-c", memoryHolder, how, "256", t.TempDir())
			end := startInGroup(t, made, cmd, lines)
			defer end()
			c := made.Group().Read()
			group := c.Memory - c.PageCache
			if math.IsNaN(group) {
				t.Skip("needs the memory controller; run as root with writable control groups")
			}
			u, err := tree.Read()
			for tries := 1; u.MemoryKind != MemoryPSS && tries < 10; tries++ { // on a busy machine, a pass may not end in time
				u, err = tree.Read()
			}
			if err != nil || u.MemoryKind != MemoryPSS {
				t.Fatalf("usage = %+v, error = %v; want memory as PSS", u, err)
			}
			t.Logf("group %.1f MiB, tree %.1f MiB", group/mib, u.Memory/mib)
			sum := c.Anon + c.PageCache + c.Shmem + c.Kernel + orElse(c.Sock, 0) + orElse(c.HugeTLB, 0)
			check.True(t, math.Abs(sum-c.Memory) <= 0.05*c.Memory,
				"sum of the group's parts = %.1f MiB, want its usage of %.1f MiB within 5 %%; %+v", sum/mib, c.Memory/mib, c)
			for what, v := range map[string][2]float64{"anonymous": {u.Anon, c.Anon}, "shared": {u.Shmem, c.Shmem}} {
				check.True(t, math.Abs(v[0]-v[1]) <= 0.05*group,
					"%s memory of the tree = %.1f MiB, want the group's %.1f MiB within 5 %%", what, v[0]/mib, v[1]/mib)
			}
			if how == "mixed" {
				group += 80 * mib // the file on disk is page cache of the group
				for what, v := range map[string][2]float64{"anonymous": {c.Anon, 120}, "shared": {c.Shmem, 100}, "files of the group": {c.PageCache, 80},
					"files of the tree": {u.File, 80}} {
					check.True(t, math.Abs(v[0]/mib-v[1]) <= 0.05*group/mib, "%s = %.1f MiB, want %v MiB", what, v[0]/mib, v[1])
				}
			}
			check.True(t, math.Abs(u.Memory-group) <= 0.05*group,
				"memory of the tree = %.1f MiB, want the group's %.1f MiB within 5 %%", u.Memory/mib, group/mib)
		})
	}
}

// startInGroup starts cmd in the group made, waits for the given number of lines of output, and returns a function that
// ends it.
func startInGroup(t *testing.T, made *cgroup.JobGroup, cmd *exec.Cmd, lines int) (end func()) {
	t.Helper()
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	input := check.Value(cmd.StdinPipe())(t)
	out := check.Value(cmd.StdoutPipe())(t)
	err := made.Enter(func(fd int) error {
		if fd >= 0 {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		}
		return cmd.Start()
	})
	must(t, err)
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() }) // ends the read below
	from := bufio.NewReader(out)
	for range lines {
		check.Value(from.ReadString('\n'))(t)
	}
	return func() {
		_ = input.Close()
		_, _ = io.Copy(io.Discard, from) // until all processes of cmd have ended
		_ = cmd.Wait()
		late.Stop()
	}
}
