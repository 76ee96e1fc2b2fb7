package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

var watchElapsed = regexp.MustCompile(`^trial-7, running for ([0-9.]+) (m?s)`)

// watchSeconds returns the elapsed time in a frame, or −1 if the frame has none.
func watchSeconds(f watchFrame) float64 {
	if m := watchElapsed.FindStringSubmatch(f.row("trial-7")); m != nil {
		v, _ := strconv.ParseFloat(m[1], 64)
		if m[2] == "ms" {
			v /= 1000
		}
		return v
	}
	return -1
}

// watch without a name finds the running run and shows it on a terminal of 80 × 24 until q is pressed.
func TestWatch_ShowsRunUntilQ(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--run-id", "trial-7", "--interval", "100ms", "--tag", "a=b")
	w := watchOn(t, run.Cmd.Dir, nil, "--refresh", "200ms")
	w.shows("trial-7, running for ", " of CPU time, ", " samples, 0.1 s apart", "q quits", "JOB ", "CPU ", "memory ", "NODE ", " now", " peak")
	row := regexp.MustCompile(`^CPU +[█▉▊▋▌▍▎▏·]{10}  [0-9.]+ of [0-9.]+ CPUs? +[0-9.]+ CPUs   [▁▂▃▄▅▆▇█]+$`)
	f := w.next("the CPU's picture and numbers", func(f watchFrame) bool { return row.MatchString(f.row("CPU")) })
	first := watchSeconds(f)
	if command := f.row("sh -c"); command == "" || len(f.lines) > 24 {
		t.Errorf("the frame has %d lines, want at most 24, and one with the command", len(f.lines))
	}
	if mode := watchTermios(t, w.TTY); mode.Lflag&(unix.ICANON|unix.ECHO) != 0 {
		t.Errorf("mode of the terminal %#x, want no ICANON and no ECHO, to read keys one by one", mode.Lflag)
	}
	w.next("another second", func(f watchFrame) bool { return watchSeconds(f) >= first+1 })
	w.Send("\x1b[A\x1bOQ\x1b[1;5Q\x1bqx") // Up, F2, Ctrl-F2, Alt-q, x: none of them quits
	w.next("another second", func(f watchFrame) bool { return watchSeconds(f) >= first+2 })
	if left := w.quit(); left != "" {
		t.Errorf("left on the screen after q: %q, want nothing", left)
	}
	o := run.ends(3)
	if r := reportertest.ReadFile(t, filepath.Join(o.Dir, "perfagent-out/trial-7/node-0.json")); *r.Run.ExitCode != 3 {
		t.Errorf("exit code %d in the report, want 3", *r.Run.ExitCode)
	}
}

// Every way to end watch restores the terminal.
func TestWatch_EveryExitRestoresTerminal(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--interval", "100ms")
	for _, c := range []struct {
		keys string
		sig  syscall.Signal
		code int
	}{
		{"q", 0, 0}, {"Q", 0, 0}, {"\x03", 0, 130}, {"\x1c", 0, 131}, // Ctrl-C, Ctrl-\
		{"", unix.SIGINT, 130}, {"", unix.SIGTERM, 143}, {"", unix.SIGHUP, 129}, {"", unix.SIGQUIT, 131},
	} {
		t.Run(fmt.Sprintf("%q %v", c.keys, c.sig), func(t *testing.T) {
			// The terminal is kept open, so that its settings can be read at the end.
			w := watchOn(t, run.Cmd.Dir, nil)
			slave, before := watchSlave(t, w.TTY)
			w.shows("q quits")
			if cmp.Equal(before, watchTermios(t, w.TTY)) {
				t.Error("the mode of the terminal did not change, want raw mode to read keys")
			}
			if c.keys != "" {
				w.Send(c.keys)
			} else if err := unix.Kill(w.Cmd.Process.Pid, c.sig); err != nil {
				t.Fatal(err)
			}
			clitest.WaitUntil(t, "the settings are restored", func() bool { return cmp.Equal(before, watchTermios(t, w.TTY)) })
			slave.Close()
			if left := w.leaves(c.code); left != "" {
				t.Errorf("left on the screen: %q, want nothing", left)
			}
		})
	}
	run.ends(0)
}

// Ctrl-Z stops the view and returns the terminal to the shell. fg restores the view.
func TestWatch_CtrlZRestoresTerminalAndFgContinues(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--interval", "100ms", "--run-id", "r")
	m := shell(t)
	m.Send("cd " + run.Cmd.Dir + "; echo here-$?\n")
	m.Expect("here-0")
	m.Send("TERM=xterm $P watch --refresh 100ms r\n")
	for range 2 {
		expectAll(m, "\x1b[?1049h", "q quits")
		m.Send("\x1a")
		expectAll(m, "\x1b[?25h\x1b[?1049l", "Stopped", "prompt-$ ")
		if mode := watchTermios(t, m.TTY); mode.Lflag&unix.ISIG == 0 {
			t.Errorf("mode of the terminal of the shell %#x, want ISIG, so that Ctrl-C works", mode.Lflag)
		}
		m.Send("fg\n")
	}
	expectAll(m, "\x1b[?1049h", "q quits")
	pid := watchChild(t, m.Cmd.Process.Pid)
	for range 2 { // stopped by another process, with and without a chance to restore the terminal
		for _, sig := range []syscall.Signal{unix.SIGTSTP, unix.SIGSTOP} {
			killTo(m, pid, sig)
			expectAll(m, "Stopped", "prompt-$ ")
			m.Send("fg\n")
			expectAll(m, "\x1b[?1049h", "q quits")
		}
	}
	m.Send("q")
	m.Expect("prompt-$ ")
	m.Send("echo code-$?\n")
	m.Expect("code-0\r\n")
	m.Send("exit\n")
	m.End()
	run.ends(0)
}

// watchChild returns the only child of a process.
func watchChild(t *testing.T, pid int) int {
	t.Helper()
	child, err := strconv.Atoi(strings.TrimSpace(clitest.Read(t, fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))))
	check.Must(t, err)
	return child
}

// The view follows the size of the terminal, down to a single cell.
func TestWatch_FollowsSizeOfTerminal(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--interval", "50ms")
	w := watchOn(t, run.Cmd.Dir, nil, "--refresh", "200ms")
	w.shows("q quits")
	for _, size := range []struct{ width, height int }{{40, 10}, {200, 50}, {12, 3}, {1, 1}, {80, 24}} {
		w.resize(size.width, size.height)
		fits := 0
		w.next("two frames that fit", func(f watchFrame) bool {
			if fits++; f.wide != "" || len(f.lines) > size.height { // drawn before the new size was known
				fits = 0
			}
			return fits == 2
		})
		if size.width < 40 {
			continue
		}
		w.next("a whole frame of this size", func(f watchFrame) bool { // earlier frames may come first
			return f.wide == "" && f.row("CPU") != "" && strings.Contains(f.String(), "q quits") &&
				(size.width != 200 || strings.Contains(f.row("NODE"), "CPUs, ")) && (size.height != 10 || f.row("memory") != "")
		})
	}
	w.quit()
	run.ends(0)
}

func TestWatch_UsesOnlyASCIIWithoutUTF8(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--interval", "50ms", "--run-id", "r")
	for _, env := range [][]string{{"LC_ALL=C"}, {"LC_ALL=", "LC_CTYPE=", "LANG=en_US.ISO-8859-1"}, {"LC_ALL=", "LANG="}} {
		w := watchOn(t, run.Cmd.Dir, env, "r")
		f := w.shows("q quits", "CPU", " samples, 0.05 s apart")
		w.quit()
		if at := strings.IndexFunc(f.String(), func(r rune) bool { return r > '~' }); at >= 0 {
			t.Errorf("%q: the view has characters other than ASCII, from %q", env, f.String()[at:])
		}
	}
	run.ends(0)
}

// When the run ends, the last picture stays on the screen, followed by a line on how the run ended.
func TestWatch_LastPictureStaysWhenRunEnds(t *testing.T) {
	t.Parallel()
	for code, words := range map[int]string{0: "Succeeded after ", 7: "Failed (exit 7) after "} {
		run := watched(t, "", "--interval", "50ms", "--run-id", "r")
		w := watchOn(t, run.Cmd.Dir, nil)
		w.shows("q quits")
		run.ends(code)
		left := w.leaves(0)
		want := "\r\nperfagent: run r: " + words
		if !strings.Contains(left, want) || !strings.HasSuffix(left, ". perfagent show perfagent-out/r/node-0.json\r\n") ||
			!strings.Contains(left, "\r\nCPU ") || strings.Contains(left, "q quits") || !strings.Contains(left, "mean") {
			t.Errorf("exit code %d, left on the screen:\n%s\nwant the last picture, %q and the command", code, left, want)
		}
	}
}

// Without a terminal, or on a dumb terminal, watch prints plain lines.
func TestWatch_PrintsPlainLinesWithoutTerminal(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`^(starting|running for \S.*?): (CPU [0-9.]+ of [0-9.]+ CPUs? \(peak [0-9.]+ CPUs\), ` +
		`(memory \S+ [KMG]iB of \S+ [MG]iB, )?(.+, )?node )?CPU (<?[0-9]+ %|–) \(peak (<?[0-9]+ %|–)\), (node )?memory (<?[0-9]+ %|–)`)
	end := regexp.MustCompile(`^perfagent: run r: Succeeded after \S.*?\. perfagent show perfagent-out/r/node-0\.json$`)
	for name, env := range map[string][]string{"pipe": nil, "dumb": {"TERM=dumb"}, "no TERM": {"TERM="}} {
		run := watched(t, "", "--interval", "50ms", "--run-id", "r")
		cmd := watchCommand(t, run.Cmd.Dir, env, "--refresh", "100ms")
		var text string
		if name == "pipe" {
			l := clitest.StartProcess(t, cmd)
			for range 3 {
				l.Next()
			}
			run.ends(0)
			o, rest := l.End()
			o.Want(t, 0)
			text = strings.Join(rest, "\n")
		} else {
			m := clitest.OnTerminal(t, cmd)
			expectAll(m, "\r\n", "\r\n")
			run.ends(0)
			screen, code := m.End()
			if code != 0 || strings.Contains(screen, "\x1b") {
				t.Errorf("%s: exit code %d, screen %q; want 0 and no control sequence", name, code, screen)
			}
			text = strings.TrimSpace(strings.ReplaceAll(screen, "\r", ""))
		}
		all := strings.Split(text, "\n")
		for _, l := range all[:len(all)-1] {
			if !line.MatchString(l) {
				t.Errorf("%s: line %q does not match %v", name, l, line)
			}
		}
		if !end.MatchString(all[len(all)-1]) {
			t.Errorf("%s: the last line %q does not match %v", name, all[len(all)-1], end)
		}
	}
}

// Plain lines are printed until the last node ends. The last line describes the ends of all nodes.
func TestWatch_PlainLinesContinueUntilLastNodeEnds(t *testing.T) {
	t.Parallel()
	run := func(dir, node string) *watchRun {
		return watched(t, dir, "--interval", "50ms", "--run-id", "r", "--node", node)
	}
	first := run("", "0")
	dir := first.Cmd.Dir
	before, second, third := run(dir, "7"), run(dir, "1"), run(dir, "2")
	before.ends(4)
	l := clitest.StartProcess(t, watchCommand(t, dir, nil, "--refresh", "100ms", "r"))
	picked := clitest.StartProcess(t, watchCommand(t, dir, nil, "--refresh", "100ms", "--node", "1", "r"))
	watchLine(l, "node 0: running for ")
	watchLine(picked, "node 1: running for ")
	first.ends(0)
	watchLine(l, "node 0: Succeeded after ")
	watchLine(l, "node 1: running for ")
	second.ends(3)
	watchLine(l, "node 1: Failed (exit 3) after ")
	watchLine(l, "node 2: running for ")
	o, rest := picked.End()
	o.Want(t, 0)
	if last := rest[len(rest)-1]; !strings.HasPrefix(last, "perfagent: run r, node 1: Failed (exit 3) after ") {
		t.Errorf("the last line of --node 1 is %q, want the failure with exit 3", last)
	}
	third.ends(0)
	o, rest = l.End()
	o.Want(t, 0)
	want := "perfagent: run r: 4 nodes, 2 failed (node 1 exit 3, node 7 exit 4); perfagent show perfagent-out/r/node-1.json"
	if last := rest[len(rest)-1]; last != want {
		t.Errorf("the last line: %q, want %q", last, want)
	}
}

// watchLine waits for a line with a prefix.
func watchLine(l *clitest.Process, prefix string) {
	l.T.Helper()
	for !strings.HasPrefix(l.Next(), prefix) {
	}
}

// If the agent of a node is killed, watch continues with the other nodes, and finally reports the killed node as
// unfinished.
func TestWatch_PlainLinesReportKilledNodeAsUnfinished(t *testing.T) {
	t.Parallel()
	first := watched(t, "", "--interval", "50ms", "--run-id", "r", "--node", "0")
	dir := first.Cmd.Dir
	second := watched(t, dir, "--interval", "50ms", "--run-id", "r", "--node", "1")
	l := clitest.StartProcess(t, watchCommand(t, dir, nil, "--refresh", "100ms", "r"))
	watchLine(l, "node 0: running for ")
	first.Signal(unix.SIGKILL)
	first.goOn.Close()
	first.End()
	watchLine(l, "node 0: perfagent has been gone since ")
	watchLine(l, "node 1: running for ")
	second.ends(0)
	o := mustEnd(l, 1)
	o.WantLine(t, "run r: 2 nodes, 1 unfinished (node 0 its perfagent is gone); perfagent show perfagent-out/r/node-0.jsonl")
}

// The end is noticed quickly even with a long --refresh.
func TestWatch_NoticesEndBetweenUpdates(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--interval", "50ms", "--run-id", "r")
	w := watchOn(t, run.Cmd.Dir, nil, "--refresh", "1h")
	w.shows("q quits")
	plain := clitest.StartProcess(t, watchCommand(t, run.Cmd.Dir, nil, "--refresh", "1h"))
	plain.Next()
	run.ends(0)
	wantContains(t, w.leaves(0), "run r: Succeeded after ")
	o, lines := plain.End()
	o.Want(t, 0)
	if len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1], "perfagent: run r: Succeeded after ") {
		t.Errorf("lines %q, want the last to be the end with exit 0", lines)
	}
}

// The poll interval divides --refresh, and is at most a second.
func TestPollInterval_DividesRefreshAndIsAtMostASecond(t *testing.T) {
	t.Parallel()
	for refresh, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 100 * time.Millisecond, time.Second: time.Second, 1500 * time.Millisecond: 750 * time.Millisecond,
		10 * time.Second: time.Second, 1<<63 - 1: 999999999,
	} {
		o := &watchOptions{refresh: refresh}
		now := time.Now()
		if got := o.pollInterval(); got != want || o.due(now.Add(refresh-got), now) || !o.due(now.Add(refresh), now) {
			t.Errorf("--refresh %v: poll interval %v, want %v", refresh, got, want)
		}
	}
}

// watch follows the newest of several running runs in PERFAGENT_OUT.
func TestWatch_FollowsNewestRun(t *testing.T) {
	t.Parallel()
	old := watched(t, "", "--run-id", "z-old", "--interval", "50ms", "--out", "o")
	recent := watched(t, old.Cmd.Dir, "--run-id", "a-new", "--interval", "50ms", "--out", "o")
	w := watchOn(t, old.Cmd.Dir, []string{"PERFAGENT_OUT=o"})
	w.shows("a-new, running")
	recent.ends(0)
	w.leaves(0)
	w = watchOn(t, old.Cmd.Dir, nil, "--out", "o")
	w.shows("z-old, running")
	w.quit()
	old.ends(0)
}

// A sidecar is watched like any run.
func TestWatch_FollowsSidecar(t *testing.T) {
	t.Parallel()
	l, _ := beside(t, nil)
	w := watchOn(t, l.Cmd.Dir, nil)
	w.shows("s, ", "NODE ", "CPU ")
	l.Signal(unix.SIGTERM)
	l.End()
	wantContains(t, w.leaves(0), "Sampled for ")
}

// If stdin is not a terminal, the view has no keys, and its footer names Ctrl-C.
func TestWatch_FooterNamesCtrlCIfStdinIsNoTerminal(t *testing.T) {
	t.Parallel()
	run := watched(t, "", "--interval", "50ms", "--run-id", "r")
	m := clitest.OnTerminal(t, clitest.Script(t, "sh", "cd "+run.Cmd.Dir+` && exec "$P" watch </dev/null`))
	w := &watcher{Terminal: m, vt: newWatchVT(80, 24)}
	w.shows("Ctrl-C quits")
	w.Send("q") // no effect
	w.shows("Ctrl-C quits")
	w.Send("\x03")
	w.leaves(130)
	run.ends(0)
}

// watchAndKill starts three watchers of a run, and kills and restarts one of them continuously. It returns when the
// others show the run. The returned function ends the watchers; it must be called after the run has ended.
func watchAndKill(t *testing.T, dir, id string) (stop func()) {
	t.Helper()
	untilExists(t, filepath.Join(dir, "perfagent-out", id, "node-0.jsonl"))
	first, second := watchOn(t, dir, nil, id), watchOn(t, dir, nil, id)
	first.shows("q quits")
	second.shows("q quits")
	over, done := make(chan struct{}), make(chan struct{})
	killed := 0
	go func() {
		defer close(done)
		for going := true; going; killed++ {
			cmd := watchCommand(t, dir, nil, "--refresh", "100ms", id)
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-over:
				going = false
			case <-time.After(150 * time.Millisecond):
			}
			_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL)
			_ = cmd.Wait()
		}
	}()
	return func() {
		close(over)
		<-done
		t.Logf("watchers killed: %d", killed)
		first.leaves(0)
		second.leaves(0)
	}
}

// With NO_COLOR, the view is shown without colors.
func TestWatch_NoColorRemovesColours(t *testing.T) {
	t.Parallel()
	color := regexp.MustCompile("\x1b\\[[1-9][0-9;]*m")
	for _, env := range [][]string{nil, {"NO_COLOR=1"}} {
		run := watched(t, "", "--interval", "50ms", "--run-id", "r")
		m := clitest.OnTerminal(t, watchCommand(t, run.Cmd.Dir, env, "--refresh", "100ms"))
		screen := m.Expect("q quits")
		m.Send("q")
		rest, code := m.End()
		if code != 0 || !strings.Contains(screen, "\x1b[?1049h") {
			t.Errorf("%q: exit code %d, screen %q; want 0 and the alternate screen", env, code, screen)
		}
		if got := color.MatchString(screen + rest); got != (env == nil) {
			t.Errorf("%q: colours %v, want %v", env, got, env == nil)
		}
		run.ends(0)
	}
}
