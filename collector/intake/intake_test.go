package intake

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// mustOpen returns an Intake that receives at the given value of --ops.
func mustOpen(t testing.TB, address string) *Intake {
	t.Helper()
	a := check.Value(ParseAddress(address))(t)
	return check.Value(Open(Options{Address: a}))(t)
}

// opened is like mustOpen, but closes the Intake at the end of the test.
func opened(t testing.TB, address string) *Intake {
	t.Helper()
	in := mustOpen(t, address)
	t.Cleanup(func() { in.Close() })

	return in
}

// started is like opened, but also starts the Intake.
func started(t testing.TB, address string) *Intake {
	t.Helper()
	in := opened(t, address)
	in.Start(time.Now())
	return in
}

// sender returns a connection to a socket of an Intake. socket is 0 for StatsD and 1 for DogStatsD.
func sender(t testing.TB, in *Intake, socket int) net.Conn {
	t.Helper()
	network, address := "udp", in.sockets[socket].address
	if in.sockets[socket].path != "" {
		network = "unixgram"
	}
	conn := check.Value(net.Dial(network, address))(t)
	t.Cleanup(func() { conn.Close() })

	return conn
}

// portOf returns the port of a socket.
func portOf(s *socket) uint16 { return netip.MustParseAddrPort(s.address).Port() }

func send(t testing.TB, conn net.Conn, datagrams ...string) {
	t.Helper()
	for _, d := range datagrams {
		check.Value(conn.Write([]byte(d)))(t)
	}
}

// closed closes an Intake and returns its operations.
func closed(t testing.TB, in *Intake) aggregate.Operations {
	t.Helper()
	return in.Close().Operations(time.Now())
}

func TestIntake_ReceivesTwoDialectsOnTwoPorts(t *testing.T) {
	in := started(t, "on")
	send(t, sender(t, in, 0), "g:5|g", "g:-3|g\nc:1|c\r\nc:2|c\n\n", `{"op":"a","ms":5}`)
	send(t, sender(t, in, 1), "h:5|g", "h:-3|g\nc:3|c", `{"counter":"d","add":2}`)
	ops := closed(t, in)

	if ops.Gauges["g"].Last != 2 || ops.Gauges["h"].Last != -3 || ops.Counters["c"] != 6 || ops.Counters["d"] != 2 || ops.Times["a"].Count != 1 {
		t.Errorf("received %+v, want gauges g 2 and h -3, counters c 6 and d 2, and one time of a", ops)
	}
	for i, want := range []struct {
		kind              string
		datagrams, events int64
	}{{"statsd", 3, 5}, {"dogstatsd", 3, 4}} {
		s := ops.Sources[i]
		if s.Kind != want.kind || *s.Datagrams != want.datagrams || s.Events != want.events || s.First == 0 || s.Last < s.First || s.Address != in.sockets[i].address {
			t.Errorf("source %+v with %d datagrams, want %+v at %s with times of the first and last event", s, *s.Datagrams, want,
				in.sockets[i].address)
		}
	}
}

// Datagrams that are sent before Start or just before Close count. Later datagrams do not.
func TestIntake_CountsDatagramsFromOpenToClose(t *testing.T) {
	for _, address := range []string{"on", "unix:" + filepath.Join(t.TempDir(), "s")} {
		in := opened(t, address)
		conn := sender(t, in, 0)
		send(t, conn, "early:1|c")
		in.Start(time.Now())
		for range 8 {
			send(t, conn, "late:1|c")
		}
		ops := closed(t, in)
		conn.Write([]byte("after:1|c"))
		if ops.Counters["early"] != 1 || ops.Counters["late"] != 8 || len(ops.Counters) != 2 {
			t.Errorf("%s: counters %v, want only early 1 and late 8", address, ops.Counters)
		}
	}
}

// An Intake can be closed without Start, if there is no job.
func TestIntake_CloseWithoutStartReadsSockets(t *testing.T) {
	in := opened(t, "on")
	send(t, sender(t, in, 0), "a:1|c")
	if ops := closed(t, in); ops.Counters["a"] != 1 {
		t.Errorf("Close without Start returned %+v, want counter a 1", ops)
	}
	if ops := closed(t, in); ops.Counters["a"] != 1 {
		t.Errorf("the second Close returned %+v, want counter a 1", ops)
	}
}

func TestOpen_ReturnsErrorIfPortIsInUse(t *testing.T) {
	port := testenv.FreePort(t)                   // FreePort holds the UDP port
	for _, first := range []int{port, port - 1} { // the port in use may be the first or the second one
		a := check.Value(ParseAddress(fmt.Sprint(first)))(t)
		in, err := Open(Options{Address: a})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("127.0.0.1:%d: address already in use (--ops on takes any free ports)", port)) {
			t.Errorf("Open at port %d while port %d is in use: error %v, want \"address already in use\" with a hint", first, port, err)
		}
		in.Start(time.Now())
		if ops := closed(t, in); len(ops.Sources) != 0 {
			t.Errorf("operations without sockets = %+v, want no sources", ops)
		}
	}
}

func TestIntake_OpensGivenPortAndNextPort(t *testing.T) {
	free := opened(t, "on") // the port after its first one may be free once it is closed
	port := portOf(free.sockets[0])
	closed(t, free)
	a := check.Value(ParseAddress(fmt.Sprint(port)))(t)
	in, err := Open(Options{Address: a})
	if err != nil {
		t.Skipf("needs two neighbouring free ports: %v", err)
	}
	if portOf(in.sockets[0]) != port || portOf(in.sockets[1]) != port+1 {
		t.Errorf("opened %s and %s, want the ports %d and %d", in.sockets[0].address, in.sockets[1].address, port, port+1)
	}
	in.Close()
}

func TestIntake_UnixSocketIsPrivateAndRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ops.sock")
	in := opened(t, "unix:"+path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("status of the socket %v, error %v; want mode 0600", info, err)
	}
	if _, err := Open(Options{Address: Address{Path: path}}); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("Open of a socket in use: error %v, want \"address already in use\"", err)
	}

	in.Start(time.Now())
	conn := sender(t, in, 0)
	const n = 1000 // the queue holds about ten datagrams; a sender waits while it is full
	for range n {
		send(t, conn, "a:-1|g")
	}
	ops := closed(t, in)
	if ops.Gauges["a"].Count != n || ops.Gauges["a"].Last != -1 || ops.Sources[0].Kind != "unix" || *ops.Sources[0].Datagrams != n {
		t.Errorf("received %+v, want %d values of gauge a, the last of them -1, from a unix source", ops, n)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s still exists after Close", path)
	}
}

// Open replaces the socket of a killed perfagent, but not a regular file.
func TestIntake_ReplacesStaleSocketButNotFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ops.sock")
	old := check.Value(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	old.Close() // keeps the path
	check.Value(os.Lstat(path))(t)
	in := opened(t, "unix:"+path)
	in.Close()

	check.Must(t, os.WriteFile(path, []byte("mine"), 0o600))
	if _, err := Open(Options{Address: Address{Path: path}}); err == nil {
		t.Error("Open returned no error for the path of a file")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("content of the file = %q, error %v; want \"mine\"", data, err)
	}
}

// Close keeps a file with which the job has replaced the socket.
func TestIntake_CloseKeepsFileThatReplacedSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ops.sock")
	in := opened(t, "unix:"+path)
	check.Must(t, os.Rename(path, path+".old")) // so that its inode is not reused
	check.Must(t, os.WriteFile(path, []byte("mine"), 0o600))
	in.Close()
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("content of the file after Close = %q, error %v; want \"mine\"", data, err)
	}
}

func TestIntake_DropsDatagramBeyondMaxDatagram(t *testing.T) {
	in := started(t, "unix:"+filepath.Join(t.TempDir(), "s"))
	conn := sender(t, in, 0)
	send(t, conn, "a:1|c\n"+strings.Repeat("b:1|c\n", 10917)) // 65,508 bytes
	send(t, conn, strings.Repeat("c:1|c\n", 10917))           // 65,502
	if ops := closed(t, in); ops.Dropped.TooLong != 1 || ops.Counters["a"] != 0 || ops.Counters["c"] != 10917 {
		t.Errorf("counters %v, dropped %+v; want only c 10917, and one datagram dropped as too long", ops.Counters, ops.Dropped)
	}
}

func TestIntake_ReturnsMarksOnce(t *testing.T) {
	in := started(t, "on")
	send(t, sender(t, in, 0), "_e{5,4}:epoch|text|d:1795357692\n_e{3,0}:two|", "a:1|c")
	ops, got := closed(t, in), in.Marks()
	now := marks.UnixSeconds(time.Now())
	if len(got.Lines) != 2 || got.Dropped.Marks != 0 || got.Lines[0] != marks.NewMarkLine("epoch", 1795357692) ||
		got.Lines[1].At < now-60 || ops.Sources[0].Events != 3 {
		t.Errorf("marks %+v, operations %+v; want the marks epoch and two, none dropped, and 3 events", got, ops)
	}
	if more := in.Marks(); more.Lines != nil || more.Dropped.Marks != 0 {
		t.Errorf("the second Marks returned %+v, want no marks", more)
	}
}

// Marks beyond the limit per sample are counted.
func TestIntake_CountsMarksBeyondLimit(t *testing.T) {
	in := started(t, "on")
	const n = 300
	send(t, sender(t, in, 0), strings.Repeat("_e{5,1}:epoch|x\n", maxMarks), strings.Repeat("_e{5,1}:later|x\n", n))
	ops := closed(t, in)
	if got := in.Marks(); len(got.Lines) != maxMarks || got.Dropped.Marks != n || ops.Sources[0].Events != maxMarks+n {
		t.Errorf("got %d marks, dropped %+v, operations %+v; want %d marks, %d dropped, all counted as events", len(got.Lines), got.Dropped, ops, maxMarks, n)
	}
}

// A copy for the journal does not change when further samples are collected.
func TestIntake_CopyDoesNotChange(t *testing.T) {
	in := started(t, "on")
	conn := sender(t, in, 0)
	send(t, conn, "a:4|c")
	var early *aggregate.Aggregator
	for early == nil || early.Operations(time.Now()).Counters["a"] == 0 { // until the datagram is received
		time.Sleep(time.Millisecond)
		early = in.CopyAggregator()
	}
	means, keys := in.Collect(time.Now(), nil)
	if !slices.Equal(keys, []string{"counter:a:per_second"}) || len(means) != 1 || !(means[0].Mean() > 0) {
		t.Errorf("Collect returned keys %v, means %v; want counter:a:per_second with a mean above 0", keys, means)
	}
	send(t, conn, "a:5|c")
	if ops := closed(t, in); ops.Counters["a"] != 9 || early.Operations(time.Now()).Counters["a"] != 4 {
		t.Errorf("counters at the end %v, in the earlier copy %v; want a 9 and a 4", ops.Counters,
			early.Operations(time.Now()).Counters)
	}
}

// Calls from other goroutines are safe even while the caller of Close uses the returned Aggregator.
func TestIntake_CopyDuringCloseIsSafe(t *testing.T) {
	in := started(t, "on")
	send(t, sender(t, in, 0), "queue:7|g")
	var askers sync.WaitGroup
	stop := make(chan struct{})
	asked := make(chan struct{}, 1)
	askers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				in.CopyAggregator().Operations(time.Now())
				select {
				case asked <- struct{}{}:
				default:
				}
			}
		}
	})
	<-asked
	whole := in.Close()
	for range 100 {
		whole.Collect(time.Now(), nil)
	}
	close(stop)
	askers.Wait()
	if got := in.CopyAggregator().Operations(time.Now()).Gauges["queue"].Last; got != 7 {
		t.Errorf("gauge queue in a copy after Close = %v, want 7", got)
	}
}

func TestBudget_PausesUntilNextTenthWhenUsedUp(t *testing.T) {
	const ms = time.Millisecond
	b := budget{most: maxUse}
	for _, tt := range []struct{ at, spend, pause time.Duration }{
		{10 * ms, 60 * ms, 0}, {110 * ms, 60 * ms, 0}, {210 * ms, 60 * ms, 0}, {310 * ms, 60 * ms, 0}, // not used up
		{350 * ms, 10 * ms, 50 * ms}, {360 * ms, 0, 40 * ms}, {950 * ms, 0, 50 * ms},
		{1000 * ms, 0, 0}, // the first tenth is more than a second ago
		{1010 * ms, 60 * ms, 90 * ms}, {1020 * ms, 0, 80 * ms},
		{time.Hour + 20*ms, 0, 0}, {time.Hour + 30*ms, time.Second, 70 * ms},
	} {
		if tt.spend > 0 { // otherwise pause alone advances the tenths
			b.spend(tt.at, tt.spend)
		}
		if p := b.pause(tt.at); p != tt.pause {
			t.Errorf("pause at %v after another %v of CPU time = %v, want %v", tt.at, tt.spend, p, tt.pause)
		}
	}
}
