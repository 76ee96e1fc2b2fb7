package process

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel reports the parent of a process that SIGKILL ended, even if the parent waits for it immediately. In about
// one of 200 cases, the report is missing.
func TestExitListener_ReportsParentOfKilledProcess(t *testing.T) {
	e, err := OpenExitListener()
	if err != nil {
		t.Skipf("the kernel's process connector is missing (%v): run the tests outside of containers", err)
	}
	defer e.Close()
	kills := make(chan [2]int, 1000)
	go func() {
		defer close(kills)
		for {
			pid, parent, err := e.Next()
			if err != nil {
				return
			}
			kills <- [2]int{pid, parent}
		}
	}()

	cmd := exec.Command("sh", "-c", "sh -c 'exit 3'; for i in 1 2 3 4 5; do sh -c 'kill -9 $$'; done; echo $$; read -r x")
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	var shell int
	if _, err := fmt.Fscan(out, &shell); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(30 * time.Second); ; {
		var kill [2]int
		select {
		case kill = <-kills:
		case <-deadline:
			var name unix.Utsname
			_ = unix.Uname(&name)
			t.Skipf("Linux %s does not report failed processes: run the tests on 6.6 or newer", unix.ByteSliceToString(name.Release[:]))
		}
		if kill[1] == shell {
			if kill[0] == shell || kill[0] == os.Getpid() || NewTree(Options{Root: os.Getpid()}).RelationByParent(kill[0], kill[1]) != InJob {
				t.Errorf("killed process %d with parent %d is not recognized as a child of the shell", kill[0], kill[1])
			}
			break
		}
	}
	in.Close()
	_ = cmd.Wait()
}

// Messages about anything except the end of a process by SIGKILL are ignored, and so are truncated messages.
func TestParseExit_AcceptsOnlyProcessesEndedBySIGKILL(t *testing.T) {
	message := func(what, pid, tgid, status uint32) []byte {
		m := make([]byte, exitMessage)
		for i, v := range map[int]uint32{0: what, 4: pid, 5: tgid, 6: status, 9: 77} {
			binary.NativeEndian.PutUint32(m[connectorHead+4*i:], v)
		}
		return m
	}
	for name, c := range map[string]struct {
		message     []byte
		pid, parent int
	}{
		"killed":             {message(eventExit, 42, 42, 9), 42, 77},
		"core dump flag set": {message(eventExit, 42, 42, 0x80|9), 42, 77},
		"thread":             {message(eventExit, 43, 42, 9), 0, 0},
		"exit code 9":        {message(eventExit, 42, 42, 9<<8), 0, 0},
		"SIGSEGV":            {message(eventExit, 42, 42, 11), 0, 0},
		"fork":               {message(1, 42, 42, 9), 0, 0},
		"truncated":          {message(eventExit, 42, 42, 9)[:exitMessage-1], 0, 0},
		"empty":              {nil, 0, 0},
	} {
		if pid, parent := parseExit(c.message); pid != c.pid || parent != c.parent {
			t.Errorf("%s: parsed process %d with parent %d, want %d with parent %d", name, pid, parent, c.pid, c.parent)
		}
	}
}
