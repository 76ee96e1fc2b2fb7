package intake

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// senderVar makes this program a job that sends datagrams. The value is ADDRESS RATE LINES SECONDS, where RATE is the
// number of datagrams per second and LINES the number of lines in each. The job keeps two CPUs busy.
const senderVar = "INTAKE_TEST_SENDER"

func TestMain(m *testing.M) {
	if what := os.Getenv(senderVar); what != "" {
		if err := sendSteadily(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sendSteadily sends two hundred bursts of datagrams per second, and prints the number of datagrams sent.
func sendSteadily(what string) error {
	var address string
	var rate, lines, seconds int
	if _, err := fmt.Sscan(what, &address, &rate, &lines, &seconds); err != nil {
		return err
	}
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	for range 2 {
		go func() {
			for began := time.Now(); time.Since(began) >= 0; {
			}
		}()
	}

	datagram := []byte(strings.Repeat("gunicorn.request.duration:12.345678|ms\n", lines))
	sent := 0
	for began := time.Now(); time.Since(began) < time.Duration(seconds)*time.Second; {
		for due := int(time.Since(began).Seconds() * float64(rate)); sent < due; sent++ {
			if _, err := conn.Write(datagram); err != nil {
				return err
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Print(sent)

	return nil
}

// ownCPU returns the CPU time of this process.
func ownCPU(t testing.TB) time.Duration {
	t.Helper()
	var r syscall.Rusage
	check.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// While the job keeps two CPUs busy, 20,000 datagrams of one line, or 100,000 lines in larger datagrams, arrive per
// second. The test prints their CPU cost; with the race detector on a slow machine, it exceeds the budget.
func TestIntake_ReceivesAllAtHighRates(t *testing.T) {
	testenv.SkipIfShort(t, "three seconds at each rate")
	testenv.NeedsRoot(t, "to get a receive buffer larger than net.core.rmem_max")
	for _, tt := range []struct{ rate, lines int }{{20000, 1}, {3334, 30}} {
		t.Run(fmt.Sprintf("%d datagrams of %d lines", tt.rate, tt.lines), func(t *testing.T) {
			for began := time.Now(); time.Since(began) < time.Minute; { // the machine may be busy for a while
				if receivesAll(t, tt.rate, tt.lines) {
					return
				}
			}
			t.Error("datagrams were lost in each try for a minute, want one try without losses")
		})
	}
}

// receivesAll reports whether all datagrams of another process were received. It fails the test if a lost datagram was
// not counted.
func receivesAll(t *testing.T, rate, lines int) bool {
	t.Helper()
	in := opened(t, "on")
	in.budget.most = time.Hour
	in.Start(time.Now())
	before, cmd := ownCPU(t), exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d 3", senderVar, in.sockets[0].address, rate, lines))
	out, ops := check.Value(cmd.Output())(t), closed(t, in)
	used := ownCPU(t) - before

	got, lost := *ops.Sources[0].Datagrams, ops.Dropped.Kernel+ops.Dropped.RateLimited
	t.Logf("%s datagrams sent, %d received, %d lost, %v of CPU time per datagram", out, got, lost, used/time.Duration(max(1, got)))
	if fmt.Sprint(got+lost) != string(out) || ops.Sources[0].Events != got*int64(lines) {
		t.Fatalf("%d received and %d dropped datagrams with %d events, want %s datagrams in total and %d events; operations %+v", got,
			lost, ops.Sources[0].Events, out, got*int64(lines), ops)
	}
	return lost == 0
}

// BenchmarkOpenStartClose measures the total delay of a job that ends immediately. The budget is 200 µs.
func BenchmarkOpenStartClose(b *testing.B) {
	for b.Loop() {
		in := mustOpen(b, "on")
		in.Start(time.Now())
		in.Close()
	}
}

// BenchmarkCollect measures the cost per sample without datagrams. The budget is 20 µs with one sample per second.
func BenchmarkCollect(b *testing.B) {
	in := started(b, "on")
	send(b, sender(b, in, 0), "a:1|c", "b:1|ms")
	means, keys := in.Collect(time.Now(), nil)
	for len(keys) < 3 {
		time.Sleep(time.Millisecond)
		means, keys = in.Collect(time.Now(), means[:0])
	}
	b.ReportAllocs()
	for b.Loop() {
		means, _ = in.Collect(time.Now(), means[:0])
	}
}

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
	check.Must(t, unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1))
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
	in := started(t, "on")
	conn, r := sender(t, in, 0), rand.New(rand.NewPCG(1, 2))
	datagrams := make([][]byte, 64)
	for i := range datagrams {
		for len(datagrams[i]) < 60000 {
			datagrams[i] = append(datagrams[i], []byte("x:1|ms|#a:b,c:d\n\xff\xfe\n{\"op\":\"y\",\"ms\":1}\n")...)
		}
		datagrams[i][r.IntN(len(datagrams[i]))] = byte(r.Int())
	}

	var sent int64
	dropped := func() bool { return kernelDrops(in.sockets[0].fd, 0) > 0 }
	began := time.Now()
	for time.Since(began) < 2*time.Second || time.Since(began) < time.Minute && !dropped() {
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
	in := started(t, "unix:"+t.TempDir()+"/s")
	in.mu.Lock()
	in.budget.most = 0 // it is used up
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
	check.Must(t, err)
	for range 2000 {
		var sendErr error
		if err := raw.Control(func(fd uintptr) { sendErr = unix.Sendto(int(fd), []byte("a:1|c"), unix.MSG_DONTWAIT, nil) }); err != nil || sendErr != nil {
			t.Fatalf("send with MSG_DONTWAIT: errors %v, %v; want none (EAGAIN means that it would have to wait)", err, sendErr)
		}
	}
}
