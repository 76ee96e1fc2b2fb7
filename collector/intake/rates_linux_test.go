package intake

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

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
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// While the job keeps two CPUs busy, 20,000 datagrams of one line, or 100,000 lines in larger datagrams, arrive per
// second. The test prints their CPU cost; with the race detector on a slow machine, it exceeds the budget.
func TestIntake_ReceivesAllAtHighRates(t *testing.T) {
	testenv.SkipIfShort(t, "three seconds at each rate")
	testenv.NeedsRoot(t, "to get a receive buffer larger than net.core.rmem_max")
	for _, tt := range []struct {
		rate, lines int
	}{{20000, 1}, {3334, 30}} {
		t.Run(fmt.Sprintf("%d datagrams of %d lines", tt.rate, tt.lines), func(t *testing.T) {
			const tries = 4 // the machine may be busy for a while
			for range tries {
				if receivesAll(t, tt.rate, tt.lines) {
					return
				}
			}
			t.Errorf("datagrams were lost in each of %d tries, want one try without losses", tries)
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
	before := ownCPU(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d 3", senderVar, in.sockets[0].address, rate, lines))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ops := closed(t, in)
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
	in := opened(b, "on")
	in.Start(time.Now())
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
