//go:build linux && (amd64 || arm64)

package job

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/procfile"
)

// role is the variable that gives the test binary a role: the wrapper or a job. nextRole is the role that the wrapper
// gives its job.
const (
	role     = "PERFAGENT_JOB_ROLE"
	nextRole = "PERFAGENT_JOB_NEXT_ROLE"
	result   = "PERFAGENT_JOB_RESULT"
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		// If the tests run in the background of a script, INT and QUIT are ignored, and every job would inherit that. A
		// signal that is caught here has its default action in the job.
		for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
			if signal.Ignored(sig) {
				signal.Notify(make(chan os.Signal, 1), sig)
			}
		}
		os.Exit(m.Run())
	case "agent":
		os.Exit(agent(hooks{}))
	case "early":
		os.Exit(agent(hooks{caught: sendEarly}))
	case "hung helper":
		os.Exit(agent(hooks{started: startHungHelper}))
	case "helper":
		os.Exit(agent(hooks{started: startHelper, ended: func(j *Job) { fmt.Println("over", j.AllEnded()) }}))
	case "launcher":
		os.Exit(launcher())
	case "sender":
		pid, _ := strconv.Atoi(os.Args[1])
		_ = unix.Kill(pid, syscall.SIGUSR1)
	case "counter":
		counter(nil)
	case "insider":
		counter(map[os.Signal]func(){
			syscall.SIGHUP:  func() { _ = unix.Kill(0, syscall.SIGUSR1) },
			syscall.SIGQUIT: func() { _ = exec.Command("sh", "-c", killsAndLives).Start() },
			syscall.SIGINT:  func() { _ = exec.Command("sh", "-c", "("+killsAndLives+") &").Run() }, // an orphan
		})
	case "selfstop":
		selfStop()
	case "editor":
		editor()
	case "hog":
		hog()
	case "full":
		full()
	case "headroom":
		tight()
	case "titled":
		titled()
	case "inplace":
		inPlace()
	case "mortal":
		fmt.Println("dies", int(launcherDeath))
	}
}

// hooks are called between an agent's steps.
type hooks struct {
	caught         func(*Signals)
	started, ended func(*Job)
}

// agent is a minimal perfagent.
func agent(h hooks) int {
	s := Catch()
	c := Command{Args: os.Args[1:], Env: []string{role + "=" + os.Getenv(nextRole)}}
	if h.caught != nil {
		h.caught(s)
	}
	j, err := Start(c, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	if h.started != nil {
		h.started(j)
	}
	st := j.Wait()
	if h.ended != nil {
		h.ended(j)
	}
	j.ReapHelpers()
	if file := os.Getenv(result); file != "" {
		text, _ := json.Marshal(st)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			panic(err)
		}
	}
	if st.FromTerminal {
		Reraise(st.Signo)
	}
	s.Stop()
	return st.ExitCode
}

// sendEarly signals the agent before there is a job.
func sendEarly(s *Signals) {
	_ = unix.Kill(os.Getpid(), syscall.SIGTERM)
	for {
		s.mu.Lock()
		n := len(s.early)
		s.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// launcher starts an agent in a separate process group, as launchers of parallel programs do, and sends it the signals
// that lines such as "SIGUSR1 group" on standard input request. It ends with the agent.
func launcher() int {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Env = append(os.Environ(), role+"=agent")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}

	go func() {
		// On a busy machine, this thread may pause between two processes for longer than the agent waits.
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // of this thread; only root may
		for sc := bufio.NewScanner(os.Stdin); sc.Scan(); {
			name, way, _ := strings.Cut(sc.Text(), " ")
			for _, pid := range addressees(way, cmd.Process.Pid) {
				_ = unix.Kill(pid, unix.SignalNum(name))
			}
		}
	}()

	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// addressees returns the processes that a launcher signals for an agent, in the launcher's order: the process that it
// started (Slurm's proctrack/cgroup), the group (proctrack/pgid), each process below it (proctrack/linuxproc, and
// SignalChildrenProcesses=yes), or the latter in reverse order.
func addressees(way string, agent int) []int {
	switch way {
	case "process":
		return []int{agent}
	case "group":
		return []int{-agent}
	}
	pids := []int{agent}
	for i := 0; i < len(pids); i++ {
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && parentOf(pid) == pids[i] {
				pids = append(pids, pid)
			}
		}
	}
	if way == "each, backwards" {
		slices.Reverse(pids)
	}
	return pids
}

// startHelper starts a helper that outlives the job.
func startHelper(j *Job) {
	err := j.StartHelper(func() (int, error) {
		return syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exec sleep 600"},
			&syscall.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	})
	if err != nil {
		panic(err)
	}
}

// startHungHelper starts a helper that is dead long before its process ID is known, at the end of descriptor 3.
func startHungHelper(j *Job) {
	made := make(chan int)
	go func() {
		_ = j.StartHelper(func() (int, error) {
			pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", ":"}, &syscall.ProcAttr{})
			made <- pid
			_, _ = os.NewFile(3, "the end of exec").Read(make([]byte, 1))
			return pid, err
		})
	}()
	fmt.Println("made", <-made)
}

// killsAndLives is a script that signals its group, and lives on to be inspected.
const killsAndLives = "trap '' USR1; kill -USR1 0; exec sleep 600"

// counter prints every signal it gets and calls the signal's function in do, until it gets a TERM.
func counter(do map[os.Signal]func()) {
	ch := make(chan os.Signal, 100)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGXCPU)
	out := os.Stdout
	if f := os.NewFile(3, "signals"); os.Getenv("TO3") != "" {
		out = f
	}
	fmt.Fprintln(out, "ready", os.Getpid())
	for sig := range ch {
		fmt.Fprintln(out, unix.SignalName(sig.(syscall.Signal)))
		if do[sig] != nil {
			do[sig]()
		}
		if sig == syscall.SIGTERM {
			return
		}
	}
}

// selfStop stops itself once.
func selfStop() {
	fmt.Println("stopping", os.Getpid())
	stopHere()
	fmt.Println("continued")
}

// editor tidies up on Ctrl-Z before it stops, as less and vi do.
func editor() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTSTP)
	fmt.Println("ready", os.Getpid())
	<-ch
	fmt.Println("tidy")
	stopHere()
	fmt.Println("back")
}

// stopHere returns only after this thread has stopped. kill(2), which any thread may handle, would not guarantee that.
func stopHere() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// hog uses 300 MB, and prints its usage.
func hog() {
	mem, err := unix.Mmap(-1, 0, 300<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
	fmt.Println("peak", PeakRSS())
}

// full has no free descriptor to make a child with.
func full() {
	free, err := os.Open("/dev/null")
	if err != nil {
		panic(err)
	}
	limit := unix.Rlimit{}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	s := Catch()
	limit.Cur = uint64(free.Fd())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	c := Command{Args: os.Args[1:]}
	_, err = Start(c, s)
	fmt.Println("no process:", errors.Is(err, ErrNoProcess), os.Getpid())
	fmt.Println(Exec(c, s))
}

// tight prints the results of Headroom with a small limit, as root and as an ordinary user.
func tight() {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NPROC, &limit)
	n, _ := strconv.ParseUint(os.Args[1], 10, 64)
	limit.Cur = n
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		panic(err)
	}
	if os.Getuid() == 0 {
		fmt.Println("root:", Headroom(nil))
		if err := syscall.Setuid(54321); err != nil {
			panic(err)
		}
	}
	fmt.Println("user:", Headroom(nil))
}

// inPlace becomes the job.
func inPlace() {
	fmt.Println("pid", os.Getpid())
	fmt.Println(Exec(Command{Args: os.Args[1:], Env: []string{role + "=" + os.Getenv(nextRole), "A=b"}}, Catch()))
	os.Exit(125)
}

// wrapped is a running agent.
type wrapped struct {
	*clitest.Process
	result string // the file for the job's status
}

// command prepares the test binary in a role, with the job's role and arguments.
func command(t *testing.T, part, next string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	// The race detector would make each process sleep for a second at its end.
	cmd.Env = append(os.Environ(), role+"="+part, nextRole+"="+next, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	return cmd
}

// start runs an agent.
func start(t *testing.T, cmd *exec.Cmd) *wrapped {
	t.Helper()
	file := filepath.Join(t.TempDir(), "status")
	cmd.Env = append(cmd.Env, result+"="+file)
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	w := &wrapped{clitest.StartProcess(t, cmd), file}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return w
}

// skipTo reads lines up to one that begins with prefix, and returns it and the number of lines before it.
func (w *wrapped) skipTo(prefix string) (line string, before int) {
	w.T.Helper()
	for line = w.Next(); !strings.HasPrefix(line, prefix); line = w.Next() {
		w.T.Logf("line %q, want one with the prefix %q", line, prefix)
		before++
	}
	return line, before
}

// end waits for the agent and returns its exit code and the job's status.
func (w *wrapped) end() (code int, st Status) {
	w.T.Helper()
	o, rest := w.End()
	w.T.Logf("last lines %q", rest)
	return o.Code, readStatus(w.T, w.result)
}

// wantEnd waits for the agent, checks its exit code and the signal that ended the job, and returns the job's status.
func (w *wrapped) wantEnd(code int, signal string) Status {
	w.T.Helper()
	got, st := w.end()
	if got != code || st.ExitCode != code || st.Signal != signal {
		w.T.Errorf("exit code %d, status %+v; want exit code %d and signal %q", got, st, code, signal)
	}
	return st
}

// readStatus reads a file that an agent wrote.
func readStatus(t testing.TB, file string) (st Status) {
	t.Helper()
	check.Must(t, json.Unmarshal([]byte(clitest.Read(t, file)), &st))
	return st
}

// run wraps a shell script and returns its exit code and status.
func run(t *testing.T, script string) (int, Status) {
	t.Helper()
	return start(t, command(t, "agent", "", "sh", "-c", script)).end()
}

// isDead reports whether a process is a zombie or gone.
func isDead(pid int) bool {
	state := clitest.ProcessState(pid)
	return state == "" || state == "Z"
}

// parentOf returns a process's parent; 0 if it is unknown.
func parentOf(pid int) int {
	p, _ := procfile.ReadProcess(pid)
	return p.Parent
}
