package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// settling are two otherwise unused signals: once both have arrived, all earlier signals have been relayed.
var settling = []syscall.Signal{syscall.SIGXCPU, syscall.SIGABRT}

// A signal to perfagent's process ID reaches the job exactly once.
func TestSignals_ReachJobOnce(t *testing.T) {
	t.Parallel()
	l := clitest.StartProcess(t, clitest.AsHelper(clitest.Perfagent(t, "run", "--"), "counter"))
	l.PID("ready")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGINT} {
		l.Signal(sig)
		l.Expect(unix.SignalName(sig))
		for _, s := range settling {
			l.Signal(s)
			l.Expect(unix.SignalName(s))
		}
	}
	l.Signal(syscall.SIGTERM)
	l.Expect("SIGTERM")
	o, rest := l.End()
	o.Want(t, 9)
	if len(rest) > 0 {
		t.Errorf("the job received more signals than were sent: %q", rest)
	}
	if r := o.Report(t); *r.Run.ExitCode != 9 || r.Run.Signal != "" {
		t.Errorf("run %+v, want exit code 9 and no signal", r.Run)
	}
}

// The witness process, started for some launchers, holds no memory, has no command line that a process search could
// match, and shares perfagent's descriptors. If the job is measured by its control group, the witness is not counted as
// a process of the job.
func TestSignals_WitnessIsInvisibleToSearches(t *testing.T) {
	cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--interval", "100ms", "--"), "counter")
	accountGroup(t, cmd.Args, &cmd.Path, &cmd.Args)
	cmd.Env = append(cmd.Env, "SLURM_PROCID=0")
	l := clitest.StartProcess(t, cmd)
	job := l.PID("ready")
	agent := clitest.ParentOf(t, job)
	witness := 0
	clitest.WaitUntil(t, "there is a witness", func() bool {
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", agent))
		for _, file := range children {
			list, _ := os.ReadFile(file)
			for _, pid := range procfile.AppendPIDs(nil, list) {
				if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(comm) == "signal-witness\n" {
					witness = pid
				}
			}
		}
		return witness != 0
	})
	clitest.WaitUntil(t, "the witness holds no memory", func() bool {
		statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", witness))
		var size, resident int
		_, _ = fmt.Sscan(string(statm), &size, &resident)
		return resident < 64
	})
	if line := clitest.Read(t, fmt.Sprintf("/proc/%d/cmdline", witness)); line != "" {
		t.Errorf("command line of the witness %q, want an empty one", line)
	}
	names := func(pid int) string {
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		return fmt.Sprint(entries)
	}
	clitest.WaitUntil(t, "the witness has perfagent's table of descriptors", func() bool { return names(agent) == names(witness) })

	clitest.WaitUntil(t, "a sample is in the journal", func() bool {
		journals, _ := filepath.Glob(filepath.Join(cmd.Dir, "perfagent-out/*/*.jsonl"))
		return len(journals) == 1 && strings.Contains(clitest.Read(t, journals[0]), `{"sample"`)
	})
	l.Signal(syscall.SIGTERM)
	l.Expect("SIGTERM")
	n := mustEnd(l, 9).Report(t).Nodes["0"]
	wantSource(t, n, "cgroup")
	if most := n.Metrics["max_t_job_processes"]; most != 1 || n.Job.Orphans != 0 {
		t.Errorf("%v processes, %d orphans; want 1 and 0, without the witness", most, n.Job.Orphans)
	}
	clitest.WaitUntil(t, "the witness is gone", func() bool { return clitest.ProcessState(witness) == "" })
}

// readyJob starts a job with samples each 100 ms, and waits until it has printed "ready" and its process ID.
func readyJob(t *testing.T, stdin *os.File, script string) *clitest.Process {
	t.Helper()
	cmd := clitest.Perfagent(t, "run", "--interval", "100ms", "--", "sh", "-c", script)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	l := clitest.StartProcess(t, cmd)
	l.PID("ready")
	return l
}

// A signal that kills a job by default also kills it through perfagent.
func TestSignals_KillJobThroughPerfagent(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
	for _, sig := range signals {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			l := readyJob(t, nil, "ulimit -c 0; echo ready $$; exec sleep 600")
			l.Signal(sig)
			if r := mustEnd(l, 128+int(sig)).Report(t); r.Run.Signal != unix.SignalName(sig) || *r.Run.ExitCode != 128+int(sig) {
				t.Errorf("run %+v, want signal %s and exit code %d", r.Run, unix.SignalName(sig), 128+int(sig))
			}
		})
	}
}

func TestSignals_JobMayEndLongAfterTerm(t *testing.T) {
	t.Parallel()
	l := readyJob(t, nil, `trap 'echo caught; sleep 2; exit 3' TERM; echo ready $$; while :; do sleep 0.02; done`)
	l.Signal(syscall.SIGTERM)
	l.Expect("caught")
	r := mustEnd(l, 3).Report(t)
	s := r.Nodes["0"].Sampling
	if *r.Run.ExitCode != 3 || r.Run.Signal != "" || r.Run.WallSeconds < 2 || s.Samples+s.MissedTicks < 10 {
		t.Errorf("run %+v, sampling %+v; want exit code 3 after 2 s or more, 10 ticks or more", r.Run, s)
	}
}

func TestSignals_JobThatIgnoresTermKeepsRunning(t *testing.T) {
	t.Parallel()
	in, goOn := clitest.Pipe(t)
	l := readyJob(t, in, `trap '' TERM INT; trap 'echo still here' USR1
		echo ready $$; while ! read line; do [ $? -gt 128 ] || break; done; exit 4`)
	for range 3 {
		l.Signal(syscall.SIGTERM)
		l.Signal(syscall.SIGINT)
	}
	l.Signal(syscall.SIGUSR1)
	l.Expect("still here")
	goOn.Close()
	if r := mustEnd(l, 4).Report(t); *r.Run.ExitCode != 4 || r.Run.Signal != "" {
		t.Errorf("run %+v, want exit code 4 and no signal", r.Run)
	}
}

// seenOnce checks that the screen shows sig, then the settling signals that perfagent relays, and no other signal.
func seenOnce(m *clitest.Terminal, agent int, sig syscall.Signal) {
	m.T.Helper()
	seen := m.Expect(unix.SignalName(sig))
	for _, s := range settling {
		killTo(m, agent, s)
		seen += m.Expect(unix.SignalName(s))
	}
	if strings.Contains(seen, "SIG") {
		m.T.Errorf("%v is on the screen more than once: %q", sig, seen)
	}
}

func killTo(m *clitest.Terminal, pid int, sig syscall.Signal) {
	m.T.Helper()
	check.Must(m.T, unix.Kill(pid, sig))
}

// expectAll waits for each text on the screen, in this order.
func expectAll(m *clitest.Terminal, texts ...string) {
	m.T.Helper()
	for _, text := range texts {
		m.Expect(text)
	}
}

// On a terminal the kernel sends the signal of Ctrl-C to the whole process group. The job gets the signal once, like a
// signal that is sent only to perfagent.
func TestSignals_FromTerminalReachJobOnce(t *testing.T) {
	t.Parallel()
	cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--"), "counter")
	m := clitest.OnTerminal(t, cmd)
	m.PID("ready")
	agent := cmd.Process.Pid
	killTo(m, agent, syscall.SIGUSR1) // once relayed, perfagent has noticed that the job runs
	m.Expect("SIGUSR1")
	for range 3 {
		m.Send("\x03")
		seenOnce(m, agent, syscall.SIGINT)
		killTo(m, agent, syscall.SIGINT)
		seenOnce(m, agent, syscall.SIGINT)
		m.Send("\x1c")
		seenOnce(m, agent, syscall.SIGQUIT)
		for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
			killTo(m, agent, sig)
			seenOnce(m, agent, sig)
		}
	}
	killTo(m, agent, syscall.SIGTERM)
	m.Expect("SIGTERM")
	if screen, code := m.End(); code != 9 || strings.Count(screen, "\nSIGTERM\r\n") != 1 { // the verdict also contains SIGTERM
		t.Errorf("exit code %d, screen %q; want 9 and one line SIGTERM", code, screen)
	}
	reportertest.ReadSingle(t, filepath.Join(cmd.Dir, "perfagent-out"))
}

func TestSignals_NewWindowSizeReachesJobOnce(t *testing.T) {
	t.Parallel()
	cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--"), "counter")
	m := clitest.OnTerminal(t, cmd)
	m.PID("ready")
	for i := range 5 {
		clitest.Resize(t, m.TTY, 30+i, 100+i)
		seenOnce(m, cmd.Process.Pid, syscall.SIGWINCH)
		if want := fmt.Sprintf("SIGWINCH %d %d\r\n", 30+i, 100+i); !strings.Contains(m.All.String(), want) {
			t.Errorf("the job did not get the new size %q: %q", want, m.All.String())
		}
	}
}

// A hang-up of the terminal reaches the job once, and the report is written.
func TestSignals_HangUpReachesJobOnce(t *testing.T) {
	t.Parallel()
	r, w := clitest.Pipe(t)
	cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--summary", "always", "--"), "counter")
	cmd.Env = append(cmd.Env, "E2E_TO3=1")
	cmd.ExtraFiles = []*os.File{w}
	m := clitest.OnTerminal(t, cmd)
	w.Close()
	l := &clitest.Process{T: t, Cmd: cmd, Lines: clitest.Scan(r)}
	l.PID("ready")
	m.TTY.Close()
	hups := 0
	for line := l.Next(); line != "SIGTERM"; line = l.Next() {
		switch line { // the kernel sends a CONT with the hang-up
		case "SIGHUP":
			hups++
			l.Signal(syscall.SIGXCPU)
		case "SIGXCPU":
			l.Signal(syscall.SIGTERM)
		}
	}
	clitest.Wait(t, cmd)
	if code := cmd.ProcessState.ExitCode(); code != 9 || hups != 1 {
		t.Errorf("exit code %d, SIGHUP received %d times; want 9, once", code, hups)
	}
	reportertest.ReadSingle(t, filepath.Join(cmd.Dir, "perfagent-out"))
}

// shell starts an interactive bash on a terminal; $P is perfagent.
func shell(t *testing.T) *clitest.Terminal {
	t.Helper()
	cmd := clitest.Command(t, testenv.NeedsTool(t, "bash", "apt-get install bash"), "--norc", "--noprofile", "-i")
	cmd.Env = append(cmd.Env, "PS1=prompt-$ ", "HISTFILE=", "TERM=dumb", "P="+clitest.Binary(t), "JOB="+os.Args[0])
	m := clitest.OnTerminal(t, cmd)
	m.Expect("prompt-$ ")
	return m
}

// Ctrl-Z returns the terminal to the shell; fg continues the job and perfagent, and the job gets CONT once.
func TestSignals_CtrlZGivesTerminalToShellAndFgContinues(t *testing.T) {
	t.Parallel()
	m := shell(t)
	m.Send(clitest.HelperEnv("counter") + " $P run -- $JOB\n")
	pid := m.PID("ready")
	agent := clitest.ParentOf(t, pid)
	for range 3 {
		m.Send("\x1a")
		expectAll(m, "Stopped", "prompt-$ ")
		clitest.WaitUntil(t, "perfagent and job are stopped", func() bool { return clitest.ProcessState(agent) == "T" && clitest.ProcessState(pid) == "T" })
		m.Send("fg\n")
		seenOnce(m, agent, syscall.SIGCONT)
	}
	m.Send("\x03")
	seenOnce(m, agent, syscall.SIGINT)
	killTo(m, agent, syscall.SIGTERM)
	m.Expect("prompt-$ ")
	m.Send("echo code-$?\n")
	m.Expect("code-9\r\n")
	m.Send("exit\n")
	m.End()
	reportertest.ReadSingle(t, filepath.Join(m.Cmd.Dir, "perfagent-out"))
}

// On Ctrl-C, a shell's loop over wrapped commands behaves like a loop over plain commands.
func TestSignals_CtrlCEndsShellLoopAsWithoutPerfagent(t *testing.T) {
	t.Parallel()
	dies := `sh -c 'echo ready; exec sleep 600'`
	handles := `sh -c 'trap "exit 0" INT; echo ready; while :; do sleep 0.02; done'`
	for job, goesOn := range map[string]bool{dies: false, handles: true} {
		for wrapper, words := range map[string]string{"bare": "", "wrapped": "$P run --summary never -- "} {
			loop := "for i in 1 2 3; do " + words + job + "; done; echo the-$((40+2))"
			name := fmt.Sprintf("%s job that handles Ctrl-C %v/", wrapper, goesOn)
			t.Run(name+"interactive bash", func(t *testing.T) {
				t.Parallel()
				m := shell(t)
				m.Send(loop + "\n")
				interruptLoop(m, goesOn)
				m.Expect("prompt-$ ")
			})
			for _, sh := range []string{"bash", "sh"} {
				t.Run(name+sh+" script", func(t *testing.T) {
					t.Parallel()
					m := clitest.OnTerminal(t, clitest.Script(t, testenv.NeedsTool(t, sh, "apt-get install "+sh), loop))
					if goesOn && sh == "sh" {
						m.Expect("ready\r\n") // the rest differs between shells
						return
					}
					interruptLoop(m, goesOn)
				})
			}
		}
	}
}

// interruptLoop types Ctrl-C during the first job of a loop and checks whether the shell continues the loop.
func interruptLoop(m *clitest.Terminal, goesOn bool) {
	m.T.Helper()
	interruptReady(m)
	if goesOn {
		interruptReady(m)
		interruptReady(m)
		m.Expect("the-42\r\n")
		return
	}
	if filepath.Base(m.Cmd.Path) == "bash" && len(m.Cmd.Args) == 4 && m.Cmd.Args[3] == "-i" {
		if before := m.Expect("prompt-$ "); strings.Contains(before, "ready") || strings.Contains(before, "the-42") {
			m.T.Errorf("the loop continued, want it ended: %q", before)
		}
		m.Send("\n")
		return
	}
	screen, _ := m.End()
	if strings.Count(screen, "ready") != 1 || strings.Contains(screen, "the-42") {
		m.T.Errorf("the loop continued, want it ended: %q", screen)
	}
	if ws := m.Cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGINT {
		m.T.Errorf("the script ended with %v, want SIGINT", m.Cmd.ProcessState)
	}
}

// interruptReady types Ctrl-C once the job is ready and the shell waits for the job. A bash that has forked but is not
// yet waiting dies of the signal, whatever its child does.
func interruptReady(m *clitest.Terminal) {
	m.T.Helper()
	m.Expect("ready\r\n")
	clitest.WaitUntil(m.T, "the shell waits for its job", func() bool { return clitest.ProcessState(m.Cmd.Process.Pid) == "S" })
	m.Send("\x03")
}

// A job that stops itself, as an editor does, returns the terminal to the shell.
func TestSignals_JobThatStopsItselfGivesTerminalToShell(t *testing.T) {
	t.Parallel()
	m := shell(t)
	m.Send("$P run -- sh -c 'echo stopping $$; kill -STOP $$; echo continued; exit 6'\n")
	m.Expect("exit 6'\r\n") // the echo of the input
	pid := m.PID("stopping")
	expectAll(m, "Stopped", "prompt-$ ")
	if s := clitest.ProcessState(pid); s != "T" {
		t.Errorf("state of the job %q, want T (stopped)", s)
	}
	m.Send("fg\n")
	expectAll(m, "continued\r\n", "prompt-$ ")
	m.Send("echo code-$?\n")
	m.Expect("code-6\r\n")
}

// If nohup ignores HUP, the job also ignores it.
func TestSignals_HUPIgnoredByNohupIsIgnoredInJob(t *testing.T) {
	t.Parallel()
	in, goOn := clitest.Pipe(t)
	cmd := clitest.Script(t, "sh", `exec nohup $P run -- sh -c 'echo ready $$; read x; exit 4'`)
	cmd.Stdin = in
	l := clitest.StartProcess(t, cmd)
	pid := l.PID("ready")
	l.Signal(syscall.SIGHUP)
	check.Must(t, unix.Kill(pid, syscall.SIGHUP))
	goOn.Close()
	mustEnd(l, 4)
}

// A TERM after the end of the job changes neither its exit code nor the report.
func TestSignals_TermAfterJobChangesNothing(t *testing.T) {
	t.Parallel()
	for range 20 {
		l := clitest.StartProcess(t, clitest.Perfagent(t, "run", "--", "sh", "-c", `trap '' TERM; echo ready; exit 6`))
		l.Expect("ready")
		for unix.Kill(l.Cmd.Process.Pid, syscall.SIGTERM) == nil && clitest.ProcessState(l.Cmd.Process.Pid) != "Z" {
		}
		mustEnd(l, 6).Report(t)
	}
}
