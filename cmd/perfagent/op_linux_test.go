package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// An inbox receives the datagrams of a job in place of the perfagent that wraps the job.
type inbox struct {
	conn net.PacketConn
	env  string // entry for the job's environment
}

func newInbox(t *testing.T, network string) *inbox {
	t.Helper()
	address, variable := "127.0.0.1:0", "PERFAGENT_OPS_ADDR="
	if network == "unixgram" {
		address, variable = filepath.Join(t.TempDir(), "socket"), "PERFAGENT_OPS_SOCKET="
	}
	conn, err := net.ListenPacket(network, address)
	check.Must(t, err)
	t.Cleanup(func() { conn.Close() })

	return &inbox{conn, variable + conn.LocalAddr().String()}
}

// datagrams waits for at least want datagrams, and returns all that were received.
func (b *inbox) datagrams(t *testing.T, want int) (all []string) {
	t.Helper()
	buffer := make([]byte, 1<<16)
	for {
		patience := clitest.Longest
		if len(all) >= want { // local datagrams arrive immediately
			patience = 0
		}
		check.Must(t, b.conn.SetReadDeadline(time.Now().Add(max(patience, 50*time.Millisecond))))
		n, _, err := b.conn.ReadFrom(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return all
		}
		check.Must(t, err)
		all = append(all, string(buffer[:n]))
	}
}

// opCommand prepares perfagent op, which sends to b.
func opCommand(t *testing.T, b *inbox, args ...string) *exec.Cmd {
	t.Helper()
	return with(clitest.Perfagent(t, append([]string{"op"}, args...)...), b.env)
}

// wantOperation checks the only datagram of an inbox, and returns its operation.
func wantOperation(t *testing.T, b *inbox, name, key string, ok bool) (op operation) {
	t.Helper()
	got := b.datagrams(t, 1)
	if len(got) != 1 {
		t.Fatalf("inbox has the datagrams %q, want exactly one", got)
	}
	if err := json.Unmarshal([]byte(got[0]), &op); err != nil {
		t.Fatalf("datagram %q is not a JSON record: %v", got[0], err)
	}
	if op.Name != name || op.Key != key || op.OK != ok {
		t.Errorf("datagram %s, want op %q, key %q, ok %t", got[0], name, key, ok)
	}
	if now := float64(time.Now().UnixMicro()) / 1e6; op.At > now || op.At < now-60 {
		t.Errorf("datagram %s: its time is not within the minute before %f", got[0], now)
	}
	return op
}

// op keeps a command's exit code and streams, and sends an operation.
func TestOp_KeepsExitCodeAndSendsOperation(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 150)
	for _, test := range []struct {
		args              []string
		code              int
		name, key, stderr string
	}{
		{[]string{"--", "true"}, 0, "true", "", ""},
		{[]string{"true"}, 0, "true", "", ""},
		{[]string{"--", "/bin/sh", "-c", "exit 7"}, 7, "sh", "", ""},
		{[]string{"--", "sh", "-c", "exit 125"}, 125, "sh", "", ""},
		{[]string{"--", "sh", "-c", "kill -TERM $$"}, 143, "sh", "", ""},
		{[]string{"--", "sh", "-c", "kill -KILL $$"}, 137, "sh", "", ""},
		{[]string{"--op", "store.get", "--key", "k 1", "--", "true"}, 0, "store.get", "k 1", ""},
		{[]string{"--op", "a<b> \x1b\"", "--key", "", "--", "true"}, 0, "a<b> \x1b\"", "", ""},
		{[]string{"--op", "\xff", "--key", "\xffk", "--", "true"}, 0, "\uFFFD", "\uFFFDk", ""},
		{[]string{"--op", long, "--key", long, "--", "true"}, 0, long[:200], long[:200], ""},
		{[]string{"--", "nosuchcommand"}, 127, "nosuchcommand", "", "command not found"},
		{[]string{"--", "/"}, 126, "/", "", "cannot be executed"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			for _, network := range []string{"udp", "unixgram"} {
				b := newInbox(t, network)
				o := mustExit(t, test.code, opCommand(t, b, test.args...))
				if o.Out != "" || !strings.Contains(o.Err, test.stderr) || (o.Err == "") != (test.stderr == "") {
					t.Errorf("stdout %q, stderr %q; want none, and %q", o.Out, o.Err, test.stderr)
				}
				wantOperation(t, b, test.name, test.key, test.code == 0)
			}
		})
	}
}

// The recorded time is the command's duration, and the command uses the streams of the script.
func TestOp_TimesCommandAndPassesStreams(t *testing.T) {
	t.Parallel()
	b := newInbox(t, "udp")
	cmd := clitest.Script(t, "sh", `echo in | "$P" op --op nap -- sh -c 'cat; sleep 0.2; echo err >&2'`)
	start := time.Now()
	o := mustExit(t, 0, with(cmd, b.env))
	took := time.Since(start)
	if o.Out != "in\n" || o.Err != "err\n" {
		t.Errorf("stdout %q, stderr %q; want \"in\\n\", \"err\\n\"", o.Out, o.Err)
	}
	op := wantOperation(t, b, "nap", "", true)
	if op.Millis < 200 || op.Millis > float64(took.Milliseconds()) {
		t.Errorf("duration %v ms, want at least 200 ms and at most %v", op.Millis, took)
	}
}

// Signals reach the command, and their effect is recorded.
func TestOp_SignalsReachCommand(t *testing.T) {
	t.Parallel()
	for job, code := range map[string]int{
		`trap "exit 0" TERM; echo ready; while :; do sleep 0.01; done`: 0, "echo ready; exec sleep 600": 143,
	} {
		b := newInbox(t, "udp")
		l := clitest.StartProcess(t, opCommand(t, b, "--op", "serve", "--", "sh", "-c", job))
		l.Expect("ready")
		l.Signal(syscall.SIGTERM)
		mustEnd(l, code)
		wantOperation(t, b, "serve", "", code == 0)
	}
}

// Ctrl-C ends the command and the shell's loop, and the command is recorded as failed.
func TestOp_CtrlCEndsCommandAndLoop(t *testing.T) {
	t.Parallel()
	b := newInbox(t, "udp")
	cmd := clitest.Script(t, testenv.NeedsTool(t, "bash", "apt-get install bash"),
		`for i in 1 2 3; do "$P" op -- sh -c 'echo ready; exec sleep 600'; done; echo not reached`)
	m := clitest.OnTerminal(t, with(cmd, b.env))
	m.Expect("ready")
	m.Send("\x03")
	if screen, code := m.End(); code != -1 || strings.Contains(screen, "reached") {
		t.Errorf("exit code %d, screen %q; want -1 (SIGINT), and the loop ended", code, screen)
	}
	wantOperation(t, b, "sh", "", false)
}

// Each line of stdin becomes a datagram, whatever its content.
func TestOp_LinesBecomeDatagrams(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65507)
	for _, test := range []struct {
		name, stdin string
		want        []string
	}{
		{"empty input", "", nil},
		{"lines", "rows:5|c\n{\"op\":\"get\",\"ms\":2}\n", []string{"rows:5|c", `{"op":"get","ms":2}`}},
		{"no final newline", "a:1|c\nb:1|c", []string{"a:1|c", "b:1|c"}},
		{"CRLF and empty lines", "\n\r\na:1|c\r\n\nb:1|c\n", []string{"a:1|c", "b:1|c"}},
		{"binary", "\x00\xff\n", []string{"\x00\xff"}},
		{"maximum length", long + "\nb:1|c\n", []string{long, "b:1|c"}},
		{"too long", long + "y\nb:1|c\n" + long + long + "z", []string{long, "b:1|c", long}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, network := range []string{"udp", "unixgram"} {
				b := newInbox(t, network)
				cmd := opCommand(t, b)
				cmd.Stdin = strings.NewReader(test.stdin)
				o := mustExit(t, 0, cmd)
				if got := b.datagrams(t, len(test.want)); !slices.Equal(got, test.want) || o.Out+o.Err != "" {
					t.Errorf("%s: datagrams %.200q, want %.200q; stdout %q, stderr %q, want none",
						network, got, test.want, o.Out, o.Err)
				}
			}
		})
	}
}

// A line is sent when it arrives, without waiting for a full buffer.
func TestOp_LineIsSentWhenItArrives(t *testing.T) {
	t.Parallel()
	b := newInbox(t, "udp")
	in, out := clitest.Pipe(t)
	cmd := opCommand(t, b)
	cmd.Stdin = in
	l := clitest.StartProcess(t, cmd)
	for _, line := range []string{"a:1|c", "b:1|c"} {
		fmt.Fprintln(out, line)
		if got := b.datagrams(t, 1); !slices.Equal(got, []string{line}) {
			t.Fatalf("datagrams %q, want %q", got, line)
		}
	}
	_ = out.Close()
	mustEnd(l, 0)
}

// Without a receiver, all lines are read with exit code 0, and a command runs. op prints at most one line on stderr.
func TestOp_WorksWithoutReceiver(t *testing.T) {
	t.Parallel()
	closed, full := newInbox(t, "udp"), newInbox(t, "unixgram")
	closed.conn.Close()
	for _, test := range []struct{ name, env, lines, command string }{
		{"outside perfagent", "NONE=", "", "sh was not recorded: it did not run inside perfagent run --ops"},
		{"closed port", closed.env, "connection refused", ""}, // the first datagram to a closed port succeeds
		{"missing socket", "PERFAGENT_OPS_SOCKET=/no/such/socket", "no such file or directory",
			"send operations: dial unixgram /no/such/socket: connect: no such file or directory"},
		{"socket without a reader", full.env, "i/o timeout", ""},
		{"bad address", "PERFAGENT_OPS_ADDR=nowhere", "missing port in address",
			"send operations: dial udp: address nowhere: missing port in address"},
		{"hostile address", "PERFAGENT_OPS_ADDR=\x1b[2J", "missing port in address", "missing port in address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := mustExit(t, 4, with(clitest.Perfagent(t, "op", "--", "sh", "-c", "exit 4"), test.env))
			if (o.Err == "") != (test.command == "") || o.Err != "" &&
				!(strings.HasPrefix(o.Err, "perfagent: warning: ") && strings.HasSuffix(o.Err, test.command+"\n")) {
				t.Errorf("stderr with a command is %q, want a warning with %q at its end", o.Err, test.command)
			}
			clitest.WantLines(t, o.Err, 0, 1)
			cmd := clitest.Script(t, testenv.NeedsTool(t, "bash", "apt-get install bash"),
				`set -o pipefail; seq 200000 | { "$P" op; echo "exit $?" >&3; } 3>&1`)
			o = mustExit(t, 0, with(cmd, test.env))
			if o.Out != "exit 0\n" || (o.Err == "") != (test.lines == "") || !strings.Contains(o.Err, test.lines) {
				t.Errorf("with lines, stdout is %q, stderr %q; want \"exit 0\\n\", and %q in one line", o.Out, o.Err, test.lines)
			}
			clitest.WantLines(t, o.Err, 0, 1)
		})
	}
}

// Only incorrect usage is an error. Then nothing is sent or read.
func TestOp_FailsOnlyOnIncorrectUsage(t *testing.T) {
	t.Parallel()
	for line, all := range map[string][][]string{
		"no command: perfagent op":   {{"--"}, {"--op", "a"}, {"--key", "a"}},
		"--op: the name is empty":    {{"--op", "", "--", "true"}},
		"--op: the value is missing": {{"--op"}},
		"unknown flag --name":        {{"--name", "a", "--", "true"}},
	} {
		for _, args := range all {
			b := newInbox(t, "udp")
			in, _ := clitest.Pipe(t) // never reaches EOF
			cmd := opCommand(t, b, args...)
			cmd.Stdin = in
			mustExit(t, 125, cmd).WantLine(t, line)
			if got := b.datagrams(t, 0); len(got) > 0 {
				t.Errorf("%q: datagrams %q, want none", args, got)
			}
		}
	}
}

// The report of a run has the recorded commands with their keys and failures, and counts each line as a datagram.
func TestOp_ReportHasCommandsAndLines(t *testing.T) {
	t.Parallel()
	for _, ops := range []string{"on", "unix:" + filepath.Join(t.TempDir(), "socket")} {
		o := mustExit(t, 0, clitest.Script(t, "sh", `exec "$P" run --ops "$1" -- sh -c '
			"$P" op --op nap --key "k 1" -- sleep 0.2
			"$P" op -- false || echo "exit $?"
			for i in 1 2 3 4 5; do echo "rows:$i|c"; done | "$P" op'`, ops))
		if o.Out != "exit 1\n" || o.Err != "" {
			t.Errorf("stdout %q, stderr %q; want \"exit 1\\n\" and none", o.Out, o.Err)
		}
		w := o.Report(t).Nodes["0"].Operations
		nap := w.Times["nap"]
		if nap.Count != 1 || nap.Avg == nil || *nap.Avg < 200 || w.Keys["nap"]["k 1"].Count != 1 {
			t.Errorf("operation nap %+v, keys %v; want one call of at least 200 ms, with the key \"k 1\"", nap, w.Keys)
		}
		if failed := w.Times["false"]; failed.Count != 0 || failed.Errors != 1 {
			t.Errorf("operation false %+v, want no count and 1 error", failed)
		}
		if w.Counters["rows"] != 15 || *w.Sources[0].Datagrams != 7 || w.Dropped != (aggregate.Dropped{}) {
			t.Errorf("counters %v, sources %+v, dropped %+v; want 15 rows, 7 datagrams, none dropped",
				w.Counters, w.Sources, w.Dropped)
		}
	}
}
