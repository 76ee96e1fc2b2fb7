package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// told is a Python process that executes lines of code and acknowledges each one.
type told struct {
	*clitest.Process
	in io.Writer
}

const toldLoop = clitest.Burn + clitest.Sampled + `
def child(seconds):
    pid = os.fork()
    if pid == 0:
        burn(seconds)
        os._exit(0)
    os.waitpid(pid, 0)
def orphan(seconds):
    r, w = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            sampled(2) # until a sample has included it with its parent
            burn(seconds)
            sampled(2)
            os.close(w)
            os._exit(0)
        sampled(3)
        os._exit(0)
    os.close(w)
    os.wait()
    os.read(r, 1)
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("did", flush=True)
`

func startTold(t *testing.T, wrap func(*exec.Cmd)) *told {
	t.Helper()
	words := clitest.Python(t, toldLoop)
	cmd := clitest.Command(t, words[0], words[1:]...)
	if wrap != nil {
		wrap(cmd)
	}
	in, err := cmd.StdinPipe()
	check.Must(t, err)
	p := &told{clitest.StartProcess(t, cmd), in}
	p.Expect("ready")
	return p
}

// do makes the process execute a line and waits until it is done.
func (p *told) do(line string) {
	p.T.Helper()
	p.tell(line)
	p.Expect("did")
}

func (p *told) tell(line string) {
	p.T.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.T.Fatal(err)
	}
}

func (p *told) pid() string { return strconv.Itoa(p.Cmd.Process.Pid) }

// attach starts perfagent attach and waits until the recording has begun.
func attach(t *testing.T, args ...string) (*clitest.Process, agent.ReadyInfo) {
	t.Helper()
	return readyOf(t, clitest.Perfagent(t, append([]string{"attach", "--ready", "--interval", "50ms", "--quiet"}, args...)...))
}

// attachedReport waits until perfagent has ended by itself, checks that it succeeded without output, and returns its
// report.
func attachedReport(t *testing.T, l *clitest.Process) *reporter.Report {
	t.Helper()
	o := mustEnd(l, 0)
	wantSilence(t, o)
	return o.Report(t)
}

// wantCPU checks that the job used about the given seconds of CPU time, or a little more for Python itself.
func wantCPU(t *testing.T, r *reporter.Report, seconds float64) {
	t.Helper()
	if got := r.Nodes["0"].Metrics["job_cpu_seconds"]; !(got > seconds-0.03 && got < seconds+0.12) {
		t.Errorf("job_cpu_seconds = %v, want about %v", got, seconds)
	}
}

// readyOf starts cmd, which records processes, and waits until a mark has been recorded. Each later sample in the
// journal contains the growth since the previous one.
func readyOf(t *testing.T, cmd *exec.Cmd) (*clitest.Process, agent.ReadyInfo) {
	t.Helper()
	l := clitest.StartProcess(t, cmd)
	ready := decoded[agent.ReadyInfo](t, l.Next())
	clitest.Write(t, ready.Marks, "begun\n", 0o644)
	untilHas(t, filepath.Join(ready.Dir, "node-0.jsonl"), "begun", 1)
	return l, ready
}

// untilCounted waits until the samples add up to the given seconds of CPU time. CPU time that a process uses after its
// last sample is lost if another process reaps it.
func untilCounted(t *testing.T, ready agent.ReadyInfo, seconds float64) {
	t.Helper()
	part := regexp.MustCompile(`"job_cpu_s": ?([0-9.e-]+)`)
	clitest.WaitUntil(t, fmt.Sprint("samples with ", seconds, " s"), func() bool {
		data, _ := os.ReadFile(filepath.Join(ready.Dir, "node-0.jsonl"))
		sum := 0.
		for _, m := range part.FindAllSubmatch(data, -1) {
			v, _ := strconv.ParseFloat(string(m[1]), 64)
			sum += v
		}
		return sum >= seconds-0.02
	})
}

// exited returns the exit code in a report, or -1 if it has none.
func exited(r *reporter.Report) int {
	if r.Run.ExitCode == nil {
		return -1
	}
	return *r.Run.ExitCode
}

func missingOf(r *reporter.Report, what string) (m reporter.Missing) {
	for _, m := range r.Nodes["0"].Missing {
		if m.What == what {
			return m
		}
	}
	return m
}

func TestAttach_EndsWithItsProcessAndReportsSignal(t *testing.T) {
	t.Parallel()
	p := startTold(t, nil)
	l, _ := attach(t, p.pid())
	p.Signal(syscall.SIGKILL)
	p.End()
	if r := attachedReport(t, l); exited(r) != 137 || r.Run.Signal != "SIGKILL" || r.Run.Verdict.Cause != "signal" {
		t.Errorf("run %+v; want exit code 137, SIGKILL and a verdict with the cause signal", r.Run)
	}
}

// With two processes, perfagent records until both have ended, and the total includes the usage of the first.
func TestAttach_RecordsUntilAllProcessesEnd(t *testing.T) {
	t.Parallel()
	a, b := startTold(t, nil), startTold(t, nil)
	l, ready := attach(t, a.pid(), b.pid(), a.pid())
	a.do("burn(0.3)")
	untilCounted(t, ready, 0.3)
	a.tell("sys.exit(3)")
	a.End()
	b.do("burn(0.3)")
	untilCounted(t, ready, 0.6)
	b.tell("sys.exit(4)")
	b.End()
	r := attachedReport(t, l)
	want := []int{a.Cmd.Process.Pid, b.Cmd.Process.Pid}
	if exited(r) != 3 || !slices.Equal(r.Nodes["0"].Job.PIDs, want) || r.Nodes["0"].Job.PID != want[0] {
		t.Errorf("run %+v, job %+v; want exit code 3, processes %v", r.Run, r.Nodes["0"].Job, want)
	}
	wantCPU(t, r, 0.6)
}

// A signal or --for ends the recording, but not the processes.
func TestAttach_SignalEndsRecordingButNotProcesses(t *testing.T) {
	t.Parallel()
	p := startTold(t, nil)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, 0} {
		var l *clitest.Process
		if sig == 0 {
			l = clitest.StartProcess(t, clitest.Perfagent(t, "attach", "--quiet", "--for", "200ms", p.pid()))
		} else {
			l, _ = attach(t, p.pid())
			l.Signal(sig)
		}
		r := attachedReport(t, l)
		if exited(r) != -1 || r.Run.Verdict != nil || missingOf(r, "exit_code").Code != reporter.JobGoesOn {
			t.Errorf("attach ended by %v: run %+v, missing %+v; want no exit code, no verdict and the code job_goes_on",
				sig, r.Run, r.Nodes["0"].Missing)
		}
	}
	p.do("pass")
}

func TestAttach_RefusesInvalidProcessIDs(t *testing.T) {
	t.Parallel()
	zombie := clitest.Command(t, "true")
	check.Must(t, zombie.Start())
	dead := strconv.Itoa(zombie.Process.Pid)
	clitest.WaitUntil(t, "the child is a zombie", func() bool { return clitest.ProcessState(zombie.Process.Pid) == "Z" })
	self, thread := strconv.Itoa(os.Getpid()), ""
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		if task.Name() != self {
			thread = task.Name()
		}
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "name a process"},
		{[]string{"abc"}, `"abc" is not a process ID; pgrep -f finds those of a command`},
		{[]string{"0"}, `"0" is not a process ID`},
		{[]string{"99999999999"}, "not a process ID"},
		{[]string{self, "4194303"}, "process 4194303: it is not there"},
		{[]string{dead}, "it is not there"},
		{[]string{thread}, "it is a thread"},
		{[]string{self, "--for", "-1s"}, "--for"},
	} {
		o := mustRun(t, 1, append([]string{"attach"}, c.args...)...)
		o.WantLine(t, c.want)
		if clitest.Exists(filepath.Join(o.Dir, "perfagent-out")) {
			t.Errorf("%q: perfagent-out exists, want nothing written", c.args)
		}
	}
	_ = zombie.Wait()
}

// For a process of another user, PSS and I/O are missing, and the report gives the reason.
func TestAttach_ReportsWhyMemoryOfAnotherUserIsMissing(t *testing.T) {
	t.Parallel()
	testenv.NeedsRoot(t, "to attach as an ordinary user to a process of root")
	p := startTold(t, nil)
	cmd := clitest.AsNobody(t, clitest.Perfagent(t, "attach", "--ready", "--interval", "50ms", "--quiet", p.pid()))
	l, ready := readyOf(t, cmd)
	p.do("burn(0.3)")
	untilCounted(t, ready, 0.3)
	p.Signal(syscall.SIGTERM)
	p.End()
	r := attachedReport(t, l)
	n := r.Nodes["0"]
	if n.Job.MemoryKind != "rss" || !(n.Metrics["job_peak_memory_mb"] > 1) {
		t.Errorf("job %+v, want memory kind rss and a peak above 1 MiB", n.Job)
	}
	if _, there := n.Metrics["total_job_io_read_mb"]; there || missingOf(r, "total_job_io_read_mb").Why == "" {
		t.Errorf("metrics %v, missing %+v; want total_job_io_read_mb missing with a reason", n.Metrics, n.Missing)
	}
	if !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool { return strings.Contains(m.Why, "smaps_rollup") }) {
		t.Errorf("missing: %+v, want a reason that names smaps_rollup", n.Missing)
	}
	wantCPU(t, r, 0.3)
	if exited(r) != 143 {
		t.Errorf("run %+v, want exit code 143", r.Run)
	}
}

// perfagent is never counted as a child of the job that started it.
func TestAttach_DoesNotCountItselfAsChildOfJob(t *testing.T) {
	t.Parallel()
	o := mustExit(t, 5, clitest.Script(t, "bash", `
		$P attach --interval 20ms $$ &
		agent=$!
		( $P attach --interval 20ms --out other --run-id b $$ & )
		until [ -e perfagent-out ] && [ -e other/b ]; do :; done
		for i in 1 2 3 4 5; do sleep 0.1; done
		exit 5`))
	clitest.WaitUntil(t, "the report exists", func() bool {
		paths := reportertest.InDir(t, filepath.Join(o.Dir, "perfagent-out"))
		return len(paths) == 1 && filepath.Ext(paths[0]) == ".json"
	})
	r := o.Report(t)
	// The shell, its sleep, and the other perfagent, which is counted like any other process.
	if most := r.Nodes["0"].Metrics["max_t_job_processes"]; most > 3 || exited(r) != 5 {
		t.Errorf("max_t_job_processes = %v, want at most 3; run %+v, want exit code 5", most, r.Run)
	}
	untilExists(t, filepath.Join(o.Dir, "other/b/node-0.json"))
}

// Without pidfds, perfagent notices the end of a process, but its exit code is unknown.
func TestAttach_WithoutPidfd_NoticesEndButNotExitCode(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the seccomp filter is written for amd64")
	}
	p := startTold(t, nil)
	cmd := clitest.Command(t, os.Args[0], clitest.Binary(t), "attach", "--ready", "--interval", "50ms", "--quiet", p.pid())
	cmd.Env = append(cmd.Env, clitest.HelperEnv("without pidfd"))
	l, ready := readyOf(t, cmd)
	p.do("burn(0.2)")
	untilCounted(t, ready, 0.2)
	p.Signal(syscall.SIGKILL)
	p.End()
	r := attachedReport(t, l)
	if m := missingOf(r, "exit_code"); exited(r) != -1 || m.Code != reporter.ParentOnly || !strings.Contains(m.Why, "pidfd") {
		t.Errorf("run %+v, missing %+v; want no exit code, code %s and the reason pidfd", r.Run, m, reporter.ParentOnly)
	}
	if v := r.Run.Verdict; v == nil || v.Cause != "unknown" {
		t.Errorf("verdict %+v, want cause unknown", v)
	}
	wantCPU(t, r, 0.2)

	// The test reaps the process, so perfagent reports the sampled peak instead of wait4's.
	n := r.Nodes["0"]
	rss := n.Metrics["job_max_rss_mb"]
	if heaviest, _ := n.LargestProcess(); !(heaviest.PeakMemoryMB > 1) || rss != heaviest.PeakMemoryMB {
		t.Errorf("job_max_rss_mb %v, want the peak of the largest process, above 1 MiB: %+v", rss, heaviest)
	}
	if o := call("ls", "--json", ready.Dir); !strings.Contains(o.Out, `"failed_nodes": []`) {
		t.Errorf("perfagent ls --json lacks an empty failed_nodes: %s", o.Out)
	}
}

// withoutPidfd is a helper that executes its arguments with pidfd_open disabled.
func withoutPidfd() {
	const load, equal, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{ // the first one loads the system call's number
		{Code: load}, {Code: equal, K: unix.SYS_PIDFD_OPEN, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}, {Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}

	runtime.LockOSThread()
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	if err == nil {
		err = unix.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	panic(err)
}

// A sidecar ends after the time given with --for.
func TestSidecar_EndsAfterFor(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	o := mustRun(t, 0, "sidecar", "--interval", "20ms", "--for", "200ms")
	if r := o.Report(t); r.Run.WallSeconds <= 0 || r.Run.End.Sub(begin) < 200*time.Millisecond {
		t.Errorf("run %+v, test began at %v; want a run of at least 200ms", r.Run, begin)
	}
}
