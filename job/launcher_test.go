//go:build linux && (amd64 || arm64)

package job

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// named returns a path for executing the test binary under another name.
func named(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check.Must(t, os.Symlink(os.Args[0], path))
	return path
}

// An underLauncher is an agent below a launcher that sends signals on request.
type underLauncher struct {
	*wrapped
	orders io.Writer
	agent  int // its process ID
}

// launch starts an agent with a counter as its job, below a launcher with the given name. before holds the arguments
// before the job's command.
func launch(t *testing.T, name string, before ...string) *underLauncher {
	t.Helper()
	return launchWith(t, nil, name, before...)
}

// launchWith is launch with environment variables.
func launchWith(t *testing.T, env []string, name string, before ...string) *underLauncher {
	t.Helper()
	job := append(append([]string{os.Args[0]}, before...), os.Args[0])
	cmd := command(t, "launcher", "counter", job...)
	cmd.Path, cmd.Env = named(t, name), append(cmd.Env, env...)
	orders := check.Value(cmd.StdinPipe())(t)

	l := &underLauncher{wrapped: start(t, cmd), orders: orders}
	l.agent = clitest.ParentOf(t, l.PID("ready"))

	return l
}

// awaitWitness waits for the witness, and returns its process ID.
func (l *underLauncher) awaitWitness() (pid int) {
	l.T.Helper()
	clitest.WaitUntil(l.T, "the witness runs", func() bool {
		for _, child := range addressees("each", l.agent)[1:] {
			if nameOf(child) == "signal-witness" {
				pid = child
			}
		}
		return pid != 0
	})
	return pid
}

// order makes the launcher send sig in the given way.
func (l *underLauncher) order(way string, sig syscall.Signal) {
	l.T.Helper()
	check.Value(fmt.Fprintln(l.orders, unix.SignalName(sig), way))(l.T)
}

// times returns how often the job receives sig. All copies have been relayed once the job gets the two signals that
// times then sends to the agent.
func (w *wrapped) times(agent int, sig syscall.Signal) (n int) {
	w.T.Helper()
	_, before := w.skipTo(unix.SignalName(sig))
	n = 1 + before
	for _, last := range []syscall.Signal{syscall.SIGXCPU, syscall.SIGWINCH} {
		check.Must(w.T, unix.Kill(agent, last))
		_, before := w.skipTo(unix.SignalName(last))
		n += before
	}
	return n
}

// terminate ends the job.
func (l *underLauncher) terminate() {
	l.T.Helper()
	l.order("group", syscall.SIGTERM)
	l.wantEnd(0, "")
}

// ways are the ways in which launchers send signals.
var ways = []string{"process", "group", "each", "each, backwards"}

// A launcher's signal reaches the job once, however it is sent and whatever the launcher's name is. Some launchers are
// recognized by the environment, others by their names.
func TestSignals_LauncherSignalReachesJobOnce(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"slurm-of-2031": {"SLURM_PROCID=0"}, "pbs_mom": {"PBS_JOBID=1.host"}, "slurmstepd": nil, "mpirun.openmpi": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := launchWith(t, env, name)
			l.awaitWitness()
			for _, way := range ways {
				for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGINT, syscall.SIGCONT} {
					l.order(way, sig)
					if n := l.times(l.agent, sig); n != 1 {
						t.Errorf("%v from %s to %s: the job received it %d times, want 1", sig, name, way, n)
					}
				}
			}
			l.terminate()
		})
	}
}

// Without a known launcher there is no witness, so a signal to the group is relayed as if only the agent had received
// the signal. (The job may get two simultaneous signals as one.)
func TestSignals_GroupSignalArrivesTwiceWithoutLauncher(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"srun", "my-mpirun", "hydra"} {
		l := launch(t, name)
		most := 0
		for i := 0; i < 100 && most < 2; i++ {
			l.order("group", syscall.SIGUSR1)
			most = max(most, l.times(l.agent, syscall.SIGUSR1))
		}
		if most != 2 {
			t.Errorf("USR1 from %s to the group: the job received it at most %d times, want 2", name, most)
		}

		l.order("process", syscall.SIGUSR2)
		if n := l.times(l.agent, syscall.SIGUSR2); n != 1 {
			t.Errorf("USR2 from %s to the agent: the job received it %d times, want 1", name, n)
		}
		l.terminate()
	}
}

// A job that has left the process group receives the group's signals only through the relay.
func TestSignals_JobOutsideGroupGetsGroupSignalOnce(t *testing.T) {
	t.Parallel()
	l := launch(t, "mpirun", "setsid")
	l.awaitWitness()
	for range 3 {
		l.order("group", syscall.SIGUSR1)
		if n := l.times(l.agent, syscall.SIGUSR1); n != 1 {
			t.Errorf("the job received USR1 %d times, want 1", n)
		}
	}
	l.order("process", syscall.SIGTERM)
	l.wantEnd(0, "")
}

// A launcher may end before the agent handles its signal.
func TestSignals_SignalFromEndedLauncherIsNotRepeated(t *testing.T) {
	t.Parallel()
	l := launchWith(t, []string{"PMI_RANK=0"}, "proxy")
	l.awaitWitness()
	_ = unix.Kill(l.agent, syscall.SIGSTOP)
	clitest.WaitUntil(t, "the agent stops", func() bool { return clitest.ProcessState(l.agent) == "T" })
	l.order("group", syscall.SIGUSR1)
	l.skipTo("SIGUSR1") // the job has it
	_ = l.Cmd.Process.Kill()
	_, _ = l.Cmd.Process.Wait()
	_ = unix.Kill(l.agent, syscall.SIGCONT)
	_ = unix.Kill(l.agent, syscall.SIGXCPU)

	for line := range l.Lines {
		if line == "SIGUSR1" {
			t.Error("the job received SIGUSR1 twice, want once: the launcher sent it to the group")
		}
		if line == "SIGXCPU" {
			break
		}
	}
	_ = unix.Kill(l.agent, syscall.SIGTERM)
	for range l.Lines { // until both have ended
	}
}

// A launcher that is not an ancestor of the agent signals the agent alone.
func TestSignals_SignalFromUnrelatedLauncherIsRelayed(t *testing.T) {
	t.Parallel()
	l := launch(t, "mpirun")
	cmd := command(t, "sender", "", fmt.Sprint(l.agent))
	cmd.Path = named(t, "mpirun")
	check.Must(t, cmd.Run())
	if n := l.times(l.agent, syscall.SIGUSR1); n != 1 {
		t.Errorf("the job received USR1 %d times, want 1", n)
	}
	l.terminate()
}

// A job that was stopped and continued together with the agent gets the next CONT.
func TestSignals_ContinuedJobGetsNextCONT(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its stops")
	t.Parallel()
	l := launch(t, "orted")
	l.awaitWitness()
	for range 3 {
		l.order("group", syscall.SIGSTOP)
		clitest.WaitUntil(t, "the agent stops", func() bool { return clitest.ProcessState(l.agent) == "T" })
		for _, whom := range []string{"group", "process"} {
			if whom == "process" { // the test itself is no launcher
				_ = unix.Kill(l.agent, syscall.SIGCONT)
			} else {
				l.order(whom, syscall.SIGCONT)
			}
			if n := l.times(l.agent, syscall.SIGCONT); n != 1 {
				t.Errorf("CONT to the %s: the job received it %d times, want 1", whom, n)
			}
		}
	}
	l.terminate()
}

// Signals delivered before the job's start are sent to it, whoever the sender is.
func TestSignals_DeliveredBeforeStartReachJob(t *testing.T) {
	caughtByUs(t, syscall.SIGUSR2) // installs the handler
	s := &Signals{incoming: make(chan process.Signal, 1)}
	for _, sig := range relayedSignals() {
		s.seen[sig] = readDeliveries(sig)
	}
	_ = unix.Kill(os.Getpid(), syscall.SIGUSR2)
	clitest.WaitUntil(t, "the handler has run", func() bool { return readDeliveries(syscall.SIGUSR2) != s.seen[syscall.SIGUSR2] })

	cmd := exec.Command("sleep", "600")
	check.Must(t, cmd.Start())
	s.attach(cmd.Process.Pid, nil)
	_ = cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGUSR2 {
		t.Errorf("the job ended with %v, want SIGUSR2", cmd.ProcessState)
	}
}

// A signal that a process of the job sends to its group reaches the job directly.
func TestSignals_GroupSignalFromJobIsNotRelayed(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "insider", os.Args[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w := start(t, cmd)
	w.PID("ready")
	for range 10 {
		for _, by := range []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGINT} {
			w.relays(by)
			if n := w.times(cmd.Process.Pid, syscall.SIGUSR1); n != 1 {
				t.Errorf("after %v: the job received SIGUSR1 %d times, want 1", by, n)
			}
		}
	}
	_ = unix.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	w.end()
}

// The job may signal its group before the agent has recorded the job's process ID.
func TestSignals_EarlyGroupSignalFromJobIsNotRelayed(t *testing.T) {
	t.Parallel()
	for range 20 {
		cmd := command(t, "agent", "", "sh", "-c", `trap 'echo SIGTERM' TERM; trap 'echo SIGXCPU' XCPU; trap 'echo SIGUSR2; exit' USR2
			kill 0; while :; do sleep 0.01; done`)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		w := start(t, cmd)
		w.skipTo("SIGTERM")
		w.relays(syscall.SIGXCPU)
		w.relays(syscall.SIGUSR2)
		w.end()
	}
}

// A child that the process had before it became the agent does not belong to the job. It signals the agent's process
// ID.
func TestSignals_SignalFromOlderChildIsRelayed(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "counter", "-c", `(read x; kill -USR1 $$) <&3 & exec "$0" "$0"`, os.Args[0])
	cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, goOn := clitest.Pipe(t)
	cmd.ExtraFiles = []*os.File{r}
	w := start(t, cmd)
	r.Close()
	w.PID("ready")
	goOn.Close()
	if n := w.times(cmd.Process.Pid, syscall.SIGUSR1); n != 1 {
		t.Errorf("the job received SIGUSR1 %d times, want 1", n)
	}
	w.Signal(syscall.SIGTERM)
	w.end()
}

// The witness holds no file open, is foreign to the job, and ends with the agent, however the agent ends.
func TestWitness_IsForeignAndEndsWithAgent(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *underLauncher){
		"job ends":        func(l *underLauncher) { l.terminate() },
		"agent is killed": func(l *underLauncher) { _ = unix.Kill(l.agent, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := launch(t, "orted")
			pid := l.awaitWitness()
			if line := clitest.Read(t, fmt.Sprintf("/proc/%d/cmdline", pid)); !withCgo && line != "" {
				t.Errorf("command line of the witness %q, want none, as its memory is unmapped", line)
			}
			if group, _ := unix.Getpgid(pid); group != l.agent || clitest.ParentOf(t, pid) != l.agent {
				t.Errorf("witness in group %d with parent %d, want the agent %d", group, clitest.ParentOf(t, pid), l.agent)
			}
			end(l)
			clitest.WaitUntil(t, "the witness is gone", func() bool { return isDead(pid) })
			_ = unix.Kill(-l.agent, syscall.SIGKILL)
			for range l.Lines { // until all have ended
			}
		})
	}
}

// A parent death signal set by the launcher also applies to the job, both as a child and after Exec. Without one, the
// job has none.
func TestStart_PassesOnParentDeathSignal(t *testing.T) {
	runtime.LockOSThread() // the parent of the child is a thread
	defer runtime.UnlockOSThread()
	for _, part := range []string{"agent", "inplace"} {
		for _, sig := range []syscall.Signal{0, syscall.SIGUSR2} {
			cmd := command(t, part, "mortal", os.Args[0])
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: sig}
			w := start(t, cmd)
			if got, _ := w.skipTo("dies "); got != fmt.Sprint("dies ", int(sig)) {
				t.Errorf("%s: the job printed %q, want the parent death signal %d", part, got, sig)
			}
			for range w.Lines {
			}
			_ = cmd.Wait()
		}
	}
}

// A signal that the witness also received has reached the job, unless the job has left its groups. Other signals are
// relayed after groupSignalWindow.
func TestSignals_RelaysHeldBackSignalsThatWitnessMissed(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "counter", ""))
	job := w.PID("ready")
	defer w.Signal(syscall.SIGTERM)
	groups := check.Value(groupsOf(job))(t)

	const sig = syscall.SIGUSR1
	now, late := time.Now().Add(time.Minute), time.Now().Add(-groupSignalWindow) // however slow the machine is
	for _, c := range []struct {
		name      string
		counts    uint32 // of the witness
		unmatched []timedSignal
		groups    string
		heldBack  []timedSignal
		passed    int
		left      int
	}{
		{"witness received it too", 1, nil, string(groups), []timedSignal{{sig, now}}, 0, 0},
		{"witness received it too, held back long ago", 1, nil, string(groups), []timedSignal{{sig, late}}, 0, 0},
		{"only we received it, just now", 0, nil, string(groups), []timedSignal{{sig, now}}, 0, 1},
		{"only we received it, long ago", 0, nil, string(groups), []timedSignal{{sig, late}}, 1, 0},
		{"we received it twice, witness once", 1, nil, string(groups), []timedSignal{{sig, late}, {sig, late}}, 1, 0},
		{"witness received another signal", 1, nil, string(groups), []timedSignal{{syscall.SIGUSR2, late}}, 1, 0},
		{"witness received it long before us", 0, []timedSignal{{sig, late}}, string(groups), []timedSignal{{sig, now}}, 0, 0},
		{"witness received it before us", 0, []timedSignal{{sig, now}}, string(groups), []timedSignal{{sig, now}}, 0, 0},
		{"job left its control groups", 1, nil, "0::/elsewhere\n", []timedSignal{{sig, now}}, 1, 0},
	} {
		s := &Signals{jobState: jobRunning, pid: job, heldBack: c.heldBack}
		s.witness = &witness{pid: os.Getpid(), counts: &witnessPage{}, unmatched: c.unmatched, groups: []byte(c.groups)}
		s.witness.counts.counts[sig] = c.counts
		s.resolveHeldBack()
		passed := c.passed
		for range passed { // the order among the job's threads is not fixed
			_, before := w.skipTo(unix.SignalName(c.heldBack[0].sig))
			passed += before
		}
		for _, last := range []syscall.Signal{syscall.SIGXCPU, syscall.SIGWINCH} { // as in times
			_ = unix.Kill(job, last)
			_, before := w.skipTo(unix.SignalName(last))
			passed += before
		}
		if passed != c.passed || len(s.heldBack) != c.left {
			t.Errorf("%s: %d relayed, %d held back; want %d and %d", c.name, passed, len(s.heldBack), c.passed, c.left)
		}
	}
}

// A held-back CONT replaces an earlier TSTP, and a TSTP replaces an earlier CONT. Other signals are kept.
func TestSignals_HeldBackStopAndContinueCancel(t *testing.T) {
	s := &Signals{}
	for _, sig := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTERM, syscall.SIGCONT} {
		s.holdBack(sig, 1)
	}
	if len(s.heldBack) != 2 || s.heldBack[0].sig != syscall.SIGTERM || s.heldBack[1].sig != syscall.SIGCONT {
		t.Errorf("held back %v, want TERM and CONT", s.heldBack)
	}
	if s.holdBack(syscall.SIGTSTP, 1); len(s.heldBack) != 2 || s.heldBack[1].sig != syscall.SIGTSTP {
		t.Errorf("held back %v, want TERM and TSTP", s.heldBack)
	}
}

// A signal that only the witness received does not match the next signal.
func TestWitness_ForgetsUnmatchedSignal(t *testing.T) {
	w := &witness{counts: &witnessPage{}}
	w.counts.counts[syscall.SIGTERM] = 2
	w.look()
	if !w.takeMatch(syscall.SIGTERM) || w.takeMatch(syscall.SIGHUP) || len(w.unmatched) != 1 {
		t.Errorf("after matching one of two TERM: unmatched %v, want one TERM", w.unmatched)
	}
	w.unmatched[0].at = w.unmatched[0].at.Add(-2 * groupSignalWindow)
	s := &Signals{jobState: jobRunning, witness: w}
	s.seen[syscall.SIGTERM].user = readDeliveries(syscall.SIGTERM).user + 1 // our copy is collected next
	if s.resolveHeldBack(); len(w.unmatched) != 1 {
		t.Errorf("unmatched %v, want one TERM, because our own copy has not been collected", w.unmatched)
	}
	s.seen[syscall.SIGTERM] = readDeliveries(syscall.SIGTERM)
	if s.resolveHeldBack(); w.takeMatch(syscall.SIGTERM) {
		t.Error("an unmatched TERM older than groupSignalWindow was kept, want it dropped")
	}
}
