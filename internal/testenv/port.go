package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreePort returns an unused loopback port below the range for outgoing connections. Until the test ends, FreePort does
// not return the same port to other tests: it reserves the port by the UDP port with the same number.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		ours, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", ours.LocalAddr().String())
		if err != nil {
			ours.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { ours.Close() })
		return port
	}
	t.Fatal("no free port found on the loopback interface")
	return 0
}
