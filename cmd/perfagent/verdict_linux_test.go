package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// verdictGroups is the number of control groups that this process has created.
var verdictGroups atomic.Int64

// verdictGroup creates a memory control group (v1) with a limit. It is removed at the end of the test.
func verdictGroup(t *testing.T, limitMB int) string {
	t.Helper()
	const root = "/sys/fs/cgroup/memory"
	if _, err := os.Stat(filepath.Join(root, "memory.limit_in_bytes")); err != nil || os.Getuid() != 0 {
		t.Skipf("a real memory limit needs root and the memory controller of cgroup v1 at %s (v2 is tested in a virtual machine): boot with systemd.unified_cgroup_hierarchy=0", root)
	}
	dir := filepath.Join(root, fmt.Sprintf("perfagent-verdict-%d-%d", os.Getpid(), verdictGroups.Add(1)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("cannot create a control group (%v): run the tests where root may create one", err)
	}
	t.Cleanup(func() { untilRemoved(t, dir) })
	clitest.Write(t, filepath.Join(dir, "memory.limit_in_bytes"), fmt.Sprint(limitMB<<20), 0)
	if path := filepath.Join(dir, "memory.memsw.limit_in_bytes"); clitest.Exists(path) { // no swap either
		clitest.Write(t, path, fmt.Sprint(limitMB<<20), 0)
	}
	return dir
}

// untilRemoved waits until a control group has no processes, and removes it.
func untilRemoved(t *testing.T, dir string) {
	t.Helper()
	clitest.WaitUntil(t, dir+" is removed", func() bool { return unix.Rmdir(dir) == nil || !clitest.Exists(dir) })
}

// needsKernelLog skips the test unless the kernel's log can be read.
func needsKernelLog(t *testing.T) {
	t.Helper()
	if err := unix.Access("/dev/kmsg", unix.R_OK); err != nil {
		t.Skipf("the kernel's log cannot be read (/dev/kmsg: %v): run the tests as root", err)
	}
}

// verdictInside makes a prepared process start inside a control group.
func verdictInside(cmd *exec.Cmd, group string) *exec.Cmd {
	inner := append([]string{"/bin/sh", "-c", `echo -1000 2>/dev/null >/proc/self/oom_score_adj
echo $$ >"$0/cgroup.procs" && exec "$@"`, group}, cmd.Path)
	cmd.Path, cmd.Args = "/bin/sh", append(inner, cmd.Args[1:]...)
	return cmd
}

// verdictHog takes all memory that it can get: the kernel must kill it and no other process of verdictInside, however
// long it takes to free the memory.
const verdictHog = `sh -c "echo 1000 >/proc/self/oom_score_adj; exec tail /dev/zero"`

func TestVerdict_NamesExitCode(t *testing.T) {
	for _, code := range []int{0, 7} {
		o := wantInside(t, code, "run", "--", "sh", "-c", fmt.Sprint("exit ", code))
		wantCause(t, o, "exited", map[string]any{"exit_code": code}, fmt.Sprint("exited with code ", code))
	}
}

// comm returns the name of this process in the kernel.
func comm(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(clitest.Read(t, "/proc/self/comm"))
}

// The verdict names the sender of a TERM.
func TestVerdict_NamesSender(t *testing.T) {
	t.Parallel()
	l := clitest.StartProcess(t, clitest.Perfagent(t, "run", "--", "sh", "-c", "echo ready; exec sleep 600"))
	l.Expect("ready")
	l.Signal(syscall.SIGTERM)
	want := map[string]any{"exit_code": 143, "signal": "SIGTERM", "sender": comm(t), "sender_pid": os.Getpid()}
	r := wantCause(t, mustEnd(l, 143), "signal", want, fmt.Sprintf("killed by SIGTERM from %s (process %d)", comm(t), os.Getpid()))
	reportertest.WantTimeInRun(t, r, "signal_time")
}

func TestVerdict_NamesCtrlC(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", "echo ready; exec sleep 600")
	m := clitest.OnTerminal(t, cmd)
	m.Expect("ready")
	m.Send("\x03")
	m.End()
	o := clitest.Outcome{Dir: cmd.Dir}
	wantCause(t, o, "signal", map[string]any{"signal": "SIGINT"}, "killed by SIGINT from the terminal (Ctrl-C)")
}

func TestVerdict_NamesKill(t *testing.T) {
	t.Parallel()
	l := clitest.StartProcess(t, clitest.Perfagent(t, "run", "--", "sh", "-c", "echo pid $$; exec sleep 600"))
	check.Must(t, unix.Kill(l.PID("pid"), syscall.SIGKILL))
	wantCause(t, mustEnd(l, 137), "signal", map[string]any{"signal": "SIGKILL", "exit_code": 137}, "killed by SIGKILL")
}

// If a job ignores TERM and is then killed, it hit its time limit if a scheduler's daemon sent the TERM. A user's shell
// is not such a daemon, even if a variable with a common name, such as JOB_ID, is set.
func TestVerdict_TermFromSchedulerThenKillIsTimeLimit(t *testing.T) {
	t.Parallel()
	bash := testenv.NeedsTool(t, "bash", "apt-get install bash")
	for _, test := range []struct{ sender, scheduler, cause, text string }{
		{"slurmstepd", "SLURM_JOB_ID=4711", "time_limit", "ended at a time limit of Slurm: SIGTERM from slurmstepd (process "},
		{"bash", "SLURM_JOB_ID=4711", "signal", "killed by SIGKILL"},
		{"slurmstepd", "JOB_ID=build-17", "signal", "killed by SIGKILL"},
		{"bash", "JOB_ID=build-17", "signal", "killed by SIGKILL"},
	} {
		t.Run(test.sender+" "+test.scheduler, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--", "sh", "-c", "trap 'echo caught' TERM; echo pid $$; while :; do sleep 0.01; done")
			cmd.Env = append(cmd.Env, test.scheduler)
			l := clitest.StartProcess(t, cmd)
			pid := l.PID("pid")
			path := filepath.Join(t.TempDir(), test.sender)
			check.Must(t, os.Symlink(bash, path))
			sender := clitest.Command(t, path, "-c", "kill -TERM $1; read -r go; kill -KILL $2", test.sender, fmt.Sprint(cmd.Process.Pid), fmt.Sprint(pid))
			hold, release := clitest.Pipe(t)
			sender.Stdin = hold
			check.Must(t, sender.Start())
			l.Expect("caught")
			release.Close()
			o := mustEnd(l, 137)
			check.Must(t, sender.Wait())
			want := map[string]any{"signal": "SIGKILL", "exit_code": 137}
			if test.cause == "time_limit" {
				want["sent_signal"], want["sender"], want["sender_pid"] = "SIGTERM", "slurmstepd", sender.Process.Pid
			}
			wantCause(t, o, test.cause, want, test.text)
		})
	}
}

// A signal that a job has caught, such as a request for a checkpoint, does not explain every exit code above 126.
func TestVerdict_CaughtSignalDoesNotExplainExitCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ then, cause, text string }{
		{"no-such-command", "exited", "exited with code 127"},
		{"exit " + fmt.Sprint(128+int(syscall.SIGUSR1)), "signal", "as programs do after SIGUSR1 from "},
	} {
		l := clitest.StartProcess(t, clitest.Perfagent(t, "run", "--", "sh", "-c", `trap 'caught=1' USR1; echo ready; while [ -z "$caught" ]; do sleep 0.01; done; `+test.then))
		l.Expect("ready")
		l.Signal(syscall.SIGUSR1)
		o, _ := l.End()
		wantCause(t, o, test.cause, nil, test.text)
	}
}

// An agent that is killed together with its job leaves a journal with the earlier events.
func TestVerdict_JournalHasEventsBeforeKill(t *testing.T) {
	t.Parallel()
	cmd := clitest.Script(t, "sh", `exec timeout 1000 "$P" run --out out --run-id r --interval 50ms -- sh -c "trap 'echo caught' TERM; echo ready; while :; do sleep 0.02; done"`)
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	l.Signal(syscall.SIGTERM) // timeout passes the signal on
	l.Expect("caught")
	untilHas(t, filepath.Join(cmd.Dir, "out/r/node-0.jsonl"), `"SIGTERM"`, 1)
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil { // timeout leads the group
		t.Fatal(err)
	}
	l.End()
	path := filepath.Join(cmd.Dir, "out/r/node-0.jsonl")
	expectFiles(t, filepath.Dir(path), "node-0.jsonl")
	r := readAny(t, path)
	v := reportertest.WantVerdict(t, r, "unknown", "how the command ended is not known", "SIGTERM from timeout (process ", "had come before")
	reportertest.WantEvidence(t, v, map[string]any{"sender": "timeout", "sent_signal": "SIGTERM"})
}

// A signal is written to the journal immediately, however late the next sample is.
func TestVerdict_SignalIsInJournalImmediately(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "5m", "--", "sh", "-c", "trap 'echo caught' TERM; echo ready; while :; do sleep 0.01; done")
	path := filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl")
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	l.Signal(syscall.SIGTERM)
	l.Expect("caught")
	untilHas(t, path, `"SIGTERM"`, 1)
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil { // perfagent and the job together
		t.Fatal(err)
	}
	l.End()
	sender := fmt.Sprintf("SIGTERM from %s (process %d)", comm(t), os.Getpid())
	v := reportertest.WantVerdict(t, readAny(t, path), "unknown", "how the command ended is not known", sender, "had come before")
	reportertest.WantEvidence(t, v, map[string]any{"sent_signal": "SIGTERM", "sender_pid": os.Getpid()})
	o := wantCall(t, 0, "show", path)
	if !strings.Contains(strings.Join(strings.Fields(o.Out), " "), sender) || strings.Contains(o.Out, "damaged") {
		t.Errorf("show lacks %q, or has \"damaged\":\n%s", sender, o.Out)
	}
}

// For several nodes, the cause of the run's end comes first, even if it is only an exit code: when one node fails, a
// launcher kills the others.
func TestVerdict_CauseOfRunComesFirst(t *testing.T) {
	out := t.TempDir()
	merge := []string{"merge", "--to", filepath.Join(out, "all.json")}
	for node, job := range []string{"exit 0", "exit 4", "kill -9 $$"} {
		call("run", "--out", out, "--run-id", "r", "--node", strconv.Itoa(node), "--", "sh", "-c", job)
		merge = append(merge, filepath.Join(out, fmt.Sprintf("r/node-%d.json", node)))
	}
	all, page := merge[2], filepath.Join(out, "page.html")
	call(merge...).Want(t, 0)
	call("plot", all, "--to", page).Want(t, 0)

	for name, text := range map[string]string{
		"show": call("show", all).Out, "markdown": call("show", "--format", "md", all).Out, "page.html": clitest.Read(t, page),
	} {
		own := regexp.MustCompile(`Node 1 failed \(exit 4`).FindStringIndex(strings.ReplaceAll(text, `\`, ""))
		if other := strings.Index(text, "SIGKILL"); own == nil || other >= 0 && other < own[0] {
			t.Errorf("%s: node 1's verdict is at %v, want it before node 2's at %d", name, own, other)
		}
	}
}

func TestVerdict_NamesMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, script string
		code         int
		cause, text  string
	}{
		{"main process", "exec " + verdictHog, 137, "oom_cgroup", "killed by the kernel: tail (process "},
		{"child", verdictHog + "; exit 3", 3, "oom_cgroup", "exited with code 3 after the kernel killed a process: tail (process "},
		{"last command of a shell", verdictHog, 137, "oom_cgroup", "tail (process "},
		{"child with an ignored exit code", verdictHog + "; exit 0", 0, "exited", "exited with code 0, although its control group had 1 out-of-memory kill"},
	} {
		t.Run(test.name, func(t *testing.T) {
			group := verdictGroup(t, 64)
			o := mustExit(t, test.code, verdictInside(clitest.Perfagent(t, "run", "--", "sh", "-c", test.script), group))
			r := o.Report(t)
			v := reportertest.WantVerdict(t, r, test.cause, test.text)
			reportertest.WantEvidence(t, v, map[string]any{"oom_kills": 1, "exit_code": test.code})
			if test.cause == "exited" {
				return
			}
			reportertest.WantEvidence(t, v, map[string]any{"limit_mb": 64, "process": "tail"})
			if peak, _ := v.Evidence["peak_mb"].(float64); peak < 63 || peak > 64.64 { // the kernel may charge a few pages more
				t.Errorf("peak %v MiB, want 63 to 64.64", peak)
			}
			reportertest.WantTimeInRun(t, r, "time")
		})
	}
}

// verdictLogged reports whether the kernel's log is readable and contains a text. After ten kills within 5 s on the
// machine, the kernel no longer logs the limit.
func verdictLogged(t *testing.T, text string) bool {
	t.Helper()
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	record := make([]byte, 8<<10)
	for {
		n, err := unix.Read(fd, record)
		switch {
		case err == unix.EPIPE || err == unix.EINTR:
		case err != nil:
			t.Logf("the kernel's log lacks %q", text)
			return false
		case strings.Contains(string(record[:n]), text):
			return true
		}
	}
}

// If the job creates a group with a lower limit, the verdict names that limit.
func TestVerdict_NamesLimitOfGroupCreatedByJob(t *testing.T) {
	t.Parallel()
	group := verdictGroup(t, 1024)
	inner := filepath.Join(group, "inner")
	t.Cleanup(func() { untilRemoved(t, inner) })
	hog := `mkdir "$0"; echo 40M >"$0/memory.limit_in_bytes"; [ ! -e "$0/memory.memsw.limit_in_bytes" ] || echo 40M >"$0/memory.memsw.limit_in_bytes"
		sh -c 'echo $$ >"$0/cgroup.procs"; exec ` + verdictHog + `' "$0"; exit 3`
	o := mustExit(t, 3, verdictInside(clitest.Perfagent(t, "run", "--", "sh", "-c", hog, inner), group))
	words := []string{"exited with code 3 after the kernel killed a process: ", "hit the memory limit of a control group within or around its own"}
	want := map[string]any{"oom_kills": 1, "limit_kills": 0, "limit_mb": nil, "peak_mb": nil, "limit_group": nil}
	if name := strings.TrimPrefix(inner, "/sys/fs/cgroup/memory"); verdictLogged(t, "oom_memcg="+name+",") {
		words[1], want["limit_group"] = "hit the memory limit of the control group "+name+" at ", name
	}
	wantCause(t, o, "oom_cgroup", want, words...)
}

// An earlier kill in the same group is not attributed to the job.
func TestVerdict_DoesNotAttributeEarlierKillToJob(t *testing.T) {
	t.Parallel()
	group := verdictGroup(t, 64)
	clitest.RunCommand(t, verdictInside(clitest.Command(t, "/bin/sh", "-c", verdictHog), group))
	wantContains(t, clitest.Read(t, filepath.Join(group, "memory.oom_control")), "oom_kill 1\n")
	o := clitest.RunCommand(t, verdictInside(clitest.Perfagent(t, "run", "--", "sh", "-c", "exit 3"), group))
	wantCause(t, o, "exited", nil, "exited with code 3")
	o = clitest.RunCommand(t, verdictInside(clitest.Perfagent(t, "run", "--", "sh", "-c", "kill -9 $$"), group))
	wantCause(t, o, "signal", nil, "killed by SIGKILL")
}

// Kills in another group while the job runs are not attributed to the job. If the kernel's log is readable, neither are
// kills of other processes in the job's group or below it, even of short-lived processes, and however the job ends.
func TestVerdict_DoesNotAttributeKillsOfOthersToJob(t *testing.T) {
	t.Parallel()
	const beside = "; its control group had 1 out-of-memory kill, not of the job's processes"
	for _, test := range []struct {
		name, end   string
		code        int
		cause, text string
	}{
		{"another group", "kill -9 $$", 137, "signal", "killed by SIGKILL; the kernel does not say who sent it; this host had "},
		{"the same group", "kill -9 $$", 137, "signal", "killed by SIGKILL; the kernel does not say who sent it" + beside},
		{"the same group", "exit 3", 3, "exited", "exited with code 3" + beside},
		// Cgroup v1 counts a kill in a child group only for the child. The kernel's log determines whether the kill is
		// mentioned.
		{"a group below", "exit 3", 3, "exited", "exited with code 3"},
		{"a group below", "exit 137", 137, "exited", "exited with code 137, as a shell does when SIGKILL ended its command; the sender is not known"},
		{"the same group", "kill -SEGV $$", 139, "signal", "killed by SIGSEGV"},
		{"the same group", "exit 0", 0, "exited", "exited with code 0"},
	} {
		t.Run(test.name+" "+test.end, func(t *testing.T) {
			if test.name != "another group" {
				needsKernelLog(t)
			}
			o := verdictTry(t, func() clitest.Outcome { return verdictBesideAKill(t, test.name, test.end) })
			o.Want(t, test.code)
			r := wantCause(t, o, test.cause, map[string]any{"exit_code": test.code, "oom_kills": nil, "limit_kills": nil}, test.text)
			evidence := r.Run.Verdict.Evidence
			if n, _ := evidence["host_oom_kills"].(float64); test.name == "another group" && n < 1 {
				t.Errorf("evidence %v, want a kill on the host", evidence)
			}
		})
	}
}

// verdictTry repeats a trial if the kernel killed perfagent, too, as it does where a killed process takes long to end:
// docs/wrapping.md.
func verdictTry(t *testing.T, trial func() clitest.Outcome) clitest.Outcome {
	t.Helper()
	o := trial()
	if o.Code < 0 {
		t.Log("the kernel killed perfagent, too: trying again")
		o = trial()
	}
	return o
}

// verdictBesideAKill runs a job in a group while the kernel kills another process.
func verdictBesideAKill(t *testing.T, where, end string) clitest.Outcome {
	t.Helper()
	group := verdictGroup(t, 64)
	other := group
	switch where {
	case "another group":
		other = verdictGroup(t, 32)
	case "a group below":
		other = filepath.Join(group, "below")
		check.Must(t, os.Mkdir(other, 0o755))
		t.Cleanup(func() { untilRemoved(t, other) })
	}
	// After the first sample the kernel's log is open.
	cmd := clitest.Perfagent(t, "run", "--interval", "50ms", "--", "sh", "-c",
		untilSampledSo(1)+"; echo ready; while [ ! -e go ]; do sleep 0.02; done; "+end)
	l := clitest.StartProcess(t, verdictInside(cmd, group))
	l.Expect("ready")
	clitest.RunCommand(t, verdictInside(clitest.Command(t, "/bin/sh", "-c", "exec "+verdictHog), other))
	clitest.Write(t, filepath.Join(cmd.Dir, "go"), "", 0o644)
	o, _ := l.End()
	return o
}

// The kill of a process of the job is attributed to the job, even if the process is short-lived and other processes are
// in the group.
func TestVerdict_AttributesKillOfShortLivedChildToJob(t *testing.T) {
	t.Parallel()
	needsKernelLog(t)
	group := verdictGroup(t, 64)
	neighbour := verdictInside(clitest.Command(t, "/bin/sh", "-c", "echo in; read -r end"), group)
	hold, release := clitest.Pipe(t)
	neighbour.Stdin = hold
	l := clitest.StartProcess(t, neighbour)
	l.Expect("in")
	defer l.End()
	defer release.Close()
	o := verdictTry(t, func() clitest.Outcome {
		return clitest.RunCommand(t, verdictInside(clitest.Perfagent(t, "run", "--", "sh", "-c", verdictHog+"; exit 3"), group))
	})
	o.Want(t, 3)
	want := map[string]any{"oom_kills": 1, "process": "tail"}
	wantCause(t, o, "oom_cgroup", want, "exited with code 3 after the kernel killed a process: tail (process ")
}

// A killed process in the same group is not named as the cause if perfagent has seen that it is not a process of the
// job.
func TestVerdict_NeighbourIsNotCause(t *testing.T) {
	t.Parallel()
	needsKernelLog(t)
	group := verdictGroup(t, 64)
	neighbour := verdictInside(clitest.Command(t, "/bin/sh", "-c", "read -r go; exec "+verdictHog), group)
	hold, release := clitest.Pipe(t)
	neighbour.Stdin = hold
	check.Must(t, neighbour.Start())
	cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "20ms", "--", "sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; exit 4")
	l := clitest.StartProcess(t, verdictInside(cmd, group))
	l.Expect("ready")
	clitest.WaitUntil(t, "the journal has samples", func() bool {
		r, err := reportfile.Read(filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl"), 0)
		return err == nil && r.Nodes["0"] != nil && r.Nodes["0"].Metrics["job_cpu_seconds"] > 0
	})
	release.Close()
	if err := neighbour.Wait(); err == nil {
		t.Fatal("the neighbour ended without an error, want it killed by the kernel")
	}
	clitest.Write(t, filepath.Join(cmd.Dir, "go"), "", 0o644)
	wantCause(t, mustEnd(l, 4), "exited", map[string]any{"exit_code": 4, "oom_kills": nil}, "exited with code 4")
}

// onSmallDisk returns the report of a job in a directory that is a file system with the given options.
func onSmallDisk(t *testing.T, options, script string, code int) (r *reporter.Report, dir string) {
	t.Helper()
	out, dir := filepath.Join(t.TempDir(), "out"), clitest.Mount(t, options, 0)
	cmd := clitest.Perfagent(t, "run", "--out", out, "--", "sh", "-c", script)
	cmd.Dir = dir
	mustExit(t, code, cmd)
	r, _ = reportertest.ReadSingle(t, out)
	return r, dir
}

func TestVerdict_NamesFullDisk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, options, script, text string }{
		{"bytes", "size=1m", "head -c 2m /dev/zero >file", "no room was left on the file system of "},
		{"inodes", "size=1m,nr_inodes=3", "touch a && touch b && touch c", "no inodes left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, dir := onSmallDisk(t, test.options, test.script+" || exit 5", 5)
			v := reportertest.WantVerdict(t, r, "disk_full", "exited with code 5", test.text, dir)
			reportertest.WantEvidence(t, v, map[string]any{"path": dir, "exit_code": 5})
			reportertest.WantTimeInRun(t, r, "time")
		})
	}
}

// A core file that fills a file system is not the cause of the failure. If there was no room for the core file, it did
// not fill the file system.
func TestVerdict_CoreFileIsNotCause(t *testing.T) {
	t.Parallel()
	if pattern := clitest.Read(t, "/proc/sys/kernel/core_pattern"); !strings.HasPrefix(pattern, "core") {
		t.Skipf("cores are not written to the working directory: %s(sysctl kernel.core_pattern=core)", pattern)
	}
	const abort = "ulimit -c unlimited; kill -ABRT $$"
	for _, test := range []struct {
		name, script string
		code         int
		cause, text  string
	}{
		{"main process", abort, 134, "signal", "killed by SIGABRT: it aborted itself, or the signal was sent to it; a core file of "},
		{"child", "sh -c '" + abort + "'; exit 5", 5, "child_died", "it aborted itself, or the signal was sent to it; a core file of "},
		{"no room", "head -c 2m /dev/zero >file; " + abort, 134, "disk_full", "died of SIGABRT, and no room was left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, dir := onSmallDisk(t, "size=1m", test.script, test.code)
			v := reportertest.WantVerdict(t, r, test.cause, test.text, dir)
			if mb, _ := v.Evidence["core_mb"].(float64); test.name != "no room" && (mb <= 0 || mb > 1) {
				t.Errorf("core of %v MiB, want more than 0, at most 1", v.Evidence["core_mb"])
			}
		})
	}
}
