package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/testenv"
)

// treeRole is the environment variable that selects a role of the test binary.
const treeRole = "PERFAGENT_PROCESS_ROLE"

func TestMain(m *testing.M) {
	part := strings.Fields(os.Getenv(treeRole))
	if len(part) == 0 {
		os.Exit(m.Run())
	}
	n, _ := strconv.Atoi(part[len(part)-1])
	switch part[0] {
	case "burn":
		treeBurn(n)
	case "linger": // uses CPU time, prints a line, and runs until its input ends
		treeBurn(n)
		treeReady("")
	case "middle":
		treeMiddle()
	case "thread":
		treeThread()
	case "zombie":
		treeZombie()
	case "leaderless":
		treeLeaderless(n)
	case "hold":
		treeHold(part[1], n)
	case "read":
		treeReader(part[1], part[2])
	case "mount":
		treeMount(part[1], part[2])
	}
}

// treeReady prints "ready" and the text for the test, and waits until the test closes the input.
func treeReady(text string) {
	fmt.Println("ready" + text)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// treeMust ends the process of a role if err is not nil.
func treeMust(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "part of a test:", err)
		os.Exit(1)
	}
}

// treeValue ends the process of a role if err is not nil, and returns v otherwise.
func treeValue[T any](v T, err error) T {
	treeMust(err)
	return v
}

// treeSelf returns a command that runs the test binary in the role part.
func treeSelf(part string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), treeRole+"="+part)
	cmd.Stderr = os.Stderr
	return cmd
}

// treeBurn uses the CPU until this process has used ms milliseconds of CPU time.
func treeBurn(ms int) {
	for procfile.Clock(unix.CLOCK_PROCESS_CPUTIME_ID) < time.Duration(ms)*time.Millisecond {
	}
}

// treeCPU returns the user and system time of an rusage, in seconds.
func treeCPU(u *syscall.Rusage) float64 {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// treeMiddle starts a daemon in a separate session that inherits this process's output and input, and then sleeps.
func treeMiddle() {
	cmd := treeSelf("linger 150")
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	treeMust(cmd.Start())
	time.Sleep(10 * time.Minute) // the test kills it earlier
}

// treeThread starts a child from a thread other than the first.
func treeThread() {
	runtime.LockOSThread()
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		for unix.Gettid() == os.Getpid() {
			treeMust(fmt.Errorf("on the first thread, which the main goroutine holds"))
		}
		cmd := treeSelf("linger 1")
		cmd.Stdin = os.Stdin
		out := treeValue(cmd.StdoutPipe())
		treeMust(cmd.Start())
		treeValue(bufio.NewReader(out).ReadString('\n'))
		done <- cmd.Process.Pid
	}()

	treeReady(fmt.Sprintf(" %d", <-done))
}

// treeTouched returns memory with all pages resident.
func treeTouched(bytes int) []byte {
	held := make([]byte, bytes)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	return held
}

// treeLeaderless allocates mib MiB of memory, ends its first thread, and continues to run in others.
func treeLeaderless(mib int) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		treeMust(fmt.Errorf("the main goroutine is not on the first thread"))
	}
	held := treeTouched(mib << 20)

	go func() {
		var state byte
		for ; state != 'Z'; time.Sleep(time.Millisecond) {
			state = treeStat(os.Getpid()).state
		}
		fmt.Println("ready")
		if _, err := os.Stdin.Read(make([]byte, 1)); err == nil { // the test wants it to grow
			held = append(held, treeTouched(2*mib<<20)...)
			treeReady("")
		}
		runtime.KeepAlive(held)
		os.Exit(0)
	}()

	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // ends only this thread
}

// treeStat returns the stat of a process.
func treeStat(pid int) stat {
	data := treeValue(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))
	s := treeValue(parseStat(data, int32(pid)))
	return s
}

// treeZombie starts a child and, once it has ended, keeps it as a zombie.
func treeZombie() {
	cmd := treeSelf("burn 300")
	treeMust(cmd.Start())
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &unix.Siginfo{}, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			treeMust(err)
			break
		}
	}
	treeReady(fmt.Sprintf(" %d", cmd.Process.Pid))
}

// treeReader reads the tree of process root and prints the result. If root is 0, it starts three children and reads its
// own tree.
func treeReader(proc, root string) {
	pid := treeValue(strconv.Atoi(root))
	if pid == 0 {
		pid = os.Getpid()
		for range 3 {
			cmd := treeSelf("linger 1")
			treeValue(cmd.StdinPipe())
			out := treeValue(cmd.StdoutPipe())
			treeMust(cmd.Start())
			treeValue(bufio.NewReader(out).ReadString('\n'))
		}
	}

	tree := NewTree(Options{Proc: proc, Root: pid})
	u, err := tree.Read()
	u.Failed, err = nil, treeFailures(u, err)
	fmt.Printf("%+v, init seen: %v, %q\n", u, findProc(tree.all, 1) != nil, fmt.Sprint(err))
}

func treeFailures(u TreeUsage, err error) error {
	for _, what := range []string{"stat", "memory", "io"} {
		if why := u.Failed[what]; why != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", what, why))
		}
	}
	return err
}

// treeMount mounts a procfs at dir in its own mount namespace, and reads it as user nobody.
func treeMount(dir, hidepid string) {
	treeMust(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	treeMust(unix.Mount("proc", dir, "proc", 0, "hidepid="+hidepid))
	cmd := treeSelf("read " + dir + " 0")
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = treeNobody()
	treeMust(cmd.Run())
}

func treeNobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// treePatience is the timeout for an event that a test waits for.
const treePatience = 2 * time.Minute

// A treeJob is a program that was started for a test. It prints lines such as "ready" for the test, and ends when its
// standard input is closed.
type treeJob struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Reader
}

func treeStart(tb testing.TB, cmd *exec.Cmd) *treeJob {
	tb.Helper()
	cmd.Stderr = os.Stderr
	input := check.Value(cmd.StdinPipe())(tb)
	out := check.Value(cmd.StdoutPipe())(tb)
	must(tb, cmd.Start())
	j := &treeJob{cmd, input, bufio.NewReader(out)}
	tb.Cleanup(func() { j.end() })
	return j
}

// line returns the next line of the program's output.
func (j *treeJob) line(tb testing.TB) string {
	tb.Helper()
	timer := time.AfterFunc(2*treePatience, func() { _ = j.cmd.Process.Kill() }) // unblocks the read
	defer timer.Stop()
	s, err := j.lines.ReadString('\n')
	if err != nil {
		tb.Fatalf("read a line of the job: got %q, error %v", s, err)
	}
	return s[:len(s)-1]
}

// ready waits until the program reports that it is ready.
func (j *treeJob) ready(tb testing.TB) {
	tb.Helper()
	if got := j.line(tb); got != "ready" {
		tb.Fatalf("the job printed %q, want ready", got)
	}
}

// end closes the program's input, waits for its end, and returns its usage, including reaped children.
func (j *treeJob) end() *syscall.Rusage {
	if j.cmd.ProcessState == nil {
		_ = j.input.Close()
		timer := time.AfterFunc(treePatience, func() { _ = j.cmd.Process.Kill() })
		defer timer.Stop()
		_ = j.cmd.Wait()
	}
	u, _ := j.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return u
}

// treeSleepers starts n sleeping processes and returns the ID of their parent, a child of this process. They run until
// the test ends, or for five minutes if the test is killed.
func treeSleepers(tb testing.TB, n int) (parent int) {
	tb.Helper()
	script := fmt.Sprintf(`trap : TERM; i=0; while [ $i -lt %d ]; do sleep 300 <&- >&- & i=$((i+1)); done; echo ready; wait; wait`, n)
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	j := treeStart(tb, cmd)
	tb.Cleanup(func() { _ = syscall.Kill(-j.cmd.Process.Pid, syscall.SIGTERM) })
	j.ready(tb)
	return j.cmd.Process.Pid
}

// treeReadFreely ensures that no Read is deferred, however slow the machine is.
func treeReadFreely(t *Tree) {
	at := clockReading{}
	t.clock = func() clockReading {
		at.mono += time.Nanosecond
		return at
	}
}

// treeNear fails the test unless got, in seconds, is within 1 % of want, plus the fractions of ticks that the kernel
// truncates in the four times of each of n processes.
func treeNear(tb testing.TB, what string, got, want float64, n int) {
	tb.Helper()
	check.True(tb, math.Abs(got-want) <= want/100+0.04*float64(n),
		"%s: CPU time = %.3f s, want the kernel's %.3f s", what, got, want)
	tb.Logf("%s: CPU time = %.3f s, the kernel's is %.3f s", what, got, want)
}

func treeOwn(tb testing.TB) *Tree {
	t := NewTree(Options{Root: os.Getpid()})
	treeReadFreely(t)
	tb.Cleanup(t.Close)
	return t
}

// treeShort is a shell loop that uses about 10 ms of CPU time.
const treeShort = `i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done`

// The CPU time of 200 children of 10 ms each is counted while their parent lives, and after the parent was reaped.
func TestTree_CountsShortChildren(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	tree := treeOwn(t)
	j := treeStart(t, exec.Command("sh", "-c", "n=0; while [ $n -lt 200 ]; do ("+treeShort+"); n=$((n+1)); done; echo ready; read x"))
	j.ready(t)
	u := treeRead(t, tree)
	check.True(t, u.Processes == 1 && u.Failed == nil, "usage %+v, want 1 process and no failures", u)
	truth := treeCPU(j.end()) // the parent did nothing else
	check.True(t, truth >= 0.5, "the children used %.3f s of CPU time, want at least 0.5", truth)
	treeNear(t, "with its parent", u.CPUSeconds, truth, 1)
	treeNear(t, "with reaped processes", treeRead(t, tree).CPUSeconds+truth, truth, 0)
}

// The root reaps each of 200 children and adds its usage.
func TestTree_CountsChildrenReapedByRoot(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	tree := treeOwn(t)
	var before, after syscall.Rusage
	treeMust(syscall.Getrusage(syscall.RUSAGE_CHILDREN, &before))
	sum, most := 0.0, 0.0
	for range 200 {
		j := treeStart(t, exec.Command("sh", "-c", treeShort+"; echo ready; read x"))
		j.line(t)
		u := treeRead(t, tree)
		most = max(most, sum+u.CPUSeconds)
		sum += treeCPU(j.end())
	}

	treeMust(syscall.Getrusage(syscall.RUSAGE_CHILDREN, &after))
	truth := treeCPU(&after) - treeCPU(&before)
	treeNear(t, "after all children were reaped", sum+treeRead(t, tree).CPUSeconds, truth, 0)
	check.True(t, most <= truth && most >= truth*0.98-0.05,
		"CPU time before the last child was reaped = %.3f s, want nearly %.3f s", most, truth)
}

func TestTree_FindsChildOfAThread(t *testing.T) {
	tree := treeOwn(t)
	j := treeStart(t, treeSelf("thread"))
	child := check.Value(strconv.Atoi(strings.TrimPrefix(j.line(t), "ready ")))(t)
	treeWant(t, tree, min(j.cmd.Process.Pid, child), max(j.cmd.Process.Pid, child))
	first := tree.jobProcs[0]
	check.True(t, first.rss() != 0 && first.start != 0, "first process %+v, want resident pages and a start time", first)
}

// treeAdopt makes this process adopt orphaned descendants until the test ends.
func treeAdopt(t *testing.T) {
	treeMust(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	t.Cleanup(func() { treeMust(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)) })
}

// A daemon is found whether its parent ended before or after the first scan.
func TestTree_FindsDaemon(t *testing.T) {
	for _, adopted := range []bool{true, false} {
		t.Run(fmt.Sprintf("adopted by the root %v", adopted), func(t *testing.T) {
			if adopted {
				treeAdopt(t)
			}
			tree := treeOwn(t)
			j := treeStart(t, treeSelf("middle"))
			j.ready(t)
			if !adopted {
				u := treeRead(t, tree)
				check.True(t, u.Processes == 2, "usage before the parent ended %+v, want 2 processes", u)
			}
			treeMust(j.cmd.Process.Kill())
			j.cmd.ProcessState, _ = j.cmd.Process.Wait() // cmd.Wait would close the daemon's input
			u := treeRead(t, tree)
			check.True(t, u.Processes == 1 && u.CPUSeconds >= 0.11 && u.MemoryKind == "pss" && len(tree.jobProcs) == 1,
				"usage %+v of %d processes, want only the daemon with its CPU time and PSS", u, len(tree.jobProcs))
			if t.Failed() {
				t.FailNow() // the daemon is waited for below
			}
			treeMust(j.input.Close()) // ends the daemon
			if adopted {
				var status syscall.WaitStatus
				check.Value(syscall.Wait4(int(tree.jobProcs[0].pid), &status, 0, nil))(t)
			}
			for deadline := time.Now().Add(treePatience); treeRead(t, tree).Processes != 0; {
				if time.Now().After(deadline) {
					t.Fatal("the daemon did not end after its input was closed")
				}
			}
		})
	}
}

func TestTree_ZombieHasOnlyCPUTime(t *testing.T) {
	tree := treeOwn(t)
	j := treeStart(t, treeSelf("zombie"))
	zombie := check.Value(strconv.Atoi(strings.TrimPrefix(j.line(t), "ready ")))(t)
	u := treeRead(t, tree)
	dead := findProc(tree.all, int32(zombie)) // its ID may be below its parent's
	check.True(t, u.Processes == 1 && u.CPUSeconds >= 0.28 && len(tree.jobProcs) == 2 && !treeFailed(u) && dead != nil && dead.rss() == 0,
		"usage %+v of %d processes, want 1 living process and 1 zombie with CPU time but no memory", u, len(tree.jobProcs))
}

// treePython returns the Python interpreter that some jobs need.
func treePython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("PERFAGENT_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	return testenv.NeedsTool(t, python, "apt-get install python3, or make test")
}

// Memory of 300 MB that four processes share by copy-on-write counts once.
func TestTree_CountsSharedMemoryOnce(t *testing.T) {
	python := treePython(t)
	tree := treeOwn(t)
	j := treeStart(t, exec.Command(python, "-c", `
import os, sys
block = b"x" * 300_000_000
pipes = [os.pipe() for _ in range(3)]
for r, w in pipes:
    if os.fork() == 0:
        os.write(w, b"x")
        sys.stdin.read()
        os._exit(0)
for r, w in pipes:
    os.read(r, 1)
print("ready", flush=True)
sys.stdin.read()
`))

	j.ready(t)
	u := treeRead(t, tree)
	rss := 0.0
	for _, p := range tree.jobProcs {
		rss += float64(p.rss())
	}
	t.Logf("PSS %.1f MB, RSS %.1f MB", u.Memory/1e6, rss/1e6)
	check.True(t, u.Processes == 4 && u.MemoryKind == "pss" && u.Memory >= 300e6 && u.Memory <= 360e6 && rss >= 1200e6 && u.Failed == nil,
		"usage %+v, RSS %.0f bytes; want 4 processes, a PSS of 300 to 360 MB and an RSS of 1200 MB", u, rss)
}

// Two processes share 200 MB by copy-on-write until one of them writes to all of it. Their resident sizes stay the
// same, but the memory doubles.
func TestTree_NoticesCopyOnWrite(t *testing.T) {
	python := treePython(t)
	tree := treeOwn(t)
	j := treeStart(t, exec.Command(python, "-c", `
import os, sys
block = bytearray(200_000_000)
for i in range(0, len(block), 4096): block[i] = 1
child = os.fork()
print("shared", flush=True) if child else None
if child == 0:
    sys.stdin.buffer.raw.read(1)
    for i in range(0, len(block), 4096): block[i] = 2
    print("apart", flush=True)
    sys.stdin.buffer.raw.read(1)
    os._exit(0)
os.waitpid(child, 0)
`))

	for i, want := range []struct {
		line  string
		least float64
	}{{"shared", 200e6}, {"apart", 400e6}} {
		if got := j.line(t); got != want.line {
			t.Fatalf("the job printed %q, want %q", got, want.line)
		}
		u := treeRead(t, tree)
		t.Logf("%s: PSS %.1f MB, %d resident pages", want.line, u.Memory/1e6, tree.resident().pages)
		check.True(t, u.Processes == 2 && u.MemoryKind == "pss" && u.Memory >= want.least && u.Memory <= want.least*1.05+20e6,
			"%s: usage %+v, want 2 processes and a PSS of about %.0f bytes", want.line, u, want.least)
		if i == 0 {
			check.Value(j.input.Write([]byte("x")))(t)
		}
	}
}

// treeStorm returns a job that forks n processes, half of which are orphaned and adopted.
func treeStorm(n int) *exec.Cmd {
	return exec.Command("sh", "-c", fmt.Sprintf(
		`echo go; i=0; while [ $i -lt %d ]; do ( : & ) & i=$((i+1)); [ $((i %% 40)) -eq 0 ] && wait; done; wait; echo done; read x`, n/2))
}

// While 5,000 processes start and end, no read fails, no process outside the job is counted, and no time is counted
// twice.
func TestTree_CountsNothingTwiceInForkStorm(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	treeAdopt(t)
	tree := treeOwn(t)
	j := treeStart(t, treeStorm(5000))
	var reaped, used, most, seen float64
	var scans, adopted int
	cost := time.Duration(0)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s, err := j.lines.ReadString('\n'); err == nil; s, err = j.lines.ReadString('\n') {
			lines <- strings.TrimSpace(s)
		}
	}()

	deadline := time.After(5 * treePatience)
	for done := false; !done; scans++ {
		n, cpu := treeReap(j.cmd.Process.Pid)
		adopted, reaped = adopted+n, reaped+cpu
		begin := now()
		u := treeRead(t, tree)
		cost += now().cpu - begin.cpu
		if treeFailed(u) || u.Processes > 500 {
			t.Fatalf("usage %+v, want no failures and at most 500 processes", u)
		}
		used, seen = u.CPUSeconds, max(seen, u.Processes)
		most = max(most, reaped+used)
		select {
		case s := <-lines:
			done = s == "done"
		case <-deadline:
			t.Fatal("the fork storm did not end in time")
		default:
		}
	}

	for deadline := time.Now().Add(treePatience); ; {
		n, cpu := treeReap(j.cmd.Process.Pid)
		adopted, reaped = adopted+n, reaped+cpu
		if used = treeRead(t, tree).CPUSeconds; len(tree.jobProcs) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left after the storm", len(tree.jobProcs))
		}
	}

	truth := treeCPU(j.end()) + reaped
	treeNear(t, "with reaped processes", used+reaped, truth, 1)
	check.True(t, most <= truth+0.01, "CPU time = %.3f s, want at most the %.3f s that were used", most, truth)
	t.Logf("%d scans of %.2f ms each, at most %.0f processes seen at once, %d adopted", scans, cost.Seconds()*1e3/float64(scans), seen, adopted)
}

// treeReap waits for the zombies among the children of this process until it meets the child but. It returns their
// number and CPU time in seconds.
func treeReap(but int) (n int, cpu float64) {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
			return n, cpu
		}
		var status syscall.WaitStatus
		var u syscall.Rusage
		pid := int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 16))) // si_pid
		if pid == 0 || pid == but {
			return n, cpu
		}
		if _, err := syscall.Wait4(pid, &status, 0, &u); err != nil {
			return n, cpu
		}
		n++
		cpu += treeCPU(&u)
	}
}

// The times of another user's processes can be read, but not their memory maps and I/O.
func TestTree_ReadsOnlyTimesOfOtherUsersProcesses(t *testing.T) {
	testenv.NeedsRoot(t, "to read as another user")
	cmd := treeSelf("read /proc " + strconv.Itoa(treeSleepers(t, 2)))
	cmd.SysProcAttr = treeNobody()
	got := treeStart(t, cmd).line(t)
	for _, want := range []string{"Processes:2", "MemoryKind:rss", "ReadBytes:NaN", "WriteBytes:NaN", "the PSS of 2 of 2 processes cannot be read",
		"storage bytes and calls of 2 of 2 processes", "/io: permission denied", "/smaps_rollup: permission denied"} {
		check.True(t, strings.Contains(got, want), "output = %q, want it to contain %q", got, want)
	}
}

// The job is found in a procfs that hides other users' processes.
func TestTree_FindsJobDespiteHidePID(t *testing.T) {
	testenv.NeedsRoot(t, "to mount a procfs with hidepid in a mount namespace")

	for hidepid, wants := range map[string][]string{"2": {"init seen: false", `"<nil>"`}, "1": {"the stat of ", "(to read other users' processes, run perfagent as root)"}} {
		t.Run(hidepid, func(t *testing.T) {
			dir := check.Value(os.MkdirTemp("", "perfagent"))(t)
			defer os.Remove(dir)
			cmd := treeSelf("mount " + filepath.Clean(dir) + " " + hidepid)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			got := treeStart(t, cmd).line(t)
			for _, want := range append(wants, "Processes:3", "MemoryKind:pss", "ReadBytes:") {
				check.True(t, strings.Contains(got, want), "output = %q, want it to contain %q", got, want)
			}
		})
	}
}
