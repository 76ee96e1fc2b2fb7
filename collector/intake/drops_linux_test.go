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

// total returns the number of all counted datagrams.
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

// Drops in the kernel are counted exactly, even if nothing is received afterwards.
func TestIntake_CountsKernelDropsExactly(t *testing.T) {
	in := opened(t, "on")
	shrink(t, in.sockets[0])
	conn := sender(t, in, 0)
	const n = 1000
	for range n {
		send(t, conn, "a:1|c")
	}
	in.Start(time.Now()) // reading begins only now
	ops := closed(t, in)
	if ops.Dropped.Kernel == 0 || total(ops) != n || ops.Counters["a"] != float64(*ops.Sources[0].Datagrams) {
		t.Errorf("%d of %d datagrams are counted, %d as dropped by the kernel; counter a %v; want all, some, and as many "+
			"as were received: %+v", total(ops), n, ops.Dropped.Kernel, ops.Counters["a"], ops)
	}
}

// A full buffer of 8 MiB holds 10,000 datagrams. They are read, or discarded and counted if the machine cannot read
// them within maxDrain.
func TestIntake_CloseCountsFullLargeBuffer(t *testing.T) {
	testenv.NeedsRoot(t, "to get a receive buffer larger than net.core.rmem_max")
	in := opened(t, "on")
	conn := sender(t, in, 1)
	const n = 10000
	for range n {
		send(t, conn, "a:1|c")
	}
	if ops := closed(t, in); ops.Dropped.Kernel != 0 || total(ops) != n || ops.Counters["a"] == 0 {
		t.Errorf("%d of %d datagrams are counted, dropped %+v, counters %v; want all, none by the kernel, some", total(ops),
			n, ops.Dropped, ops.Counters)
	}
}

// A flood of any datagrams costs at most a quarter of a core, and each datagram is counted.
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
	t.Logf("%d datagrams, %d dropped by the kernel, %v of CPU in the last second", sent, ops.Dropped.Kernel, used)
	if total(ops) != sent || ops.Dropped.Kernel == 0 {
		t.Errorf("%d of %d datagrams are counted, dropped %+v; want all, some by the kernel", total(ops), sent, ops.Dropped)
	}
	// The budget is checked between chunks, and one takes 100 ms with the race detector on a slow machine. Without a
	// budget it would be the whole second.
	if used > 2*maxUse {
		t.Errorf("the flood took %v of CPU in a second, want at most %v", used, 2*maxUse)
	}
}

// The senders of a Unix socket do not wait when the budget is used up: their datagrams are discarded.
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
		t.Errorf("%d of %d datagrams are counted, dropped %+v; want all, some over budget", total(ops), n, ops.Dropped)
	}
}

// A sender does not wait for a perfagent that does not read, and gets no error after its end.
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
			t.Fatalf("send without waiting: %v, %v; want no errors (EAGAIN: it would have to wait)", err, sendErr)
		}
	}
}
