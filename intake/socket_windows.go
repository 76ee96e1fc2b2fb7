package intake

import "time"

// receive waits until a datagram comes, and reads it. It reports false when the Intake is closed.
func (s *socket) receive() bool {
	n, _, err := s.conn.ReadFrom(s.buffer)
	if err != nil {
		return false
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.closed {
		return false
	}

	s.chunk(func([]byte) (int, bool) {
		size := n
		n = -1
		return size, size >= 0
	})
	s.empty = false // nobody knows

	return true
}

// readMore reads a datagram if there is one, and waits a moment for it. It reports whether there was one. The caller
// holds the lock.
func (s *socket) readMore() bool {
	if s.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	return s.chunk(func(buffer []byte) (int, bool) {
		n, _, err := s.conn.ReadFrom(buffer)
		return n, err == nil
	})
}
