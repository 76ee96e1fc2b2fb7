package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A Terminal is a pseudoterminal with a process on it.
type Terminal struct {
	T    testing.TB
	Cmd  *exec.Cmd
	TTY  *os.File        // the user's side
	More chan string     // output that has not been read
	All  strings.Builder // output that has been read

	text string // the part of All that Expect has not matched
}

// OnTerminal starts a prepared process as a session leader on a new terminal of 80 columns and 24 rows.
func OnTerminal(t testing.TB, cmd *exec.Cmd) *Terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()

	tty := nonblocking(t, master)
	Resize(t, tty, 24, 80)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	m := &Terminal{T: t, Cmd: cmd, TTY: tty, More: make(chan string, 1000)}
	go func() {
		defer close(m.More)
		for buf := make([]byte, 4096); ; {
			n, err := tty.Read(buf)
			if n > 0 {
				m.More <- string(buf[:n])
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

// killSession kills the remaining processes, in all process groups, of the session that leader leads.
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

// nonblocking returns a nonblocking replacement of f, which package pty has made blocking. Closing a blocking terminal
// would wait for the pending read instead of hanging up.
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

// Resize sets the window size of tty.
func Resize(t testing.TB, tty *os.File, rows, columns int) {
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

// Expect waits for text on the screen, and returns the output before it.
func (m *Terminal) Expect(text string) (before string) {
	m.T.Helper()
	timeout := time.After(Longest)
	for {
		if before, after, ok := strings.Cut(m.text, text); ok {
			m.text = after
			return before
		}
		select {
		case more, ok := <-m.More:
			if !ok {
				m.T.Fatalf("the terminal closed before %q: %q", text, m.text)
			}
			m.text += more
			m.All.WriteString(more)
		case <-timeout:
			m.T.Fatalf("no %q within %v: %q", text, Longest, m.text)
		}
	}
}

// PID waits for "word PID" on the screen and returns the number.
func (m *Terminal) PID(word string) int {
	m.T.Helper()
	m.Expect(word + " ")
	n, err := strconv.Atoi(strings.TrimSpace(m.Expect("\n")))
	if err != nil {
		m.T.Fatal(err)
	}
	return n
}

// Send types text.
func (m *Terminal) Send(text string) {
	m.T.Helper()
	if _, err := m.TTY.WriteString(text); err != nil {
		m.T.Fatal(err)
	}
}

// End waits for the process to end, and returns all output and the exit code.
func (m *Terminal) End() (screen string, code int) {
	m.T.Helper()
	Wait(m.T, m.Cmd)
	timeout := time.After(Longest)
	for {
		select {
		case more, ok := <-m.More:
			if !ok {
				return m.All.String(), m.Cmd.ProcessState.ExitCode()
			}
			m.All.WriteString(more)
		case <-timeout:
			m.T.Fatalf("the terminal stays open: %q", m.All.String())
		}
	}
}
