//go:build !linux

package intake

import (
	"net"
	"syscall"
	"time"
)

// A handle is a socket of package net.
type handle struct {
	conn  net.PacketConn
	large bool // false: the size of the buffer is unknown
}

func newHandle(conn datagramConn) (handle, error) { return handle{conn: conn}, nil }

func (h *handle) close() error { return h.conn.Close() }

// restrictMode does nothing: the mode is set when the socket exists.
func restrictMode(_, _ string, _ syscall.RawConn) error { return nil }

// begin begins to receive, in a goroutine for each socket.
func (in *Intake) begin() error {
	for _, s := range in.sockets {
		in.receivers.Go(s.receive)
	}
	in.wake = func() {
		for _, s := range in.sockets {
			_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // in the past
		}
	}

	return nil
}

// receive waits for datagrams and reads one at a time, until the Intake is closed.
func (s *socket) receive() {
	timer := time.NewTimer(coalesceDelay)
	defer timer.Stop()
	for {
		n, _, err := s.conn.ReadFrom(s.buffer)
		if err != nil {
			return
		}
		if !s.in.sleep(timer, s.take(n)) {
			return
		}
	}
}

// catchUp does nothing: the receivers are always reading.
func (in *Intake) catchUp() {}

// take processes the datagram in the buffer. It returns the pause before the next datagram.
func (s *socket) take(n int) time.Duration {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.closed {
		return coalesceDelay
	}

	s.chunk(func([]byte) (int, bool) {
		size := n
		n = -1
		return size, size >= 0
	})
	s.empty = false // unknown

	return s.pause()
}

// readMore reads a datagram, waits a moment for it, and reports whether there was one. The caller holds the lock.
func (s *socket) readMore() bool {
	if s.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	return s.chunk(func(buffer []byte) (int, bool) {
		n, _, err := s.conn.ReadFrom(buffer)
		return n, err == nil
	})
}

// dropped returns 0: the system does not report drops.
func (s *socket) dropped() int64 { return 0 }

// threadTime returns the wall clock, in place of the CPU time of this thread.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
