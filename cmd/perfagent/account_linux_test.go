package main

import (
	"bytes"
	"fmt"
	"math"
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
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// parting starts two processes that share 300 MiB until one of them writes to all of it. It then prints the sum of
// their PSS in MiB, and runs until its stdin is closed.
const parting = `
import os, time
memory = bytearray(300 << 20)
for i in range(0, len(memory), 4096): memory[i] = 1
if os.fork() == 0:
    time.sleep(2.0)
    for i in range(0, len(memory), 4096): memory[i] = 2
    kb = 0
    for pid in os.getpid(), os.getppid():
        for line in open(f"/proc/{pid}/smaps_rollup"):
            if line.startswith("Pss:"): kb += int(line.split()[1])
    print(kb / 1024, flush=True)
    os.read(0, 1)
    os._exit(0)
os.wait()
`

// The peak memory includes pages that two processes stop sharing, although the resident set of each process stays the
// same size.
func TestAccount_PeakMemoryCountsUnsharedPages(t *testing.T) {
	cmd := runPython(t, []string{"--cgroup", "off", "--run-id", "r"}, parting)
	stdin, hold := clitest.Pipe(t)
	cmd.Stdin = stdin
	l := clitest.StartProcess(t, cmd)
	truth, err := strconv.ParseFloat(l.Next(), 64)
	if err != nil || truth < 600 {
		t.Fatalf("the job printed %v (%v), want at least 600 MiB", truth, err)
	}

	// On a busy machine, perfagent reads the memory of the processes less often.
	clitest.WaitUntil(t, "the peak is in the journal", func() bool {
		r, err := reportfile.Read(filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl"), 0)
		return err == nil && slices.ContainsFunc(r.Nodes["0"].Envelope["job_memory_mb"].Max, func(v float64) bool { return v > 0.98*truth })
	})
	hold.Close()
	o, _ := l.End()
	n := wantNode(t, o, 0)
	if got := n.Job.PeakMemoryMB; math.Abs(got-truth) > 0.02*truth || n.Job.MemoryKind != "pss" {
		t.Errorf("peak %.1f MiB (%s), want the kernel's %.1f as pss; samples %.1f",
			got, n.Job.MemoryKind, truth, n.Envelope["job_memory_mb"].Max)
	}
}

// runPython returns a perfagent run command with the given flags, whose job is a few lines of Python.
func runPython(t *testing.T, flags []string, lines ...string) *exec.Cmd {
	t.Helper()
	return clitest.Perfagent(t, slices.Concat([]string{"run"}, flags, []string{"--"}, clitest.Python(t, lines...))...)
}

// wantNode checks the exit code and returns the only node of the report.
func wantNode(t *testing.T, o clitest.Outcome, code int) *reporter.Node {
	t.Helper()
	o.Want(t, code)
	return o.Report(t).Nodes["0"]
}

// wantMissing checks that the item what is missing from n for a reason that contains why.
func wantMissing(t *testing.T, n *reporter.Node, what, why string) {
	t.Helper()
	if !strings.Contains(reportertest.Reasons(n, what), why) {
		t.Errorf("missing: %v, want an entry for %s with the reason %q", n.Missing, what, why)
	}
}

// performAlone runs cmd. It returns the outcome, and the CPU time of the process itself in seconds, without its
// children.
func performAlone(t *testing.T, cmd *exec.Cmd) (clitest.Outcome, float64) {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	check.Must(t, cmd.Start())
	timer := time.AfterFunc(clitest.Longest, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })
	defer timer.Stop()
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, &unix.Siginfo{}, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	var own unix.Timespec
	const clockOfAll = 2                                                          // CPUCLOCK_SCHED
	check.Must(t, unix.ClockGettime(int32(^cmd.Process.Pid<<3|clockOfAll), &own)) // the process is a zombie
	clitest.Wait(t, cmd)
	return clitest.Outcome{Out: out.String(), Err: stderr.String(), Code: cmd.ProcessState.ExitCode(), Dir: cmd.Dir}, time.Duration(own.Nano()).Seconds()
}

// accountGroup creates a cgroup v1 group. It sets path and out to a shell that enters the group and then executes args.
// It returns a function that returns the group's CPU time in seconds.
func accountGroup(t *testing.T, args []string, path *string, out *[]string) func() float64 {
	t.Helper()
	name, enter := fmt.Sprintf("perfagent-test-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(t.TempDir()))), ""
	for _, controller := range []string{"cpuacct", "memory"} {
		dir := filepath.Join("/sys/fs/cgroup", controller, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("cannot create cgroup v1 groups for CPU time and memory (run as root on a system with cgroup v1): %v", err)
		}
		t.Cleanup(func() {
			clitest.WaitUntil(t, dir+" is removed", func() bool { return os.Remove(dir) == nil || !clitest.Exists(dir) })
		})
		enter += "echo $$ > " + dir + "/cgroup.procs; "
	}
	*path = "/bin/sh"
	*out = append([]string{"sh", "-c", enter + `exec "$@"`, "sh"}, args...)
	return func() float64 {
		t.Helper()
		text := clitest.Read(t, filepath.Join("/sys/fs/cgroup/cpuacct", name, "cpuacct.usage"))
		ns, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		check.Must(t, err)
		return ns / 1e9
	}
}

func wantSource(t *testing.T, n *reporter.Node, source string) {
	t.Helper()
	if n.Job.Source != source {
		t.Errorf("job.source = %q, want %q; missing: %v", n.Job.Source, source, n.Missing)
	}
}

// The control group created for the job is kept while a daemon runs in it.
func TestAccount_KeepsCreatedGroupWhileDaemonRunsInIt(t *testing.T) {
	cmd := runPython(t, []string{"--cgroup", "create"}, clitest.DaemonBurns)
	r, w := clitest.Pipe(t)
	cmd.ExtraFiles = []*os.File{6: r}
	o := clitest.RunCommand(t, cmd)
	r.Close()
	n := wantNode(t, o, 0)
	groups := groupsNamed(t, filepath.Base(n.Job.Cgroup))
	if !n.Job.CgroupStays || len(groups) == 0 {
		t.Errorf("cgroup_stays = %v, groups %v; want true and a group that contains the daemon", n.Job.CgroupStays, groups)
	}
	wantMissing(t, n, "cgroup", "not empty")
	w.Close() // the daemon ends
	stays(t, filepath.Base(n.Job.Cgroup))
}

// groupsNamed returns the directories of the control groups with the given name in all hierarchies.
func groupsNamed(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == name {
			found = append(found, path)
		}
		return nil
	})
	if err != nil || name == "" || name == "/" {
		t.Fatalf("groupsNamed(%q): error %v; want no error, and a name other than /", name, err)
	}
	return found
}

// The control group created for the job is removed after the job has ended.
func TestAccount_RemovesCreatedGroupAfterJob(t *testing.T) {
	o := clitest.Run(t, "run", "--cgroup", "create", "--", "sh", "-c", "sleep 0.1 & cat /proc/self/cgroup; wait")
	n := wantNode(t, o, 0)
	wantSource(t, n, "created")
	name := filepath.Base(n.Job.Cgroup)
	if !strings.HasPrefix(name, "perfagent-") || !strings.Contains(o.Out, "/"+name+"\n") {
		t.Errorf("group of the job = %q, want a perfagent- group; its /proc/self/cgroup:\n%s", n.Job.Cgroup, o.Out)
	}
	if left := groupsNamed(t, name); len(left) > 0 || n.Job.CgroupStays {
		t.Errorf("groups left: %v, cgroup_stays = %v; want none and false", left, n.Job.CgroupStays)
	}
}

// hanging covers a path with a FUSE file system that it never serves, so every access to the path hangs, and runs a
// command. If the path is "", the command can mount the file system itself, with the FUSE descriptor in $FUSE. hanging
// needs its own mount namespace, and exits with the exit code of the command.
const hanging = `
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount(what, where, kind, flags, data):
    if libc.mount(what, where.encode(), kind, flags, data):
        sys.exit("mount %s: %s" % (where, os.strerror(ctypes.get_errno())))
def hang(fd, where, mode):
    mount(b"hang", where, b"fuse", 0, b"fd=%d,rootmode=%o,user_id=0,group_id=0" % (fd, mode))
if "FUSE" not in os.environ:
    fd = os.open("/dev/fuse", os.O_RDWR)
    mount(b"none", "/", None, 0x44000, None) # MS_REC | MS_PRIVATE
    if sys.argv[1]: hang(fd, sys.argv[1], 0o100444)
    os.environ["FUSE"] = str(fd)
    sys.exit(subprocess.call(sys.argv[2:], pass_fds=[fd]))
`

// hangingGroup is a job that mounts such a file system over its control group in the pids hierarchy, and exits with 7.
const hangingGroup = hanging + clitest.Sampled + `
sampled(1)
for line in open("/proc/self/cgroup"):
    if ":pids:" in line: hang(int(os.environ["FUSE"]), "/sys/fs/cgroup/pids" + line.rstrip().split(":", 2)[2], 0o40555)
sys.exit(7)
`

// underHanging returns a perfagent command for a mount namespace in which every access to path hangs.
func underHanging(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		testenv.SkipOrFail(t, "cannot mount a file system that hangs: run the tests as root with /dev/fuse (modprobe fuse)")
	}
	cmd := clitest.Perfagent(t, args...)
	cmd.Args = append(append([]string{testenv.NeedsTool(t, "unshare", "install util-linux"), "-m"}, clitest.Python(t, hanging)...), append([]string{path}, cmd.Args...)...)
	cmd.Path = cmd.Args[0]
	return cmd
}

// stays waits until the control groups of the given name, which perfagent left, are empty. It removes them and returns
// their paths.
func stays(t *testing.T, name string) []string {
	t.Helper()
	groups := groupsNamed(t, name)
	for _, dir := range groups {
		clitest.WaitUntil(t, dir+" can be removed", func() bool { return unix.Rmdir(dir) != unix.EBUSY })
	}
	return groups
}

// Without permission to create a control group, or without control groups at all, perfagent measures the process tree.
func TestAccount_FallsBackToProcessesWithoutCgroups(t *testing.T) {
	for name, prepare := range map[string]string{
		"read-only": `for m in /sys/fs/cgroup/*; do mount --bind $m $m && mount -o remount,bind,ro $m; done; mount -o remount,bind,ro /sys/fs/cgroup 2>/dev/null`,
		"none":      `mount -t tmpfs none /sys/fs/cgroup`,
	} {
		t.Run(name, func(t *testing.T) {
			script := `exec unshare -m bash -c 'mount --make-rprivate / && { ` + prepare + `; };
				exec $P run --cgroup create -- sh -c "exit 7"'`
			n := wantNode(t, clitest.RunCommand(t, clitest.Script(t, "bash", script)), 7)
			wantSource(t, n, "tree")
			wantMissing(t, n, "cgroup", "--cgroup create")
		})
	}
}

// An unknown value is refused in --cgroup and in PERFAGENT_CGROUP.
func TestRun_RefusesUnknownCgroupValue(t *testing.T) {
	wantError(t, inside(t, "run", "--cgroup", "make", "--", "true"), 125, "--cgroup", `"make"`, "create")
	wantError(t, insideWith(t, []string{"PERFAGENT_CGROUP=make"}, "run", "--", "true"), 125, "PERFAGENT_CGROUP", `"make"`)
}

// smi is a fake nvidia-smi with two GPUs. It writes its process ID to $SMI_PID, and adds a line to a second file after
// each output. It accepts only the fields and flags that perfagent uses.
const smi = `#!/bin/bash
echo $$ > "$SMI_PID"
for a in "$@"; do
  case $a in
    --query-gpu=*) fields=${a#*=};;
    --format=csv,noheader,nounits|--loop-ms=*) ;;
    *) echo "ERROR: Option $a is not recognized. Please run 'nvidia-smi -h'."; exit 1;;
  esac
done
declare -A v=([memory.total]=81920 [memory.used]=40960 [utilization.gpu]=75 [power.draw]=300.50 [power.limit]=400.00
 [enforced.power.limit]=400.00 [temperature.gpu]=61 [clocks.sm]=1410 [mig.mode.current]=Disabled
 [clocks_throttle_reasons.active]=0x0000000000000004 [total_energy_consumption]="[N/A]" [name]="NVIDIA A100-SXM4-80GB")
while :; do
  for i in 0 1; do
    v[index]=$i; v[uuid]=GPU-a1b2c30$i-1b2c-4d5e-8f90-00000000001$i; line=
    IFS=,
    for f in $fields; do
      [ -n "${v[$f]}" ] || { echo "Field \"$f\" is not a valid field to query."; exit 2; }
      line+=", ${v[$f]}"
    done
    echo "${line#, }" || exit
  done
  echo >> "$SMI_PID.said"
  sleep 0.2
done
`

// withGPUs installs program as nvidia-smi. It returns the variables that put it on a command's PATH, and the file for
// its process ID.
func withGPUs(t *testing.T, program string) (env []string, pidFile string) {
	t.Helper()
	dir := t.TempDir()
	clitest.Write(t, filepath.Join(dir, "nvidia-smi"), program, 0o755)
	pidFile = filepath.Join(dir, "pid")
	return []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SMI_PID=" + pidFile}, pidFile
}

// besideGPUs runs cmd and closes its stdin, which ends the job, after nvidia-smi has printed twice and then as many
// samples as given have been taken.
func besideGPUs(t *testing.T, cmd *exec.Cmd, pidFile string, samples int) clitest.Outcome {
	t.Helper()
	r, w := clitest.Pipe(t)
	cmd.Stdin = r
	l := clitest.StartProcess(t, cmd)
	untilHas(t, pidFile+".said", "\n", 2)
	sampledAgain(t, cmd.Dir, samples)
	w.Close()
	o, _ := l.End()
	return o
}

func TestAccount_ReportsGPUsAndDoesNotCountNvidiaSMI(t *testing.T) {
	env, pidFile := withGPUs(t, smi)
	cmd := with(clitest.Perfagent(t, "run", "--interval", "50ms", "--", "cat"), append(env, "CUDA_VISIBLE_DEVICES=1")...)
	n := wantNode(t, besideGPUs(t, cmd, pidFile, 20), 0)
	if len(n.GPUs) != 2 || n.GPUs[0].OfJob || !n.GPUs[1].OfJob || n.GPUs[1].Index != 1 || n.GPUs[1].MemoryMB != 81920 ||
		n.GPUs[1].PowerLimitWatts != 400 || !strings.HasPrefix(n.GPUs[1].UUID, "GPU-a1b2c301") {
		t.Errorf("GPUs %+v; want 2, with only GPU 1 (GPU-a1b2c301, 81920 MiB, 400 W) used by the job", n.GPUs)
	}
	for name, want := range map[string]float64{"gpu_0_avg_utilization_pct": 75, "gpu_1_avg_utilization_pct": 75,
		"max_t_gpu_1_memory_used_mb": 40960, "max_t_gpu_0_power_watts": 300.5, "max_t_gpu_1_temperature_celsius": 61} {
		if got, ok := n.Metrics[name]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %v (present: %v), want %v", name, got, ok, want)
		}
	}
	if band := n.Envelope["gpu_1_power_watts"]; len(band.Max) != n.Samples.Len() || !slices.Contains(band.Max, 300.5) {
		t.Errorf("envelope of gpu_1_power_watts %v, want %d values with a maximum of 300.5", band.Max, n.Samples.Len())
	}
	if n.Job.Orphans != 0 || n.Job.CPUSeconds > 0.1 || n.Metrics["max_t_job_processes"] != 1 {
		t.Errorf("%d orphans, %v s of CPU time, %v processes; want 0, at most 0.1 and 1, without nvidia-smi",
			n.Job.Orphans, n.Job.CPUSeconds, n.Metrics["max_t_job_processes"])
	}
	wantGone(t, pidFile)
}

// If perfagent is killed, its nvidia-smi ends.
func TestAccount_NvidiaSMIEndsWithKilledPerfagent(t *testing.T) {
	env, pidFile := withGPUs(t, smi)
	cmd := with(clitest.Perfagent(t, "run", "--", "sleep", "600"), env...)
	check.Must(t, cmd.Start())
	untilHas(t, pidFile, "\n", 1)
	check.Must(t, cmd.Process.Signal(syscall.SIGKILL))
	clitest.Wait(t, cmd)
	wantGone(t, pidFile)
}

// An nvidia-smi that ignores TERM does not outlive perfagent, whether or not the script that started it ignores TERM as
// well.
func TestAccount_StubbornNvidiaSMIDoesNotOutlivePerfagent(t *testing.T) {
	for name, trap := range map[string]string{"script dies of TERM": "", "script ignores TERM": "trap '' TERM\n"} {
		t.Run(name, func(t *testing.T) {
			env, pidFile := withGPUs(t, "#!/bin/sh\n"+trap+"\"$0.real\" \"$@\"\nexit\n")
			real := "#!/bin/sh\ntrap '' TERM\necho $$ > \"$SMI_PID\"\nwhile :; do sleep 1; done\n"
			clitest.Write(t, filepath.Join(filepath.Dir(pidFile), "nvidia-smi.real"), real, 0o755)
			cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", `until [ -s "$SMI_PID" ]; do sleep 0.05; done`)
			clitest.RunCommand(t, with(cmd, env...)).Want(t, 0)
			wantGone(t, pidFile)
		})
	}
}

// wantGone waits until the process with the ID in pidFile has ended. If the test fails, it kills the process.
func wantGone(t *testing.T, pidFile string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(clitest.Read(t, pidFile)))
	check.Must(t, err)
	gone := func() bool { return clitest.ProcessState(pid) == "" || clitest.ProcessState(pid) == "Z" }
	defer func() {
		if !gone() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	clitest.WaitUntil(t, "nvidia-smi is gone", gone)
}

// If /proc shows another PID namespace, its processes are not counted as the job's.
func TestAccount_DoesNotCountProcessesOfAnotherPIDNamespace(t *testing.T) {
	cmd := clitest.Script(t, "bash", `exec unshare --pid --fork $P run --interval 50ms -- sleep 0.4`)
	n := wantNode(t, clitest.RunCommand(t, cmd), 0)
	if _, there := n.Metrics["max_t_job_processes"]; there || n.Job.PeakMemoryMB > 100 {
		t.Errorf("max_t_job_processes = %v, peak memory %v MiB; want no count and at most 100, without the host's processes",
			n.Metrics["max_t_job_processes"], n.Job.PeakMemoryMB)
	}
	wantMissing(t, n, "job", "PID namespace")
}

// A sample taken after the job has ended is not reported as zeros.
func TestAccount_SampleAfterEndIsNotReportedAsZero(t *testing.T) {
	for _, c := range []struct{ mode, interval, seconds string }{
		{"off", "1s", "0.02"}, {"create", "1s", "0.02"}, {"off", "100ms", "0.1"}, {"off", "100ms", "0.1"}, {"off", "100ms", "0.1"},
	} {
		n := wantNode(t, clitest.Run(t, "run", "--cgroup", c.mode, "--interval", c.interval, "--", "sleep", c.seconds), 0)
		for _, name := range []string{"max_t_job_processes", "max_t_job_threads", "job_peak_memory_mb"} {
			if v, there := n.Metrics[name]; there && v == 0 {
				t.Errorf("%+v: %s = 0, want a positive value or no metric", c, name)
			}
		}
	}
}

// A process is still measured after its first thread has ended.
func TestAccount_MeasuresProcessAfterFirstThreadEnded(t *testing.T) {
	n := wantNode(t, clitest.RunCommand(t, runPython(t, []string{"--cgroup", "off", "--interval", "200ms"}, clitest.Sampled+`
import ctypes, threading
held = b"x" * (100 << 20)
def work():
    while ") Z " not in open(f"/proc/self/task/{os.getpid()}/stat").read(): time.sleep(0.01)
    sampled(5)
    os._exit(4)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
`)), 4)
	memory := n.Envelope["job_memory_mb"].Max
	if len(memory) < 4 || memory[len(memory)-2] < 100 || n.Job.PeakMemoryMB < 100 || n.Job.MemoryKind != "pss" {
		t.Errorf("memory %v MiB, peak %v MiB (%s); want at least 4 samples, and at least 100 MiB as pss",
			memory, n.Job.PeakMemoryMB, n.Job.MemoryKind)
	}
}

// After a parent has waited for a child, the child's system calls are counted for the parent. The stop rule ends the
// job once they are counted.
func TestAccount_CountsReadAndWriteCallsOfReapedChild(t *testing.T) {
	t.Parallel()
	const calls = 20000
	job := fmt.Sprintf("dd if=/dev/zero of=/dev/null bs=1 count=%d 2>/dev/null; exec sleep 600", calls)
	rule := fmt.Sprintf("job_write_calls > %d for 0s", calls-1)
	n := wantNode(t, clitest.Run(t, "run", "--interval", "50ms", "--stop-if", rule, "--", "sh", "-c", job), 143)
	for _, name := range []string{"total_job_read_calls", "total_job_write_calls"} {
		if v := clitest.Metric(t, n, name); v < calls || v > calls+500 {
			t.Errorf("%s = %v, want %d to %d: dd alone makes %[3]d calls", name, v, calls, calls+500)
		}
	}
}

// rusage does not count I/O calls, so they are missing for a job that ends before its first sample.
func TestAccount_IOCallsAreMissingForShortJob(t *testing.T) {
	t.Parallel()
	n := wantNode(t, clitest.Run(t, "run", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100"), 0)
	if v, known := n.Metrics["total_job_read_calls"]; known && v < 100 {
		t.Errorf("total_job_read_calls = %v, want no metric, or at least the 100 calls that dd makes", v)
	}
}
