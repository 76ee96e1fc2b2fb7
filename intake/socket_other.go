//go:build !linux

package intake

import (
	"syscall"
	"time"
)

// enlarge leaves the receive buffer as it is.
func enlarge(syscall.RawConn) {}

// private does nothing: the mode is set when the socket is there.
func private(_, _ string, _ syscall.RawConn) error { return nil }

// drops is empty, because nothing is known.
type drops struct{}

// dropped returns 0: the system does not say how much it drops.
func (s *socket) dropped() int64 { return 0 }

// threadTime returns the time, in place of the CPU time of this thread.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
