package intake

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// around sets the environment of a program that runs under in, or outside of perfagent if in is nil.
func around(t *testing.T, in *Intake) {
	t.Helper()
	var environ []string
	if in != nil {
		environ, _ = in.Environ(nil)
	}
	e := &environment{list: environ}
	for _, name := range []string{addrVar, socketVar} {
		value, _ := e.get(name)
		t.Setenv(name, value)
	}
}

func mustDial(t *testing.T) func([]byte) error {
	t.Helper()
	return check.Value(Dial())(t)
}

func TestSender_ReachesIntakeOfEnvironment(t *testing.T) {
	for _, address := range []string{"on", "0.0.0.0:0", "unix:" + filepath.Join(t.TempDir(), "socket")} {
		t.Run(address, func(t *testing.T) {
			in := opened(t, address)
			around(t, in)
			send := mustDial(t)
			for _, line := range []string{"rows:5|c", `{"op":"get","ms":2}`, `{"op":"get","ms":4}`} {
				check.Must(t, send([]byte(line)))
			}

			if ops := closed(t, in); ops.Counters["rows"] != 5 || ops.Times["get"].Count != 2 || *ops.Sources[0].Datagrams != 3 {
				t.Errorf("received %+v, want counter rows 5, 2 times of get, and 3 datagrams", ops)
			}
		})
	}
}

func TestDial_ReturnsNilOutsidePerfagent(t *testing.T) {
	around(t, nil)
	if mustDial(t) != nil {
		t.Error("Dial outside of perfagent returned a function, want nil")
	}
}

func TestDial_ReturnsErrorForBadAddress(t *testing.T) {
	for _, test := range []struct{ addr, socket, want string }{
		{"here", "", "missing port in address"},
		{"127.0.0.1:http-no-service", "", "unknown port"},
		{"", filepath.Join(t.TempDir(), "none"), "no such file or directory"},
	} {
		t.Setenv(addrVar, test.addr)
		t.Setenv(socketVar, test.socket)
		if send, err := Dial(); send != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Dial with address %q, socket %q: error %v, want one with %q", test.addr, test.socket, err, test.want)
		}
	}
}

// If nothing reads a Unix socket, a sender waits at most maxSend.
func TestSender_GivesUpOnUnreadSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	conn := check.Value(net.ListenPacket("unixgram", path))(t)
	defer conn.Close()
	t.Setenv(addrVar, "")
	t.Setenv(socketVar, path)

	send, start := mustDial(t), time.Now()
	var err error
	for n := 0; err == nil; n++ {
		if n > 10_000 {
			t.Fatal("an unread socket accepted 10,000 datagrams, want an error earlier")
		}
		err = send([]byte("rows:5|c"))
	}
	if took := time.Since(start); took < maxSend || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("sending failed after %v with error %v, want deadline exceeded after at least %v", took, err, maxSend)
	}
}
