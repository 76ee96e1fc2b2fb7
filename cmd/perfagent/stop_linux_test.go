package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// stopArgs returns the arguments of a run with rules and a grace period.
func stopArgs(grace string, script string, rules ...string) []string {
	args := []string{"run", "--run-id", "r", "--interval", "50ms", "--mlflow", "off", "--stop-grace", grace}
	for _, rule := range rules {
		args = append(args, "--stop-if", rule)
	}
	return append(args, "--", "sh", "-c", script)
}

// wantKilled checks that a process of a job is gone.
func wantKilled(t *testing.T, pid int) {
	t.Helper()
	if state := clitest.ProcessState(pid); state != "" && state != "Z" {
		t.Errorf("process %d is left in state %s, want it killed", pid, state)
	}
}

// wantStopped checks the verdict on a job that a rule stopped.
func wantStopped(t *testing.T, r *reporter.Report, rule, key string, killed bool) *reporter.Verdict {
	t.Helper()
	v := reportertest.WantVerdict(t, r, "stopped_by_rule", "stopped by the rule '"+rule+"': it was ")
	reportertest.WantEvidence(t, v, map[string]any{"rule": rule, "key": key, "sent_signal": "SIGTERM", "killed": killed})
	reportertest.WantTimeInRun(t, r, "signal_time")
	return v
}

// hasChild is a rule that holds when the job's shell has started a process, which scripts do after they set their traps.
const hasChild = "job_processes >= 2"

func TestStopIf_StopsJobAboveMemory(t *testing.T) {
	t.Parallel()
	script := `exec python3 -c 'import time
held = []
while True:
    if len(held) < 25: held.append(bytearray(8 << 20))
    time.sleep(0.02)'`
	o := mustRun(t, 143, stopArgs("10m", script, "job_memory_mb > 100")...)
	v := wantStopped(t, o.Report(t), "job_memory_mb > 100", "job_memory_mb", false)
	if mb, _ := v.Evidence["value"].(float64); mb <= 100 || mb > 8000 {
		t.Errorf("stopped at %v MiB, want above 100, at most 8000", mb)
	}
	reportertest.WantEvidence(t, v, map[string]any{"for_seconds": 0, "exit_code": 143, "signal": "SIGTERM"})
	wantContains(t, v.Text, "; the job died of SIGTERM")
}

// A job that hangs after some activity is stopped. It leaves no processes, so perfagent does not wait for the grace
// period.
func TestStopIf_StopsJobThatHangs(t *testing.T) {
	t.Parallel()
	const rule = "job_cpu_cores < 0.2 for 400ms"
	r := mustRun(t, 143, stopArgs("1h", "head -c 300M /dev/zero >/dev/null; exec sleep 600", rule)...).Report(t)
	v := wantStopped(t, r, rule, "job_cpu_cores", false)
	reportertest.WantEvidence(t, v, map[string]any{"for_seconds": 0.4})
	if r.Run.WallSeconds < 0.4 {
		t.Errorf("the job was stopped after %v s, want at least 0.4", r.Run.WallSeconds)
	}
}

// A rule about a rate stops the job at a short interval, even though some samples have no value for the rate.
func TestStopIf_StopsByRateAtShortInterval(t *testing.T) {
	t.Parallel()
	mustRun(t, 143, "run", "--interval", "10ms", "--mlflow", "off", "--stop-if", "job_cpu_cores < 0.2 for 300ms", "--", "sleep", "600")
}

func TestStopIf_RuleThatHoldsTooBrieflyStopsNothing(t *testing.T) {
	t.Parallel()
	script := `for i in 1 2 3; do sleep 600 & all="$all $!"; done; ` + untilSampledAgain(2) + `; kill $all; exit 3`
	r := mustRun(t, 3, stopArgs("10m", script, "job_processes >= 3 for 1h")...).Report(t)
	reportertest.WantVerdict(t, r, "exited", "exited with code 3")
	if most := r.Nodes["0"].Summaries["job_processes"].Max; most < 3 {
		t.Errorf("at most %v processes were seen, want 3 or more: otherwise the rule was never true", most)
	}
}

// A stopped job may choose its exit code, and still has the verdict that a rule stopped it.
func TestStopIf_StoppedJobChoosesItsExitCode(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 5} {
		script := fmt.Sprintf("trap 'exit %d' TERM; while :; do sleep 0.02; done", code)
		o := mustRun(t, code, stopArgs("10m", script, hasChild)...)
		v := wantStopped(t, o.Report(t), hasChild, "job_processes", false)
		if want := fmt.Sprintf("; the job exited with code %d", code); !strings.HasSuffix(v.Text, want) {
			t.Errorf("verdict %q, want %q at its end", v.Text, want)
		}
	}
}

// If the job ignores TERM, its main process is killed, and so are a child in another session and a daemon without
// living parents.
func TestStopIf_KillsAllProcessesThatIgnoreTerm(t *testing.T) {
	t.Parallel()
	const rule = "job_processes >= 5"
	script := `trap '' TERM
setsid sh -c 'echo pid $$; >a; exec sleep 600' &
(setsid sh -c 'echo pid $$; >b; exec sleep 600' &)
until [ -e a ] && [ -e b ]; do :; done
echo pid $$; sleep 600 & sleep 600 & while :; do sleep 0.02; done`
	l := clitest.StartProcess(t, clitest.Perfagent(t, stopArgs("300ms", script, rule)...))
	pids := []int{l.PID("pid"), l.PID("pid"), l.PID("pid")}
	o := mustEnd(l, 137)
	for _, pid := range pids {
		wantKilled(t, pid)
	}
	v := wantStopped(t, o.Report(t), rule, "job_processes", true)
	wantContains(t, v.Text, "; SIGTERM did not end the job, SIGKILL did ")
}

// Processes that outlive the main process get the rest of the grace period.
func TestStopIf_LeftoverProcessesGetRestOfGrace(t *testing.T) {
	t.Parallel()
	const rule = "job_processes >= 3"
	script := `echo pid $$; sh -c 'trap "" TERM; echo pid $$; while :; do sleep 0.02; done' & wait`
	l := clitest.StartProcess(t, clitest.Perfagent(t, stopArgs("400ms", script, rule)...))
	first, second := l.PID("pid"), l.PID("pid")
	o := mustEnd(l, 143)
	wantKilled(t, first)
	wantKilled(t, second)
	v := wantStopped(t, o.Report(t), rule, "job_processes", true)
	if !strings.HasSuffix(v.Text, "; the job died of SIGTERM, and what it left running was killed") {
		t.Errorf("verdict %q does not end with the death by SIGTERM and the kill of the leftover processes", v.Text)
	}
}

// A job that forks continuously is killed.
func TestStopIf_KillsJobThatForks(t *testing.T) {
	t.Parallel()
	script := `trap '' TERM; f() { trap '' TERM; sleep 0.01; f & }; f & f & f & while :; do sleep 0.02; done`
	o := mustRun(t, 137, stopArgs("100ms", script, hasChild)...)
	wantStopped(t, o.Report(t), hasChild, "job_processes", true)
	if left := reportertest.Reasons(o.Report(t).Nodes["0"], "job"); strings.Contains(left, "left") || strings.Contains(o.Err, "--stop-if") {
		t.Errorf("missing values of the job %q, stderr %q; want no process left", left, o.Err)
	}
}

// All processes in the control group created for the job are killed, and the group is removed.
func TestStopIf_KillsAllProcessesInCreatedGroup(t *testing.T) {
	t.Parallel()
	args := stopArgs("200ms", `trap '' TERM; (setsid sleep 600 &); while :; do sleep 0.02; done`, hasChild)
	r := mustRun(t, 137, append([]string{"run", "--cgroup", "create"}, args[1:]...)...).Report(t)
	wantStopped(t, r, hasChild, "job_processes", true)
	if j := r.Nodes["0"].Job; j.CgroupStays {
		t.Error("cgroup_stays is true, want the control group removed")
	}
}

// The first rule that holds stops the job, and the other rules have no effect.
func TestStopIf_FirstRuleThatHoldsStops(t *testing.T) {
	t.Parallel()
	rules := []string{"job_memory_mb > 1000000", "job_cpu_cores < 0.5 for 1h", "job_threads > 0", hasChild}
	o := mustRun(t, 143, stopArgs("10m", "exec sleep 600", rules...)...)
	wantStopped(t, o.Report(t), "job_threads > 0", "job_threads", false)
}

func TestStopIf_RulesOfVariableApply(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--interval", "50ms", "--mlflow", "off", "--", "sh", "-c", "trap '' TERM; while :; do sleep 0.02; done")
	cmd.Env = append(cmd.Env, "PERFAGENT_STOP_IF=job_memory_mb > 1000000; "+hasChild+"\n", "PERFAGENT_STOP_GRACE=0s")
	wantStopped(t, mustExit(t, 137, cmd).Report(t), hasChild, "job_processes", true)
}

// Ctrl-C in the grace period ends the job with SIGINT.
func TestStopIf_CtrlCInGraceEndsJob(t *testing.T) {
	t.Parallel()
	script := `trap 'echo asked' TERM; while :; do sleep 0.02; done`
	cmd := clitest.Perfagent(t, stopArgs("10m", script, hasChild)...)
	m := clitest.OnTerminal(t, cmd)
	m.Expect("asked")
	m.Send("\x03")
	m.End()
	r, _ := reportertest.ReadSingle(t, filepath.Join(cmd.Dir, "perfagent-out"))
	v := wantStopped(t, r, hasChild, "job_processes", false)
	reportertest.WantEvidence(t, v, map[string]any{"exit_code": 130, "signal": "SIGINT"})
}

// A TERM to perfagent ends the wait for processes that outlive the main process.
func TestStopIf_SIGTERMStopsWaitingForLeftoverProcesses(t *testing.T) {
	t.Parallel()
	const rule = "job_processes >= 3"
	script := `echo main $$; sh -c 'trap "" TERM; while :; do sleep 0.02; done' & wait`
	cmd := clitest.Perfagent(t, stopArgs("1h", script, rule)...)
	l := clitest.StartProcess(t, cmd)
	main := l.PID("main")
	clitest.WaitUntil(t, "the main process has ended", func() bool { return clitest.ProcessState(main) == "" })
	l.Signal(unix.SIGTERM)
	wantStopped(t, mustEnd(l, 143).Report(t), rule, "job_processes", true)
}

// If the kernel killed a process before the rule stopped the job, that kill is the cause.
func TestStopIf_EarlierKillByKernelIsTheCause(t *testing.T) {
	t.Parallel()
	group := verdictGroup(t, 64)
	// After the first sample the kernel's log is open. The rule holds only after the kill. Only the hog is in the
	// group: while a process reads the hog's files in procfs, the hog's memory is not freed, and the kernel would kill
	// other processes in the group.
	const rule = "job_processes >= 5 for 100ms"
	hog := `sh -c "echo \$\$ >` + group + `/cgroup.procs; exec tail /dev/zero"`
	o := mustRun(t, 143, stopArgs("10s", untilSampledSo(1)+"; "+hog+"; for k in 1 2 3 4; do sleep 600 & done; exec sleep 600", rule)...)
	v := reportertest.WantVerdict(t, o.Report(t), "oom_cgroup", "died of SIGTERM after the kernel killed a process: tail (process ",
		"; then the rule '"+rule+"' stopped the job at ")
	reportertest.WantEvidence(t, v, map[string]any{"oom_kills": 1, "process": "tail"})
}

// If perfagent is killed in the grace period, its journal has the stop by the rule.
func TestStopIf_JournalOfKilledPerfagentHasTheStop(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, stopArgs("1h", `trap 'echo asked' TERM; echo main $$; while :; do sleep 0.02; done`, hasChild)...)
	l := clitest.StartProcess(t, cmd)
	main := l.PID("main")
	l.Expect("asked")
	path := filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl")
	untilHas(t, path, `"stop":{`, 1)
	l.Signal(unix.SIGKILL)
	check.Must(t, unix.Kill(main, unix.SIGKILL))
	l.End()

	v := reportertest.WantVerdict(t, readAny(t, path), "unknown", "; the rule '"+hasChild+"' had stopped it at ")
	reportertest.WantEvidence(t, v, map[string]any{"rule": hasChild, "sent_signal": "SIGTERM", "killed": false})
}

func TestStopIf_RefusesBadRules(t *testing.T) {
	for words, want := range map[string]string{
		"job_memroy_mb > 8000":    `--stop-if: "job_memroy_mb > 8000": there is no key "job_memroy_mb"; did you mean job_memory_mb?`,
		"job_memory_mb":           "--stop-if: \"job_memory_mb\": is not KEY OP NUMBER [for TIME]",
		"job_memory_mb > 8GB":     `"8GB" is not a number`,
		"job_memory_mb > 8 for x": `"x" is not a duration`,
	} {
		o := wantInside(t, 125, "run", "--stop-if", words, "--", "touch", "started")
		if !strings.Contains(o.Err, want) || clitest.Exists(filepath.Join(o.Dir, "started")) {
			t.Errorf("--stop-if %q: stderr %s, want %q, and the job not started", words, o.Err, want)
		}
	}
	inside(t, "run", "--stop-grace", "-1s", "--", "true").Want(t, 125)
	inside(t, "sidecar", "--stop-if", hasChild).Want(t, 1)
}
