package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/text"
)

// watchVT emulates the part of a terminal that the live view uses. Other control sequences are an error: a report must
// not be able to send any.
type watchVT struct {
	width, height int
	other         bool // the alternate screen is shown
	cursor, wrap  bool
	row           int
	lines         []string
	wide          string // a line wider than the terminal
	rest          string // incomplete escape sequence or character
	normal        string // output on the normal screen
	wrong         []string
}

func newWatchVT(width, height int) *watchVT {
	return &watchVT{width: width, height: height, cursor: true, wrap: true}
}

// watchFrame is the screen after a complete frame.
type watchFrame struct {
	lines []string
	wide  string // a line wider than the terminal; "" = none
}

func (f watchFrame) String() string { return strings.Join(f.lines, "\n") }

// row returns the first line that begins with a label, or "" if there is none.
func (f watchFrame) row(label string) string {
	i := slices.IndexFunc(f.lines, func(line string) bool { return strings.HasPrefix(line, label) })
	if i < 0 {
		return ""
	}
	return f.lines[i]
}

var watchSequence = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

// take processes output and returns the completed frames.
func (v *watchVT) take(words string) []watchFrame {
	words, v.rest = v.rest+words, ""
	var frames []watchFrame
	for words != "" {
		if words[0] == 0x1b {
			m := watchSequence.FindStringSubmatch(words)
			if m == nil {
				if len(words) < 12 { // the rest follows
					v.rest = words
					return frames
				}
				v.wrong = append(v.wrong, words[:12])
				words = words[1:]
				continue
			}
			words = words[len(m[0]):]
			if f, done := v.control(m[1], m[2]); done {
				frames = append(frames, f)
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(words)
		if r == utf8.RuneError && size == 1 && !utf8.FullRuneInString(words) {
			v.rest = words
			return frames
		}
		v.write(r, words[:size])
		words = words[size:]
	}
	return frames
}

// write writes a character.
func (v *watchVT) write(r rune, raw string) {
	if !v.other {
		v.normal += raw
		return
	}
	switch {
	case r == '\r':
	case r == '\n':
		v.row++
	case !unicode.IsPrint(r):
		v.wrong = append(v.wrong, raw)
	default:
		for len(v.lines) <= v.row {
			v.lines = append(v.lines, "")
		}
		v.lines[v.row] += raw
		if text.Width(v.lines[v.row]) > v.width {
			v.wide = v.lines[v.row]
		}
	}
	if v.row >= v.height {
		v.wide = fmt.Sprintf("line %d of %d", v.row+1, v.height)
	}
}

// control executes a control sequence. The sequence that clears the screen below the cursor ends a frame.
func (v *watchVT) control(params, final string) (f watchFrame, done bool) {
	switch params + final {
	case "?1049h", "?1049l":
		v.other = final == "h"
	case "?25h", "?25l":
		v.cursor = final == "h"
	case "?7h", "?7l":
		v.wrap = final == "h"
	case "2J", "K", "m", "0m", "1m", "2m", "31m", "34m", "1;31m":
	case "H":
		v.row, v.lines, v.wide = 0, nil, ""
	case "J":
		return watchFrame{v.lines, v.wide}, true
	default:
		v.wrong = append(v.wrong, params+final)
	}
	return watchFrame{}, false
}

// watcher is perfagent watch on a terminal.
type watcher struct {
	*clitest.Terminal
	vt     *watchVT
	frames []watchFrame
}

// watchOn starts perfagent watch on a terminal of 80 × 24, in the directory of a run.
func watchOn(t testing.TB, dir string, env []string, args ...string) *watcher {
	t.Helper()
	return &watcher{Terminal: clitest.OnTerminal(t, watchCommand(t, dir, env, args...)), vt: newWatchVT(80, 24)}
}

// resize sets the size of the terminal.
func (w *watcher) resize(width, height int) {
	w.T.Helper()
	w.vt.width, w.vt.height = width, height
	clitest.Resize(w.T, w.TTY, height, width)
}

// quit types q, checks that watch succeeds, and returns the output on the normal screen.
func (w *watcher) quit() string {
	w.T.Helper()
	w.Send("q")
	return w.leaves(0)
}

func watchCommand(t testing.TB, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := clitest.Perfagent(t, append([]string{"watch"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(cmd.Env, "LC_ALL=C.UTF-8"), env...)
	return cmd
}

// next returns the next frame for which ok is true.
func (w *watcher) next(what string, ok func(watchFrame) bool) watchFrame {
	w.T.Helper()
	timeout := time.After(clitest.Longest)
	var last watchFrame
	for {
		for len(w.frames) > 0 {
			last, w.frames = w.frames[0], w.frames[1:]
			if ok(last) {
				return last
			}
		}
		select {
		case more, open := <-w.More:
			if !open {
				w.T.Fatalf("the terminal closed before %s; the last frame:\n%s", what, last)
			}
			w.All.WriteString(more)
			w.frames = append(w.frames, w.vt.take(more)...)
		case <-timeout:
			w.T.Fatalf("did not happen within %v: %s; the last frame:\n%s", clitest.Longest, what, last)
		}
	}
}

// shows returns the next frame that contains all words.
func (w *watcher) shows(words ...string) watchFrame {
	w.T.Helper()
	f := w.next(strings.Join(words, ", "), func(f watchFrame) bool {
		lacks := func(word string) bool { return !strings.Contains(f.String(), word) }
		return !slices.ContainsFunc(words, lacks)
	})
	if f.wide != "" {
		w.T.Errorf("a line is wider than the terminal: %q", f.wide)
	}
	return f
}

// leaves waits for the end of watch, checks that the terminal is restored, and returns the output on the normal screen.
func (w *watcher) leaves(code int) (normal string) {
	w.T.Helper()
	screen, got := w.End()
	v := newWatchVT(w.vt.width, w.vt.height)
	v.take(screen)
	if got != code {
		w.T.Errorf("exit code %d, want %d:\n%s", got, code, v.normal)
	}
	if v.other || !v.cursor || !v.wrap || len(v.wrong) > 0 || v.rest != "" {
		w.T.Errorf("terminal after the end: alternate screen %v, cursor %v, wrapping %v, unknown sequences %q; want false, true, true, none", v.other, v.cursor, v.wrap, v.wrong)
	}
	return v.normal
}

// watchIoctl returns what the kernel says about a terminal.
func watchIoctl[T any](t testing.TB, tty *os.File, get func(fd int, request uint) (T, error), request uint) (v T) {
	t.Helper()
	conn, err := tty.SyscallConn()
	check.Must(t, err)
	failed := conn.Control(func(fd uintptr) { v, err = get(int(fd), request) })
	check.Must(t, errors.Join(failed, err))
	return v
}

// watchTermios returns the settings of the terminal with the given pty master.
func watchTermios(t testing.TB, tty *os.File) *unix.Termios {
	t.Helper()
	return watchIoctl(t, tty, unix.IoctlGetTermios, unix.TCGETS)
}

// watchSlave opens the terminal with the given pty master, which preserves its settings, and returns the settings of a
// new terminal.
func watchSlave(t testing.TB, tty *os.File) (*os.File, *unix.Termios) {
	t.Helper()
	number := watchIoctl(t, tty, unix.IoctlGetInt, unix.TIOCGPTN)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	check.Must(t, err)
	t.Cleanup(func() { slave.Close() })
	master, fresh, err := pty.Open()
	check.Must(t, err)
	defer master.Close()
	defer fresh.Close()
	return slave, watchTermios(t, master)
}

// watchRun is a run that continues until ends is called.
type watchRun struct {
	*clitest.Process
	goOn *os.File
}

// watched starts a run with a job that waits until it reads an exit code, and exits with that code.
func watched(t testing.TB, dir string, args ...string) *watchRun {
	t.Helper()
	cmd := clitest.Perfagent(t, append(append([]string{"run"}, args...), "--", "sh", "-c", `echo ready; read x; exit $x`)...)
	cmd.Dir = cmp.Or(dir, cmd.Dir)
	in, goOn := clitest.Pipe(t)
	cmd.Stdin = in
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	return &watchRun{l, goOn}
}

// ends makes the job exit with a code, and checks that perfagent exits with the same code.
func (r *watchRun) ends(code int) clitest.Outcome {
	r.T.Helper()
	_, err := fmt.Fprintln(r.goOn, code)
	check.Must(r.T, err)
	return mustEnd(r.Process, code)
}
