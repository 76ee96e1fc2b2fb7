package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// settling are two signals of no other use: once both were seen, what was sent
// before them has been relayed.
var settling = []syscall.Signal{syscall.SIGXCPU, syscall.SIGABRT}

// What kill sends to perfagent's process id the job sees exactly once.
func TestSignalReachesTheJobOnce(t *testing.T) {
	t.Parallel()
	l := launch(t, asPart(perfagent(t, "run", "--"), "counter"))
	l.pid("ready")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGINT} {
		l.signal(sig)
		l.expect(unix.SignalName(sig))
		for _, s := range settling {
			l.signal(s)
			l.expect(unix.SignalName(s))
		}
	}
	l.signal(syscall.SIGTERM)
	l.expect("SIGTERM")
	o, rest := l.end()
	o.want(t, 9)
	if len(rest) > 0 {
		t.Errorf("the job saw more: %q", rest)
	}
	if r := o.report(t); *r.Run.ExitCode != 9 || r.Run.Signal != "" {
		t.Errorf("run %+v", r.Run)
	}
}

// A signal that kills the job by default does so through perfagent, too.
func TestSignalKillsTheJob(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			l := launch(t, perfagent(t, "run", "--", "sh", "-c", "ulimit -c 0; echo ready $$; exec sleep 60"))
			l.pid("ready")
			l.signal(sig)
			o, _ := l.end()
			o.want(t, 128+int(sig))
			if r := o.report(t); r.Run.Signal != unix.SignalName(sig) || *r.Run.ExitCode != 128+int(sig) {
				t.Errorf("run %+v", r.Run)
			}
		})
	}
}

func TestJobThatTakesItsTimeAfterTermIsReported(t *testing.T) {
	t.Parallel()
	l := launch(t, perfagent(t, "run", "--interval", "100ms", "--", "sh", "-c",
		`trap 'echo caught; sleep 2; exit 3' TERM; echo ready $$; while :; do sleep 0.02; done`))
	l.pid("ready")
	l.signal(syscall.SIGTERM)
	l.expect("caught")
	o, _ := l.end()
	o.want(t, 3)
	if r := o.report(t); *r.Run.ExitCode != 3 || r.Run.Signal != "" || r.Run.WallSeconds < 2 || r.Nodes["0"].Sampling.Samples+r.Nodes["0"].Sampling.MissedTicks < 10 {
		t.Errorf("run %+v, sampling %+v", r.Run, r.Nodes["0"].Sampling)
	}
}

func TestJobThatIgnoresTermIsLeftAlone(t *testing.T) {
	t.Parallel()
	in, goOn := pipe(t)
	cmd := perfagent(t, "run", "--", "sh", "-c", `trap '' TERM INT; trap 'echo still here' USR1
		echo ready $$; while ! read line; do [ $? -gt 128 ] || break; done; exit 4`)
	cmd.Stdin = in
	l := launch(t, cmd)
	l.pid("ready")
	for range 3 {
		l.signal(syscall.SIGTERM)
		l.signal(syscall.SIGINT)
	}
	l.signal(syscall.SIGUSR1)
	l.expect("still here")
	goOn.Close()
	o, _ := l.end()
	o.want(t, 4)
	if r := o.report(t); *r.Run.ExitCode != 4 || r.Run.Signal != "" {
		t.Errorf("run %+v", r.Run)
	}
}

// once wants a signal to be on the screen, then the settling ones that perfagent
// relays, and no other.
func (m *ptyTerminal) once(agent int, sig syscall.Signal) {
	m.t.Helper()
	seen := m.expect(unix.SignalName(sig))
	for _, s := range settling {
		m.kill(agent, s)
		seen += m.expect(unix.SignalName(s))
	}
	if strings.Contains(seen, "SIG") {
		m.t.Errorf("%v: more than once: %q", sig, seen)
	}
}

func (m *ptyTerminal) kill(pid int, sig syscall.Signal) {
	m.t.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		m.t.Fatal(err)
	}
}

// On a terminal the kernel sends Ctrl-C to the whole group: the job has it once,
// as it has what is sent to perfagent alone.
func TestTerminalSignalReachesTheJobOnce(t *testing.T) {
	t.Parallel()
	cmd := asPart(perfagent(t, "run", "--"), "counter")
	m := onTerminal(t, cmd)
	m.pid("ready")
	agent := cmd.Process.Pid
	for range 3 {
		m.send("\x03")
		m.once(agent, syscall.SIGINT)
		m.kill(agent, syscall.SIGINT)
		m.once(agent, syscall.SIGINT)
		m.send("\x1c")
		m.once(agent, syscall.SIGQUIT)
		for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
			m.kill(agent, sig)
			m.once(agent, sig)
		}
	}
	m.kill(agent, syscall.SIGTERM)
	m.expect("SIGTERM")
	if screen, code := m.end(); code != 9 || strings.Count(screen, "\nSIGTERM\r\n") != 1 { // the verdict names it, too
		t.Errorf("exit code %d, screen %q", code, screen)
	}
	onlyReport(t, filepath.Join(cmd.Dir, "perfagent-out"))
}

func TestNewWindowSizeReachesTheJobOnce(t *testing.T) {
	t.Parallel()
	cmd := asPart(perfagent(t, "run", "--"), "counter")
	m := onTerminal(t, cmd)
	m.pid("ready")
	for i := range 5 {
		resize(t, m.tty, 30+i, 100+i)
		m.once(cmd.Process.Pid, syscall.SIGWINCH)
		if want := fmt.Sprintf("SIGWINCH %d %d\r\n", 30+i, 100+i); !strings.Contains(m.all.String(), want) {
			t.Errorf("the job did not see the size: no %q in %q", want, m.all.String())
		}
	}
}

// A terminal that goes away is told to the job once, and the report is written.
func TestHangUpReachesTheJobOnce(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	cmd := asPart(perfagent(t, "run", "--summary", "always", "--"), "counter")
	cmd.Env = append(cmd.Env, "E2E_TO3=1")
	cmd.ExtraFiles = []*os.File{w}
	m := onTerminal(t, cmd)
	w.Close()
	l := &lines{t: t, cmd: cmd, ch: scan(r)}
	l.pid("ready")
	m.tty.Close()
	hups := 0
	for line := l.next(); line != "SIGTERM"; line = l.next() {
		switch line { // with the hang-up the kernel sends a CONT
		case "SIGHUP":
			hups++
			l.signal(syscall.SIGXCPU)
		case "SIGXCPU":
			l.signal(syscall.SIGTERM)
		}
	}
	if hups != 1 {
		t.Errorf("the job saw %d SIGHUP", hups)
	}
	wait(t, cmd)
	if code := cmd.ProcessState.ExitCode(); code != 9 {
		t.Errorf("exit code %d", code)
	}
	onlyReport(t, filepath.Join(cmd.Dir, "perfagent-out"))
}

// shell is an interactive bash on a terminal; $P is perfagent.
func shell(t *testing.T) *ptyTerminal {
	t.Helper()
	cmd := command(t, tool(t, "bash", "apt-get install bash"), "--norc", "--noprofile", "-i")
	cmd.Env = append(cmd.Env, "PS1=prompt-$ ", "HISTFILE=", "TERM=dumb", "P="+binary(t), "JOB="+os.Args[0])
	m := onTerminal(t, cmd)
	m.expect("prompt-$ ")
	return m
}

// Ctrl-Z gives the shell its terminal back; fg continues job and perfagent, and
// the job is told once.
func TestCtrlZAndForeground(t *testing.T) {
	t.Parallel()
	m := shell(t)
	m.send("E2E_PART=counter $P run -- $JOB\n")
	pid := m.pid("ready")
	agent := parentOf(t, pid)
	for range 3 {
		m.send("\x1a")
		m.expect("Stopped")
		m.expect("prompt-$ ")
		until(t, "perfagent and job are stopped", func() bool { return processState(agent) == "T" && processState(pid) == "T" })
		m.send("fg\n")
		m.once(agent, syscall.SIGCONT)
	}
	m.send("\x03")
	m.once(agent, syscall.SIGINT)
	m.kill(agent, syscall.SIGTERM)
	m.expect("prompt-$ ")
	m.send("echo code-$?\n")
	m.expect("code-9\r\n")
	m.send("exit\n")
	m.end()
	onlyReport(t, filepath.Join(m.cmd.Dir, "perfagent-out"))
}

// A shell's loop over wrapped commands does at Ctrl-C what it does over bare ones.
func TestCtrlCInALoop(t *testing.T) {
	t.Parallel()
	dies := `sh -c 'echo ready; exec sleep 5'`
	handles := `sh -c 'trap "exit 0" INT; echo ready; while :; do sleep 0.02; done'`
	for _, c := range []struct {
		name, job string
		goesOn    bool
	}{
		{"a job that dies of it ends the loop", dies, false},
		{"a job that handles it does not", handles, true},
	} {
		for wrapper, words := range map[string]string{"bare": "", "wrapped": "$P run --summary never -- "} {
			loop := "for i in 1 2 3; do " + words + c.job + "; done; echo the-$((40+2))"
			t.Run(c.name+"/interactive bash/"+wrapper, func(t *testing.T) {
				t.Parallel()
				m := shell(t)
				m.send(loop + "\n")
				m.loop(c.goesOn)
				m.expect("prompt-$ ")
			})
			for _, sh := range []string{"bash", "sh"} {
				t.Run(c.name+"/"+sh+" script/"+wrapper, func(t *testing.T) {
					t.Parallel()
					cmd := script(t, tool(t, sh, "apt-get install "+sh), loop)
					m := onTerminal(t, cmd)
					if c.goesOn && sh == "sh" {
						m.expect("ready\r\n") // how it goes on differs between shells
						return
					}
					m.loop(c.goesOn)
				})
			}
		}
	}
}

// loop types Ctrl-C at the first job of a loop and looks what the shell does.
func (m *ptyTerminal) loop(goesOn bool) {
	m.t.Helper()
	m.interruptReady()
	if goesOn {
		m.interruptReady()
		m.interruptReady()
		m.expect("the-42\r\n")
		return
	}
	if filepath.Base(m.cmd.Path) == "bash" && len(m.cmd.Args) == 4 && m.cmd.Args[3] == "-i" {
		if before := m.expect("prompt-$ "); strings.Contains(before, "ready") || strings.Contains(before, "the-42") {
			m.t.Errorf("the loop went on: %q", before)
		}
		m.send("\n")
		return
	}
	screen, _ := m.end()
	if strings.Count(screen, "ready") != 1 || strings.Contains(screen, "the-42") {
		m.t.Errorf("the loop went on: %q", screen)
	}
	if ws := m.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGINT {
		m.t.Errorf("the script ended with %v", m.cmd.ProcessState)
	}
}

// interruptReady types Ctrl-C at a job that is ready, once its shell waits for it:
// a bash that has forked and does not wait yet dies of the signal, whatever its
// child does.
func (m *ptyTerminal) interruptReady() {
	m.t.Helper()
	m.expect("ready\r\n")
	until(m.t, "the shell waits for its job", func() bool { return processState(m.cmd.Process.Pid) == "S" })
	m.send("\x03")
}

// A job that stops itself, as an editor does, gives the shell its terminal back.
func TestJobThatStopsItself(t *testing.T) {
	t.Parallel()
	m := shell(t)
	m.send("$P run -- sh -c 'echo stopping $$; kill -STOP $$; echo continued; exit 6'\n")
	m.expect("exit 6'\r\n") // the echo
	pid := m.pid("stopping")
	m.expect("Stopped")
	m.expect("prompt-$ ")
	if s := processState(pid); s != "T" {
		t.Errorf("state of the job: %q", s)
	}
	m.send("fg\n")
	m.expect("continued\r\n")
	m.expect("prompt-$ ")
	m.send("echo code-$?\n")
	m.expect("code-6\r\n")
}

// nohup's ignored HUP is ignored in the job.
func TestNohup(t *testing.T) {
	t.Parallel()
	in, goOn := pipe(t)
	cmd := script(t, "sh", `exec nohup $P run -- sh -c 'echo ready $$; read x; exit 4'`)
	cmd.Stdin = in
	l := launch(t, cmd)
	pid := l.pid("ready")
	l.signal(syscall.SIGHUP)
	if err := unix.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	goOn.Close()
	o, _ := l.end()
	o.want(t, 4)
}
