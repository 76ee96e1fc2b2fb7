package clitest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is a started process with a stdout that is read line by line.
type Process struct {
	T      testing.TB
	Cmd    *exec.Cmd
	Lines  <-chan string
	Stderr *bytes.Buffer // the stderr of the process, unless cmd.Stderr was set
}

// StartProcess starts a prepared process.
func StartProcess(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{T: t, Cmd: cmd, Stderr: new(bytes.Buffer)}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if cmd.Stderr == nil {
		cmd.Stderr = p.Stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p.Lines = Scan(r)
	return p
}

// Scan returns a channel that receives the lines of f until EOF. It then closes f.
func Scan(f *os.File) <-chan string {
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

// Next returns the next line. It fails the test at EOF or after Longest.
func (p *Process) Next() string {
	p.T.Helper()
	select {
	case line, ok := <-p.Lines:
		if !ok {
			p.T.Fatalf("%v: the output ended", p.Cmd.Args)
		}
		return line
	case <-time.After(Longest):
		p.T.Fatalf("%v: no line within %v", p.Cmd.Args, Longest)
		return ""
	}
}

// Expect fails the test unless the next line is line.
func (p *Process) Expect(line string) {
	p.T.Helper()
	if got := p.Next(); got != line {
		p.T.Fatalf("line %q, want %q", got, line)
	}
}

// Field returns VALUE from the next line, which must be "word VALUE".
func (p *Process) Field(word string) string {
	p.T.Helper()
	line := p.Next()
	value, ok := strings.CutPrefix(line, word+" ")
	if !ok {
		p.T.Fatalf("line %q, want %s", line, word)
	}
	return value
}

// PID returns the number in the next line, which must be "word PID".
func (p *Process) PID(word string) int {
	p.T.Helper()
	n, err := strconv.Atoi(p.Field(word))
	if err != nil {
		p.T.Fatal(err)
	}
	return n
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig syscall.Signal) {
	p.T.Helper()
	if err := unix.Kill(p.Cmd.Process.Pid, sig); err != nil {
		p.T.Fatal(err)
	}
}

// End waits for the process, and returns its remaining lines.
func (p *Process) End() (Outcome, []string) {
	p.T.Helper()
	var rest []string
	timeout := time.After(Longest)
	for open := true; open; {
		select {
		case line, ok := <-p.Lines:
			if open = ok; ok {
				rest = append(rest, line)
			}
		case <-timeout:
			p.T.Fatalf("%v: the output does not end", p.Cmd.Args)
		}
	}
	Wait(p.T, p.Cmd)
	return Outcome{strings.Join(rest, "\n"), p.Stderr.String(), p.Cmd.ProcessState.ExitCode(), p.Cmd.Dir}, rest
}
