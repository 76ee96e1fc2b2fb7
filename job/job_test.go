//go:build linux && (amd64 || arm64)

package job

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

func TestJob_ReportsExitCodeAndSignal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script, signal string
		code           int
	}{
		{"exit 0", "", 0}, {"exit 1", "", 1}, {"exit 7", "", 7}, {"exit 125", "", 125}, {"exit 126", "", 126},
		{"exit 127", "", 127}, {"exit 255", "", 255},
		{"kill -TERM $$", "SIGTERM", 143}, {"kill -KILL $$", "SIGKILL", 137}, {"kill -SEGV $$", "SIGSEGV", 139},
		{"kill -INT $$", "SIGINT", 130}, {"kill -PIPE $$", "SIGPIPE", 141}, {"kill -40 $$", "SIGRTMIN+6", 168},
	} {
		code, st := run(t, c.script)
		if code != c.code || st.ExitCode != c.code || st.Signal != c.signal || st.FromTerminal {
			t.Errorf("%s: exit code %d, status %+v, want exit code %d and signal %q",
				c.script, code, st, c.code, c.signal)
		}
		if st.PID == 0 || !st.End.After(st.Start) || st.Usage.MaxRSS == 0 || st.Usage.MaxRSSFloor == 0 || st.Err != nil {
			t.Errorf("%s: status %+v, want PID, times, MaxRSS and floor set, and no error", c.script, st)
		}
	}
}

// A script sees the same descriptors, limits, signal state and arguments with an agent as without one.
func TestJob_InheritsSameStateAsWithoutAgent(t *testing.T) {
	t.Parallel()
	look := `for fd in 0 1 2 9; do readlink /proc/self/fd/$fd; done; cat <&9
		ls /proc/self/fd | wc -l; ulimit -S -n; ulimit -H -n; umask; cut -d' ' -f5-8 /proc/self/stat
		grep -E '^Sig(Blk|Ign|Cgt)|^Shd|^CapEff|^Seccomp' /proc/self/status; cat /proc/self/oom_score_adj; echo $0 $1 "$2"`
	for _, setup := range []string{"", "trap '' HUP; ", "trap '' INT HUP TSTP; ", "umask 077; ulimit -S -n 50; "} {
		var got [2]string
		for i, wrapper := range []string{`exec sh -c "$1" a b 'c d'`, `exec "$0" sh -c "$1" a b 'c d'`} {
			dir := t.TempDir()
			nine := filepath.Join(dir, "nine")
			check.Must(t, os.WriteFile(nine, []byte("inherited\n"), 0o600))
			cmd := command(t, "agent", "", "-c", setup+"exec 9<"+nine+"; "+wrapper, os.Args[0], look)
			cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
			in := check.Value(os.Open("/dev/zero"))(t)
			defer in.Close()
			out := check.Value(os.Create(filepath.Join(dir, "out")))(t)
			defer out.Close()
			cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
			check.Must(t, cmd.Run())
			text, _ := os.ReadFile(out.Name())
			got[i] = strings.ReplaceAll(string(text), dir, "DIR")
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("%q: without us (-), with us (+):\n%s", setup, diff)
		}
		if !strings.Contains(got[1], "inherited\n") {
			t.Errorf("%q: the job did not read \"inherited\" from descriptor 9:\n%s", setup, got[1])
		}
	}
}

func TestJob_SharesAgentsPipes(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "", "cat")
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	cmd.Stdin = bytes.NewReader(data)
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, data) {
		t.Errorf("cat wrote %d bytes, error %v, want its input of %d bytes", len(out), err, len(data))
	}
	// As without us, yes is killed by SIGPIPE when its reader closes.
	cmd = command(t, "agent", "", "yes")
	out := check.Value(cmd.StdoutPipe())(t)
	check.Must(t, cmd.Start())
	if _, err := io.ReadFull(out, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) {
		t.Errorf("yes | head: exit code %d, want 141", code)
	}
}

func TestCommand_EnvReplacesKeysInPlace(t *testing.T) {
	t.Setenv("JOB_A", "1")
	t.Setenv("JOB_B", "2")
	env := Command{Env: []string{"JOB_A=new=x", "JOB_C="}}.environ()
	got := slices.DeleteFunc(env, func(e string) bool { return !strings.HasPrefix(e, "JOB_") })
	if diff := cmp.Diff([]string{"JOB_A=new=x", "JOB_B=2", "JOB_C="}, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// searchCase is a name, a PATH, and the expected result.
type searchCase struct {
	name, path string
	code       int
	err        error
	text       string
}

func searchCases(two, usual string) []searchCase {
	return []searchCase{
		{"later", usual, 5, nil, ""}, {"plain", usual, 6, nil, ""}, {"mixed", usual, 4, nil, ""}, {"empty", usual, 0, nil, ""},
		{"both", usual, 9, nil, ""}, {two + "/plain", "", 6, nil, ""}, {"true", "unset", 0, nil, ""},
		{"here", two + ":", 8, nil, ""}, {"here", ":" + two, 8, nil, ""}, {"./here", "/", 8, nil, ""},
		{"here", two, 0, ErrNotFound, ""}, {"", usual, 0, ErrNotFound, ""}, {"./no", usual, 0, ErrNotFound, ""},
		{"denied", usual, 0, ErrNotExecutable, "permission denied"}, {"dir", usual, 0, ErrNotExecutable, "directory"},
		{two + "/dir", "", 0, ErrNotExecutable, "directory"}, {"binary", usual, 0, ErrNotExecutable, "format"},
		{"orphan", usual, 0, ErrNotFound, "interpreter"}, {"./denied/x", "", 0, ErrNotExecutable, "not a directory"},
		{"/dev/null", "", 0, ErrNotExecutable, ""},
	}
}

func TestStart_SearchesPathAsExecvp(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	clitest.Write(t, one+"/denied", "exit 1", 0o644)
	clitest.Write(t, one+"/later", "exit 1", 0o644)
	for path, text := range map[string]string{
		two + "/later": "#!/bin/sh\nexit 5", two + "/plain": "echo \"$0 $1\" >/dev/null; exit 6", two + "/empty": "",
		two + "/mixed": "MZ='\n\x00\x00'\nexit 4", two + "/binary": "\x01\x02\x00\x03", two + "/both": "#!/bin/sh\nexit 9",
		one + "/both": "#!/no/such/interpreter\n", two + "/orphan": "#!/no/such/interpreter\n", one + "/here": "#!/bin/sh\nexit 8",
	} {
		clitest.Write(t, path, text, 0o755)
	}
	check.Must(t, os.Mkdir(two+"/dir", 0o755))
	t.Chdir(one)
	for _, c := range searchCases(two, one+":"+two) {
		t.Setenv("PATH", c.path)
		if c.path == "unset" {
			os.Unsetenv("PATH")
		}
		j, err := Start(Command{Args: []string{c.name, "arg"}}, nil)
		if !errors.Is(err, c.err) || err != nil && (c.err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%q in %q: error %v, want %v %q", c.name, c.path, err, c.err, c.text)
		}
		if err != nil {
			continue
		}
		if st := j.Wait(); st.ExitCode != c.code {
			t.Errorf("%q in %q: exit code %d, want %d", c.name, c.path, st.ExitCode, c.code)
		}
		if file, err := Resolve(c.name); err != nil || filepath.Base(file) != filepath.Base(c.name) {
			t.Errorf("Resolve(%q) = %q, %v; want base name %q, nil", c.name, file, err, filepath.Base(c.name))
		}
	}
}

// The kernel offers SIGCHLD first to the thread that made the job, so no other goroutine, not even the caller's, runs
// on that thread: it must never wait for a disk.
func TestStart_JobIsNotChildOfCallersThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	file := "/proc/self/task/" + strconv.Itoa(unix.Gettid()) + "/children"
	if _, err := os.Stat(file); err != nil {
		testenv.SkipOrFail(t, "needs a kernel with CONFIG_PROC_CHILDREN, which lists the children of a thread")
	}

	s := Catch()
	defer s.Stop()
	j := check.Value(Start(Command{Args: []string{"sleep", "600"}}, s))(t)
	ours, err := os.ReadFile(file)
	if err != nil || slices.Contains(strings.Fields(string(ours)), strconv.Itoa(j.PID())) {
		t.Errorf("children of the caller's thread: %q, %v; want a list without the job %d", ours, err, j.PID())
	}
	if err := j.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	j.Wait()
}

func TestStart_RefusesCommandWithoutName(t *testing.T) {
	if _, err := Start(Command{}, nil); err == nil {
		t.Error("Start started a command without a name, want an error")
	}
	if err := Exec(Command{}, nil); err == nil {
		t.Error("Exec of a command without a name returned nil, want an error")
	}
}

func TestJob_CountsOrphans(t *testing.T) {
	t.Parallel()
	// The job orphans a child that uses the CPU, and runs until that child has been reaped, which only we can have
	// done.
	pid := filepath.Join(t.TempDir(), "pid")
	_, st := run(t, `sh -c "sh -c 'i=0; while [ \$i -lt 300000 ]; do i=\$((i+1)); done' & echo \$! >`+pid+`"
		while [ -d /proc/$(cat `+pid+`) ]; do sleep 0.01; done; exit 4`)
	if st.ExitCode != 4 || st.Orphans != 1 || st.Usage.UserSeconds < 0.05 {
		t.Errorf("status %+v, want exit code 4, one orphan and at least 0.05 s of user time", st)
	}
}

// A helper with a hanging exec delays neither signals nor the job's end. Until its process ID is known, only the job is
// reaped; after that, all children are.
func TestJob_HangingHelperDelaysNeitherSignalsNorEnd(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"until the job ends", "for a while"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := filepath.Join(t.TempDir(), "begin")
			cmd := command(t, "hung helper", "", "sh", "-c", `while [ ! -e `+begin+` ]; do sleep 0.01; done
				trap 'exit 5' TERM; sh -c "sleep 600 & echo orphan \$!"; while :; do sleep 0.01; done`)
			r, hung := clitest.Pipe(t)
			cmd.ExtraFiles = []*os.File{r}
			w := start(t, cmd)
			r.Close()
			helper := w.PID("made")
			check.Must(t, os.WriteFile(begin, nil, 0o600))
			orphan := w.PID("orphan")
			clitest.WaitUntil(t, "the agent has adopted the orphan", func() bool { return parentOf(orphan) == cmd.Process.Pid })
			_ = unix.Kill(orphan, unix.SIGKILL)
			zombie := func(pid int) bool { return clitest.ProcessState(pid) == "Z" }
			clitest.WaitUntil(t, "helper and orphan are zombies", func() bool { return zombie(helper) && zombie(orphan) })
			orphans := 0
			if name == "for a while" {
				hung.Close()
				clitest.WaitUntil(t, "helper and orphan are reaped", func() bool { return clitest.ProcessState(helper)+clitest.ProcessState(orphan) == "" })
				orphans = 1
			} else if time.Sleep(50 * time.Millisecond); !zombie(helper) || !zombie(orphan) {
				t.Errorf("zombies: helper %v, orphan %v; want both until the fork returns", zombie(helper), zombie(orphan))
			}
			w.Signal(syscall.SIGTERM)
			if st := w.wantEnd(5, ""); st.Orphans != orphans || st.Err != nil {
				t.Errorf("status %+v, want %d orphans and no error", st, orphans)
			}
		})
	}
}

// The process ID of a reaped helper may be reused by the job.
func TestFamily_ForgetsReapedHelper(t *testing.T) {
	f := &family{foreign: []int{5, 7}, helpers: []int{7}}
	j := &Job{family: f}
	if !j.IsForeign(7) || !f.forget(7) || j.IsForeign(7) || f.forget(7) || !j.IsForeign(5) || len(f.helpers) != 0 {
		t.Errorf("after forget(7): foreign %v, helpers %v; want [5] and none", f.foreign, f.helpers)
	}
}

// The job has ended completely when all remaining children are foreign. A daemon is left alone.
func TestJob_AllEndedIsFalseWhileDaemonRuns(t *testing.T) {
	t.Parallel()
	for script, over := range map[string]string{
		"echo process $$; exit 3": "true", `sleep 600 >/dev/null 2>&1 & echo process $!; exit 3`: "false",
	} {
		w := start(t, command(t, "helper", "", "sh", "-c", script))
		pid, daemon := w.PID("process"), over == "false"
		if daemon {
			defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
		}
		w.Expect("over " + over)
		if st := w.wantEnd(3, ""); st.Orphans != 0 || st.End.Sub(st.Start) >= 10*time.Minute {
			t.Errorf("%q: status %+v, want no orphans, and an end before the daemon's", script, st)
		}
		if runs := clitest.ProcessState(pid) != ""; runs != daemon {
			t.Errorf("%q: process %d still runs: %v, want %v", script, pid, runs, daemon)
		}
	}
}

// An orphan that is dead when the job ends is counted, even while a helper is being forked.
func TestJob_CountsDeadOrphanWhileHelperStarts(t *testing.T) {
	t.Parallel()
	cmd := command(t, "hung helper", "", "sh", "-c", `echo job $$; sh -c "sleep 600 & echo orphan \$!"; read x; exit 3`)
	r, hung := clitest.Pipe(t)
	goOn := check.Value(cmd.StdinPipe())(t)
	cmd.ExtraFiles = []*os.File{r}
	w := start(t, cmd)
	r.Close()
	lines := map[string]int{}
	for range 3 { // the line "made" may come at any time
		word, pid, _ := strings.Cut(w.Next(), " ")
		lines[word], _ = strconv.Atoi(pid)
	}
	orphan := lines["orphan"]
	clitest.WaitUntil(t, "the agent has adopted the orphan", func() bool { return parentOf(orphan) == cmd.Process.Pid })
	_ = unix.Kill(orphan, unix.SIGKILL)
	clitest.WaitUntil(t, "the orphan is dead", func() bool { return isDead(orphan) })
	goOn.Close()
	clitest.WaitUntil(t, "the job is reaped", func() bool { return clitest.ProcessState(lines["job"]) == "" })
	hung.Close()
	if st := w.wantEnd(3, ""); st.Orphans != 1 {
		t.Errorf("status %+v, want one orphan", st)
	}
}

func TestUsage_MaxRSSEqualsPeakOfJob(t *testing.T) {
	t.Parallel()
	w := start(t, command(t, "agent", "hog", os.Args[0]))
	line, _ := w.skipTo("peak ")
	_, st := w.end()
	want, _ := strconv.ParseFloat(strings.Fields(line)[1], 64)
	if got := float64(st.Usage.MaxRSS); got < 0.99*want || got > 1.01*want || want < 300<<20 {
		t.Errorf("MaxRSS %.0f, want within 1 %% of the job's own %.0f, at least 300 MiB", got, want)
	}
	gnu, err := exec.LookPath("/usr/bin/time")
	if err != nil || testing.Short() {
		t.Log("GNU time is not installed, so MaxRSS is not compared with it: apt-get install time")
		return
	}
	cmd := command(t, "hog", "", "-f", "%M", os.Args[0])
	cmd.Path, cmd.Args[0] = gnu, gnu
	var said strings.Builder
	cmd.Stderr = &said
	check.Must(t, cmd.Run())
	kb, _ := strconv.ParseFloat(strings.TrimSpace(said.String()), 64)
	if got := float64(st.Usage.MaxRSS) / 1024; got < 0.99*kb || got > 1.01*kb {
		t.Errorf("MaxRSS %.0f KiB, want within 1 %% of GNU time's %.0f KiB", got, kb)
	}
}

func TestUsage_MaxRSSFloorCoversSmallJob(t *testing.T) {
	t.Parallel()
	_, st := start(t, command(t, "agent", "", "true")).end()
	if st.Usage.MaxRSS > st.Usage.MaxRSSFloor {
		t.Errorf("usage of true: %+v, want at most MaxRSSFloor as MaxRSS", st.Usage)
	}
}

// The job keeps running after the agent is killed.
func TestJob_SurvivesKilledAgent(t *testing.T) {
	t.Parallel()
	cmd := command(t, "agent", "", "sh", "-c", "echo pid $$; read x; echo $x")
	in := check.Value(cmd.StdinPipe())(t)
	w := start(t, cmd)
	w.PID("pid")
	w.Signal(syscall.SIGKILL)
	if _, err := cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "survived\n"); err != nil {
		t.Fatal(err)
	}
	w.skipTo("survived")
}

func TestExec_RunsCommandIfNoChildCanBeMade(t *testing.T) {
	t.Parallel()
	out, err := command(t, "full", "", "sh", "-c", "echo in place $$").CombinedOutput()
	lines := strings.Fields(string(out))
	if err != nil || len(lines) != 7 || lines[2] != "true" || lines[3] != lines[6] {
		t.Errorf("output %q, error %v; want the command in place, with the agent's process ID", out, err)
	}
}

func TestExec_ReplacesAgent(t *testing.T) {
	t.Parallel()
	out, err := command(t, "inplace", "", "sh", "-c", "echo pid $$ $A").CombinedOutput()
	f := strings.Fields(string(out))
	if err != nil || len(f) != 5 || f[1] != f[3] || f[4] != "b" {
		t.Errorf("output %q, error %v; want the agent's process ID twice, then b", out, err)
	}
	out, _ = command(t, "inplace", "", "no-such-command").CombinedOutput()
	if !strings.Contains(string(out), "not found") {
		t.Errorf("output %q for a command that does not exist, want \"not found\"", out)
	}
}

func TestHeadroom_ChecksUserLimit(t *testing.T) {
	t.Parallel()
	out, err := command(t, "headroom", "", "5").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "user: limit RLIMIT_NPROC") {
		t.Errorf("RLIMIT_NPROC 5: output %q, error %v; want an error for the user", out, err)
	}
	if os.Getuid() == 0 && !strings.Contains(string(out), "root: <nil>") {
		t.Errorf("output %q, want \"root: <nil>\"", out)
	}
	out, err = command(t, "headroom", "", "4000").CombinedOutput()
	if os.Getuid() == 0 && (err != nil || !strings.Contains(string(out), "user: <nil>")) {
		t.Errorf("RLIMIT_NPROC 4000: output %q, error %v; want \"user: <nil>\"", out, err)
	}
}

func TestHeadroom_ChecksGroupLimits(t *testing.T) {
	t.Parallel()
	far := cgroup.TaskLimit{Name: "far/pids.max", Max: 1 << 40, Used: 3}
	if err := Headroom([]cgroup.TaskLimit{far, {Name: "a/pids.max", Max: 100, Used: 84}}); err != nil {
		t.Error(err)
	}
	err := Headroom([]cgroup.TaskLimit{far, {Name: "a/pids.max", Max: 100, Used: 85}})
	if err == nil || err.Error() != "limit a/pids.max: 85 of 100 processes and threads used" {
		t.Errorf("Headroom with 15 free tasks: error %v, want one with the name of the limit", err)
	}
	if err := Headroom(nil); err != nil {
		t.Error(err)
	}
}
