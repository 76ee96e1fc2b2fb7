package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreePort returns an unused loopback port below the range for outgoing connections. No other test gets the same port
// until this test ends: the UDP port of the same number reserves it.
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
