//go:build e2e

package campaign

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// A process of the job hangs in exec, because exec closes a file on a server that does not respond. Reading that
// process's files in /proc also hangs. Nevertheless, signals reach the job, samples are taken, and the end of the job
// is noticed. No other test may run at the same time, because every perfagent on the machine examines that process.
func TestHang_JobInExecDoesNotBlockPerfagent(t *testing.T) {
	testenv.NeedsRoot(t, "to mount a file system with a server that does not respond")
	const noise = time.Minute
	file := filepath.Join(t.TempDir(), "file")
	clitest.Write(t, file, "", 0o600)
	closes := make(chan struct{})
	go serveFile(clitest.MountFUSE(t, file), closes)

	job := append(clitest.Python(t, `
import os, signal, sys
def end(*_):
    print("told", flush=True)
    os._exit(7)
signal.signal(signal.SIGTERM, end)
if os.fork() == 0:
    os.closerange(0, 3)
    os.open(sys.argv[1], os.O_RDONLY) # closed by exec
    os.execvp("true", ["true"])
while True: signal.pause()
`), file)
	cmd := clitest.Perfagent(t, append([]string{"run", "--run-id", "x", "--interval", "200ms", "--"}, job...)...)
	l := clitest.StartProcess(t, cmd)
	select {
	case <-closes:
	case <-time.After(noise):
		t.Fatalf("job did not close the file within %v", noise)
	}
	samples := func() int {
		data, _ := os.ReadFile(filepath.Join(cmd.Dir, "perfagent-out/x/node-0.jsonl"))
		return strings.Count(string(data), "\n")
	}
	n := samples() + 15 // the scan times out after 2 s
	clitest.WaitUntil(t, "there are more samples", func() bool { return samples() >= n })

	begin := time.Now()
	l.Signal(syscall.SIGTERM)
	l.Expect("told")
	if took := time.Since(begin); took > noise {
		t.Errorf("signal reached the job after %v, want at most %v", took, noise)
	}
	o, _ := l.End()
	if took := time.Since(begin); took > 4*time.Second+noise {
		t.Errorf("perfagent ended after %v, want at most %v", took, 4*time.Second+noise)
	}
	o.Want(t, 7)
}

// serveFile serves a FUSE file system with one file until that file is closed. Then it closes the channel and stops
// responding.
func serveFile(fuse *os.File, closes chan<- struct{}) {
	request := make([]byte, 1<<17)
	for {
		n, err := unix.Read(int(fuse.Fd()), request)
		if err != nil || n < 16 {
			return
		}

		answer := make([]byte, 16, 128) // struct fuse_out_header
		copy(answer[8:], request[8:16])
		le := binary.LittleEndian
		switch le.Uint32(request[4:]) {
		case 26: // INIT: version 7.31, and sizes
			answer = le.AppendUint32(le.AppendUint32(answer, 7), 31)
			answer = append(answer, make([]byte, 56)...)
		case 3: // GETATTR: the mode
			answer = append(answer, make([]byte, 104)...)
			le.PutUint64(answer[16+16:], 1)
			le.PutUint32(answer[16+76:], unix.S_IFREG|0o644)
		case 14: // OPEN
			answer = append(answer, make([]byte, 16)...)
		case 25: // FLUSH
			close(closes)
			return
		default:
			le.PutUint32(answer[4:], ^uint32(unix.ENOSYS)+1)
		}
		le.PutUint32(answer, uint32(len(answer)))
		_, _ = unix.Write(int(fuse.Fd()), answer)
	}
}
