//go:build unix

package intake

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// receive waits until a datagram comes, and reads what there is. It reports false when the Intake is closed.
func (s *socket) receive() bool {
	open := true
	err := s.raw.Read(func(fd uintptr) bool {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		if s.in.closed {
			open = false
			return true
		}
		return s.readChunk(fd)
	})
	return open && err == nil
}

// readMore reads some of what there is, without waiting. It reports whether there was anything. The caller holds the lock.
func (s *socket) readMore() (some bool) {
	err := s.raw.Control(func(fd uintptr) { some = s.readChunk(fd) })
	return some && err == nil
}

// readChunk is chunk with read(2). The thread stays the same, so that its CPU time can be measured.
func (s *socket) readChunk(fd uintptr) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	return s.chunk(func(buffer []byte) (int, bool) {
		for {
			n, err := unix.Read(int(fd), buffer)
			if err != unix.EINTR {
				return n, err == nil
			}
		}
	})
}
