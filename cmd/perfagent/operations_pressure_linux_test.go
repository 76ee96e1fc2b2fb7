package main

import (
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter"
)

// flood is a helper that sends datagrams as fast as possible while its stdin is open. It prints their number, and the
// longest time of one in microseconds.
func flood() {
	to := os.Getenv("PERFAGENT_OPS_ADDR")
	conn, err := net.Dial("udp", to)
	if err != nil {
		clitest.Println(os.Stdout, "failed", err)
		return
	}

	stop := make(chan struct{})
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // until EOF
		close(stop)
	}()
	clitest.Println(os.Stdout, "sends")

	sent, longest := 0, time.Duration(0)
	for on := true; on; {
		select {
		case <-stop:
			on = false
		default:
			start := time.Now()
			if _, err := conn.Write([]byte("flood:1|c")); err != nil {
				clitest.Println(os.Stdout, "failed", err)
				return
			}
			sent, longest = sent+1, max(longest, time.Since(start))
		}
	}
	clitest.Println(os.Stdout, "sent", sent)
	clitest.Println(os.Stdout, "longest", longest.Microseconds())
}

// lostAndFound returns the datagrams that a node has read, and those that it knows to be lost.
func lostAndFound(n *reporter.Node) (read, lost int64) {
	for _, s := range n.Operations.Sources {
		if s.Datagrams != nil {
			read += *s.Datagrams
		}
	}
	return read, n.Operations.Dropped.Kernel + n.Operations.Dropped.RateLimited
}

// A job that floods a stopped perfagent does not block, and every lost datagram is counted.
func TestOperations_StoppedPerfagentCountsLostDatagrams(t *testing.T) {
	t.Parallel()
	cmd := clitest.AsHelper(clitest.Perfagent(t, "run", "--ops", "on", "--", os.Args[0]), "flood")
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := clitest.StartProcess(t, cmd)
	p.Expect("sends")

	p.Signal(syscall.SIGSTOP)
	time.Sleep(2 * time.Second) // the largest buffer is full after 0.3 s
	p.Signal(syscall.SIGCONT)
	time.Sleep(200 * time.Millisecond) // read and sent concurrently
	hold.Close()

	sent, err := strconv.ParseInt(p.Field("sent"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	longest, err := strconv.ParseInt(p.Field("longest"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := p.End()
	n := o.Report(t).Nodes["0"]
	read, lost := lostAndFound(n)
	if read+lost != sent || lost == 0 {
		t.Errorf("%d datagrams read, %d lost; want %d together, and some lost", read, lost, sent)
	}
	if got := n.Operations.Counters["flood"]; got != float64(read) {
		t.Errorf("counter flood is %v, want %v, the datagrams read", got, read)
	}
	if longest > 1_000_000 {
		t.Errorf("one datagram took %d µs to send, want at most 1 s while perfagent was stopped for 2 s", longest)
	}
}
