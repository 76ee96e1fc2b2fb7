package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/reporter"
)

// longest is how long a test waits for what must happen, and how long any process
// of a test lives.
const longest = 2 * time.Minute

// foreign are the variables that change what perfagent does; tests start without
// them.
var foreign = regexp.MustCompile(`^(PERFAGENT_\w+|CUDA_VISIBLE_DEVICES|SLURM_\w+|PBS_\w+|MLFLOW_\w+|HOST_(PROC|SYS)|NO_COLOR|TERM|E2E_\w+|` +
	`LSB_JOBID|FLUX_JOB_ID|COBALT_JOBID|AWS_BATCH_\w+|SGE_TASK_ID|JOB_ID|GROUP_RANK|JOB_COMPLETION_INDEX|VC_TASK_INDEX)=`)

// testEnv is the environment of a test's processes: ours without what is foreign, and more.
func testEnv(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), foreign.MatchString)
	return append(append(env, "TERM=xterm"), more...)
}

// command prepares a process in a new directory and a process group of its own,
// which is killed when the test ends.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = testEnv("TMPDIR=" + t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = longest
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		}
	})
	return cmd
}

// perfagent prepares perfagent.
func perfagent(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, binary(t), args...)
}

// script prepares a shell script in which $P is perfagent.
func script(t testing.TB, shell, text string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, shell, append([]string{"-c", text, shell}, args...)...)
	cmd.Env = append(cmd.Env, "P="+binary(t))
	return cmd
}

// asPart makes the job that cmd wraps a part of the test binary: the words to wrap
// are added to cmd.
func asPart(cmd *exec.Cmd, name string) *exec.Cmd {
	cmd.Args = append(cmd.Args, os.Args[0])
	cmd.Env = append(cmd.Env, partVariable+"="+name)
	return cmd
}

// outcome is how a process ended.
type outcome struct {
	out, err string
	code     int // -1 = killed by a signal
	dir      string
}

// perform runs a prepared process to its end.
func perform(t testing.TB, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, cmd)
	return outcome{out.String(), stderr.String(), cmd.ProcessState.ExitCode(), cmd.Dir}
}

// wait waits for a started process, and kills one that takes too long.
func wait(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(longest, func() {
		t.Errorf("%v: still running after %v", cmd.Args, longest)
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	})
	defer timer.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

// run runs perfagent to its end.
func run(t testing.TB, args ...string) outcome {
	t.Helper()
	return perform(t, perfagent(t, args...))
}

// want checks an exit code and shows what was said when it is another.
func (o outcome) want(t testing.TB, code int) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d; stderr:\n%s", o.code, code, o.err)
	}
}

// wantLine checks that stderr is one line of ours that contains each of the words.
func (o outcome) wantLine(t testing.TB, words ...string) {
	t.Helper()
	wantLines(t, o.err, 1, 1)
	for _, w := range words {
		if !strings.Contains(o.err, w) {
			t.Errorf("stderr does not name %q:\n%s", w, o.err)
		}
	}
}

// wantLines checks that text is between least and most whole lines of ours.
func wantLines(t testing.TB, text string, least, most int) {
	t.Helper()
	if n := strings.Count(text, "\n"); n < least || n > most || text != "" && !strings.HasSuffix(text, "\n") {
		t.Errorf("%d lines on stderr, want %d to %d:\n%s", n, least, most, text)
	}
	for line := range strings.Lines(text) {
		if !ours.MatchString(line) {
			t.Errorf("a line on stderr does not say that it is ours: %q", line)
		}
	}
	wantPrintable(t, text)
}

// ours is how a line of ours begins.
var ours = regexp.MustCompile(`^((warn|error) )?perfagent: `)

// wantPrintable checks that no control character but the end of a line is there.
func wantPrintable(t testing.TB, text string) {
	t.Helper()
	if bad := regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f\x{80}-\x{9f}]`).FindString(text); bad != "" {
		t.Errorf("a raw control character %q in %q", bad, text)
	}
}

// readReport reads a report file strictly.
func readReport(t testing.TB, path string) *reporter.Report {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) || !bytes.HasSuffix(data, []byte("}\n")) {
		t.Fatalf("%s is not whole:\n%s", path, data)
	}
	validate(t, data)
	r := new(reporter.Report)
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// reportsIn lists the files of all runs in OUT, sorted, relative to it, but for the
// pages of reports.
func reportsIn(t testing.TB, out string) []string {
	t.Helper()
	var paths []string
	runs, _ := os.ReadDir(out) // not there: no run
	for _, r := range runs {
		if !r.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(out, r.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := filepath.Join(r.Name(), f.Name())
			if report, isPage := strings.CutSuffix(name, ".html"); isPage && exists(filepath.Join(out, report+".json")) {
				continue // the page of a report that is listed
			}
			paths = append(paths, name)
		}
	}
	return paths
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// onlyReport reads the one file that is in OUT, which must be a report.
func onlyReport(t testing.TB, out string) (*reporter.Report, string) {
	t.Helper()
	paths := reportsIn(t, out)
	if len(paths) != 1 || filepath.Ext(paths[0]) != ".json" {
		t.Fatalf("in %s there is %q, want one report", out, paths)
	}
	path := filepath.Join(out, paths[0])
	return readReport(t, path), path
}

// report reads the one report under a process' working directory.
func (o outcome) report(t testing.TB) *reporter.Report {
	t.Helper()
	r, _ := onlyReport(t, filepath.Join(o.dir, "perfagent-out"))
	return r
}

// amiss tells of what is missing whether something went wrong. That there is no limit, or
// no group of the job's own, is a matter of the machine; that a job ended at once, of the job.
func amiss(m reporter.Missing) bool {
	return !regexp.MustCompile(`^(no control group limits|others are in the job's control group|there is no control group|` +
		`the control group has no such counter|the job ended before)`).MatchString(m.Why)
}

// lines is a process whose standard output is read line by line.
type lines struct {
	t   testing.TB
	cmd *exec.Cmd
	ch  <-chan string
	err *bytes.Buffer
}

// launch starts a prepared process to be talked with.
func launch(t testing.TB, cmd *exec.Cmd) *lines {
	t.Helper()
	l := &lines{t: t, cmd: cmd, err: new(bytes.Buffer)}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if cmd.Stderr == nil {
		cmd.Stderr = l.err
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	l.ch = scan(r)
	return l
}

// scan yields the lines of a file until its end.
func scan(f *os.File) <-chan string {
	ch := make(chan string, 1000)
	go func() {
		defer close(ch)
		defer f.Close()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			ch <- sc.Text()
		}
	}()
	return ch
}

// next returns the next line.
func (l *lines) next() string {
	l.t.Helper()
	select {
	case line, ok := <-l.ch:
		if !ok {
			l.t.Fatalf("%v: the output ended", l.cmd.Args)
		}
		return line
	case <-time.After(longest):
		l.t.Fatalf("%v: no line within %v", l.cmd.Args, longest)
		return ""
	}
}

// expect wants the next line to be this one.
func (l *lines) expect(line string) {
	l.t.Helper()
	if got := l.next(); got != line {
		l.t.Fatalf("line %q, want %q", got, line)
	}
}

// field reads "word VALUE".
func (l *lines) field(word string) string {
	l.t.Helper()
	line := l.next()
	value, ok := strings.CutPrefix(line, word+" ")
	if !ok {
		l.t.Fatalf("line %q, want %s", line, word)
	}
	return value
}

// pid reads "word PID".
func (l *lines) pid(word string) int {
	l.t.Helper()
	n, err := strconv.Atoi(l.field(word))
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// signal sends to the process id that was started.
func (l *lines) signal(sig syscall.Signal) {
	l.t.Helper()
	if err := unix.Kill(l.cmd.Process.Pid, sig); err != nil {
		l.t.Fatal(err)
	}
}

// end waits for the process and gives the lines that it still wrote.
func (l *lines) end() (outcome, []string) {
	l.t.Helper()
	var rest []string
	timeout := time.After(longest)
	for open := true; open; {
		select {
		case line, ok := <-l.ch:
			if open = ok; ok {
				rest = append(rest, line)
			}
		case <-timeout:
			l.t.Fatalf("%v: the output does not end", l.cmd.Args)
		}
	}
	wait(l.t, l.cmd)
	return outcome{strings.Join(rest, "\n"), l.err.String(), l.cmd.ProcessState.ExitCode(), l.cmd.Dir}, rest
}

// until waits for something that no pipe tells.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > longest {
			t.Fatalf("not within %v: %s", longest, what)
		}
	}
}

// processState is the letter of a process in /proc, "" when it is gone.
func processState(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

// parentOf is the parent of a process.
func parentOf(t testing.TB, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	n, _ := strconv.Atoi(strings.Fields(after)[1])
	return n
}

// ptyTerminal is a pty with something on it.
type ptyTerminal struct {
	t    testing.TB
	cmd  *exec.Cmd
	tty  *os.File
	more chan string
	all  strings.Builder
	text string // not yet expected
}

// onTerminal starts a prepared process as the leader of a session on a new pty.
func onTerminal(t testing.TB, cmd *exec.Cmd) *ptyTerminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	tty := nonblocking(t, master)
	resize(t, tty, 24, 80)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := &ptyTerminal{t: t, cmd: cmd, tty: tty, more: make(chan string, 1000)}
	go func() {
		defer close(m.more)
		for buf := make([]byte, 4096); ; {
			n, err := tty.Read(buf)
			if n > 0 {
				m.more <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		killSession(cmd.Process.Pid)
		_ = tty.Close()
	})
	return m
}

// killSession kills what a shell of ours has left in other groups of its session.
func killSession(leader int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(after); len(f) > 3 && f[3] == strconv.Itoa(leader) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// nonblocking takes the place of a file that package pty has made a blocking one:
// closing that would wait for the read under way, and not hang up.
func nonblocking(t testing.TB, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// resize sets the size of a terminal's window.
func resize(t testing.TB, tty *os.File, rows, columns int) {
	t.Helper()
	conn, err := tty.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	if err := conn.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// expect reads up to and including text, and returns what was before it.
func (m *ptyTerminal) expect(text string) (before string) {
	m.t.Helper()
	timeout := time.After(longest)
	for {
		if before, after, ok := strings.Cut(m.text, text); ok {
			m.text = after
			return before
		}
		select {
		case more, ok := <-m.more:
			if !ok {
				m.t.Fatalf("the terminal closed before %q: %q", text, m.text)
			}
			m.text += more
			m.all.WriteString(more)
		case <-timeout:
			m.t.Fatalf("no %q within %v: %q", text, longest, m.text)
		}
	}
}

// pid reads "word PID".
func (m *ptyTerminal) pid(word string) int {
	m.t.Helper()
	m.expect(word + " ")
	n, err := strconv.Atoi(strings.TrimSpace(m.expect("\n")))
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

// send types text.
func (m *ptyTerminal) send(text string) {
	m.t.Helper()
	if _, err := m.tty.WriteString(text); err != nil {
		m.t.Fatal(err)
	}
}

// end waits for the process and returns all that was on the screen.
func (m *ptyTerminal) end() (screen string, code int) {
	m.t.Helper()
	wait(m.t, m.cmd)
	timeout := time.After(longest)
	for {
		select {
		case more, ok := <-m.more:
			if !ok {
				return m.all.String(), m.cmd.ProcessState.ExitCode()
			}
			m.all.WriteString(more)
		case <-timeout:
			m.t.Fatalf("the terminal stays open: %q", m.all.String())
		}
	}
}

// pipe gives a pipe whose write end the test closes to let a job go on.
func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// untilSampledSo is a job's text that goes on until the journal of the run has so many
// samples.
func untilSampledSo(often int) string {
	return fmt.Sprintf(`until [ "$(cat perfagent-out/*/*.jsonl 2>/dev/null | grep -c '{"sample"')" -ge %d ]; do sleep 0.05; done`, often)
}

// write writes a file of a test.
func write(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// tool finds a program that a test needs; without it the test is skipped, in CI
// failed.
func tool(t testing.TB, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		lacking(t, name+" is missing: "+install)
	}
	return path
}

// lacking skips a test for want of something; in CI it fails.
func lacking(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

func init() {
	parts["counter"] = counter
	parts["hog"] = hog
}

// ends bounds the life of a part, whatever happens to its test.
func ends() { time.AfterFunc(2*longest, func() { os.Exit(99) }) }

// say writes a line of a part at once.
func say(out io.Writer, words ...any) { fmt.Fprintln(out, words...) }
