package intake

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/testenv"
)

// total returns the number of counted datagrams, both received and dropped.
func total(ops aggregate.Operations) int64 {
	n := ops.Dropped.Kernel + ops.Dropped.RateLimited
	for _, s := range ops.Sources {
		n += *s.Datagrams
	}
	return n
}

// shrink makes the receive buffer of a socket as small as the kernel allows.
func shrink(t *testing.T, s *socket) {
	t.Helper()
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		t.Fatal(err)
	}
}

// Drops in the kernel are counted exactly, even if no datagram is received afterwards.
func TestIntake_CountsKernelDropsExactly(t *testing.T) {
	in := opened(t, "on")
	shrink(t, in.sockets[0])
	conn := sender(t, in, 0)
	const n = 1000
	for range n {
		send(t, conn, "a:1|c")
	}
	in.Start(time.Now()) // reading begins here
	ops := closed(t, in)
	if ops.Dropped.Kernel == 0 || total(ops) != n || ops.Counters["a"] != float64(*ops.Sources[0].Datagrams) {
		t.Errorf("counted %d of %d datagrams, %d dropped by the kernel, counter a = %v; want all, at least 1, and as many "+
			"as were received; operations %+v", total(ops), n, ops.Dropped.Kernel, ops.Counters["a"], ops)
	}
}

// Close reads the 10,000 datagrams in a full buffer of 8 MiB, or discards and counts those that the machine cannot read
// within maxDrain.
func TestIntake_CloseCountsFullLargeBuffer(t *testing.T) {
	testenv.NeedsRoot(t, "to get a receive buffer larger than net.core.rmem_max")
	in := opened(t, "on")
	conn := sender(t, in, 1)
	const n = 10000
	for range n {
		send(t, conn, "a:1|c")
	}
	if ops := closed(t, in); ops.Dropped.Kernel != 0 || total(ops) != n || ops.Counters["a"] == 0 {
		t.Errorf("counted %d of %d datagrams, dropped %+v, counters %v; want all, none dropped by the kernel, and a counter a", total(ops),
			n, ops.Dropped, ops.Counters)
	}
}

// A flood of datagrams costs at most a quarter of a core, and each datagram is counted.
func TestIntake_FloodCostsAtMostQuarterOfCore(t *testing.T) {
	testenv.SkipIfShort(t, "two seconds of a flood")
	in := opened(t, "on")
	in.Start(time.Now())
	conn := sender(t, in, 0)
	r := rand.New(rand.NewPCG(1, 2))
	datagrams := make([][]byte, 64)
	for i := range datagrams {
		for len(datagrams[i]) < 60000 {
			datagrams[i] = append(datagrams[i], []byte("x:1|ms|#a:b,c:d\n\xff\xfe\n{\"op\":\"y\",\"ms\":1}\n")...)
		}
		datagrams[i][r.IntN(len(datagrams[i]))] = byte(r.Int())
	}

	var sent int64
	began := time.Now()
	for time.Since(began) < 2*time.Second {
		if _, err := conn.Write(datagrams[sent%64]); err == nil {
			sent++
		}
	}
	in.mu.Lock()
	var used time.Duration
	for _, s := range in.budget.slots {
		used += s
	}
	in.mu.Unlock()
	ops := closed(t, in)
	t.Logf("%d datagrams, %d dropped by the kernel, %v of CPU time in the last second", sent, ops.Dropped.Kernel, used)
	if total(ops) != sent || ops.Dropped.Kernel == 0 {
		t.Errorf("counted %d of %d datagrams, dropped %+v; want all, and some dropped by the kernel", total(ops), sent, ops.Dropped)
	}
	// The budget is checked between chunks, and a chunk takes 100 ms with the race detector on a slow machine. Without
	// a budget, the flood would use the whole second.
	if used > 2*maxUse {
		t.Errorf("the flood used %v of CPU time in a second, want at most %v", used, 2*maxUse)
	}
}

// When the budget is used up, senders to a Unix socket do not wait, because their datagrams are discarded.
func TestIntake_DiscardsUnixDatagramsOverBudget(t *testing.T) {
	in := opened(t, "unix:"+t.TempDir()+"/s")
	in.Start(time.Now())
	in.mu.Lock()
	in.budget.spend(time.Since(in.began), time.Second) // use up the budget
	in.mu.Unlock()
	conn := sender(t, in, 0)
	const n = 2000
	for range n {
		send(t, conn, "a:1|c")
	}
	if ops := closed(t, in); total(ops) != n || ops.Dropped.RateLimited == 0 {
		t.Errorf("counted %d of %d datagrams, dropped %+v; want all, and some dropped over budget", total(ops), n, ops.Dropped)
	}
}

// A UDP sender neither waits nor fails if perfagent does not read.
func TestIntake_UDPSenderNeverWaits(t *testing.T) {
	in := opened(t, "on")
	shrink(t, in.sockets[0])
	conn := sender(t, in, 0)
	raw, err := conn.(interface {
		SyscallConn() (syscall.RawConn, error)
	}).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		var sendErr error
		if err := raw.Control(func(fd uintptr) { sendErr = unix.Sendto(int(fd), []byte("a:1|c"), unix.MSG_DONTWAIT, nil) }); err != nil || sendErr != nil {
			t.Fatalf("send with MSG_DONTWAIT: errors %v, %v; want none (EAGAIN means that it would have to wait)", err, sendErr)
		}
	}
}
