//go:build linux && (amd64 || arm64)

package job

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// named returns a path by which the test binary is executed under another name.
func named(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(os.Args[0], path); err != nil {
		t.Fatal(err)
	}
	return path
}

// A launched agent has a launcher that sends what the test asks for.
type launched struct {
	*wrapped
	orders io.Writer
	agent  int // its process ID
}

// launch starts an agent whose job is a counter, below a launcher of a name. before are the words before the job's.
func launch(t *testing.T, name string, before ...string) *launched {
	t.Helper()
	job := append(append([]string{os.Args[0]}, before...), os.Args[0])
	cmd := command(t, "launcher", "counter", job...)
	cmd.Path = named(t, name)
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	l := &launched{wrapped: start(t, cmd), orders: orders}
	l.agent = parent(t, l.pid("ready"))

	return l
}

// order has the launcher send a signal.
func (l *launched) order(whom string, sig syscall.Signal) {
	l.t.Helper()
	if _, err := fmt.Fprintln(l.orders, whom, unix.SignalName(sig)); err != nil {
		l.t.Fatal(err)
	}
}

// times returns how often the job sees a signal that was ordered: what is relayed of it has been relayed before
// two signals that the test itself sends to the agent.
func (l *launched) times(sig syscall.Signal) (n int) {
	l.t.Helper()
	_, before := l.expect(unix.SignalName(sig))
	n = 1 + before
	for _, last := range []syscall.Signal{syscall.SIGXCPU, syscall.SIGWINCH} {
		if err := unix.Kill(l.agent, last); err != nil {
			l.t.Fatal(err)
		}
		_, before := l.expect(unix.SignalName(last))
		n += before
	}
	return n
}

// terminate ends the job.
func (l *launched) terminate() {
	l.t.Helper()
	l.order("group", syscall.SIGTERM)
	if code, st := l.end(); code != 0 || st.Signal != "" {
		l.t.Errorf("exit code %d, %+v", code, st)
	}
}

// What a launcher sends to the group of the agent reaches the job once.
func TestSignals_LauncherSignalsGroup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"slurmstepd", "mpirun", "mpirun.openmpi", "mpiexec.hydra", "orterun", "orted", "prterun", "prted",
		"hydra_pmi_proxy",
	} {
		if name == slurmStepd && inSlurmGroup() {
			continue
		}
		l := launch(t, name)
		for _, sig := range []syscall.Signal{
			syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGUSR2, syscall.SIGINT, syscall.SIGCONT, syscall.SIGUSR1,
		} {
			l.order("group", sig)
			if n := l.times(sig); n != 1 {
				t.Errorf("%v from %s to the group: the job saw it %d times", sig, name, n)
			}
		}
		l.terminate()
	}
}

// Any other program may as well have meant the agent alone. (Two signals that come at the same time are one.)
func TestSignals_OthersSignalGroup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"srun", "my-mpirun", "hydra"} {
		l := launch(t, name)
		most := 0
		for i := 0; i < 100 && most < 2; i++ {
			l.order("group", syscall.SIGUSR1)
			most = max(most, l.times(syscall.SIGUSR1))
		}
		if most != 2 {
			t.Errorf("from %s to the group: the job saw it %d times, want 2", name, most)
		}

		l.order("process", syscall.SIGUSR2)
		if n := l.times(syscall.SIGUSR2); n != 1 {
			t.Errorf("from %s to the agent: the job saw it %d times, want 1", name, n)
		}
		l.terminate()
	}
}

// A job that has left the group does not get what is sent to it.
func TestSignals_JobLeftGroupOfLauncher(t *testing.T) {
	t.Parallel()
	l := launch(t, "mpirun", "setsid")
	for range 3 {
		l.order("group", syscall.SIGUSR1)
		if n := l.times(syscall.SIGUSR1); n != 1 {
			t.Errorf("the job saw it %d times, want 1", n)
		}
	}
	l.terminate()
}

// A launcher may have ended by the time at which the agent looks at what it sent.
func TestSignals_LauncherEnded(t *testing.T) {
	t.Setenv("PMI_RANK", "0")
	l := launch(t, "hydra_pmi_proxy")
	_ = unix.Kill(l.agent, syscall.SIGSTOP)
	until(t, "the agent stops", func() bool { return state(l.agent) == "T" })
	l.order("group", syscall.SIGUSR1)
	l.expect("SIGUSR1") // the job has it
	_ = l.cmd.Process.Kill()
	_, _ = l.cmd.Process.Wait()
	_ = unix.Kill(l.agent, syscall.SIGCONT)
	_ = unix.Kill(l.agent, syscall.SIGXCPU)

	for line := range l.lines {
		if line == "SIGUSR1" {
			t.Error("the job saw SIGUSR1 a second time")
		}
		if line == "SIGXCPU" {
			break
		}
	}
	_ = unix.Kill(l.agent, syscall.SIGTERM)
	for range l.lines { // until both have ended
	}
}

// A launcher that the agent does not descend from means the agent.
func TestSignals_ForeignLauncher(t *testing.T) {
	t.Parallel()
	l := launch(t, "mpirun")
	cmd := command(t, "sender", "", fmt.Sprint(l.agent))
	cmd.Path = named(t, "mpirun")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if n := l.times(syscall.SIGUSR1); n != 1 {
		t.Errorf("the job saw it %d times, want 1", n)
	}
	l.terminate()
}

// A job that was stopped and continued together with the agent gets the next CONT.
func TestSignals_ContinuedByLauncher(t *testing.T) {
	t.Parallel()
	l := launch(t, "orted")
	for range 3 {
		l.order("group", syscall.SIGSTOP)
		until(t, "the agent stops", func() bool { return state(l.agent) == "T" })
		for _, whom := range []string{"group", "process"} {
			if whom == "process" { // from no launcher: the test itself
				_ = unix.Kill(l.agent, syscall.SIGCONT)
			} else {
				l.order(whom, syscall.SIGCONT)
			}
			if n := l.times(syscall.SIGCONT); n != 1 {
				t.Errorf("to the %s: the job saw it %d times, want 1", whom, n)
			}
		}
	}
	l.terminate()
}

// What was delivered before the job existed is sent to it, by whomever it came.
func TestSignals_DeliveredBeforeStart(t *testing.T) {
	caughtByUs(t, syscall.SIGUSR2) // there is a handler
	s := &Signals{noted: make(chan Sent, 1)}
	for _, sig := range relayed() {
		s.seen[sig] = counted(sig)
	}
	_ = unix.Kill(os.Getpid(), syscall.SIGUSR2)
	until(t, "the handler has run", func() bool { return counted(syscall.SIGUSR2) != s.seen[syscall.SIGUSR2] })

	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.attach(cmd.Process.Pid)
	_ = cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGUSR2 {
		t.Errorf("ended with %v, want SIGUSR2", cmd.ProcessState)
	}
}

func TestHasSlurmStep(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string]bool{
		"": false,
		"0::/user.slice/user-0.slice/session-1.scope\n":                          false,
		"9:freezer:/slurm/uid_0/job_3/step_0\n0::/\n":                            true,
		"9:memory:/slurm_node1/uid_54321/job_3/step_batch/task_0\n":              true,
		"0::/system.slice/slurmstepd.scope/job_3/step_0/user/task_0\n":           true,
		"0::/system.slice/node1_slurmstepd.scope/job_3/step_interactive/user/\n": true,
		"0::/system.slice/slurmd.service\n":                                      false, // without task/cgroup
		"0::/ci/job_3/step_0\n":                                                  false,
		"0::/ci/step_1/slurm/job_3\n1:name=systemd:/slurm/uid_0/job_3\n":         false,
	} {
		if hasSlurmStep([]byte(groups)) != want {
			t.Errorf("%q: want %v", groups, want)
		}
	}
}
