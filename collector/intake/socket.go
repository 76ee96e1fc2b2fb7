package intake

import (
	"os"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
)

// MaxDatagram is the size of the largest UDP datagram, in bytes. Larger datagrams to a Unix socket are truncated.
const MaxDatagram = 65507

// A socket receives datagrams of one dialect. Its descriptor is not in Go's network poller, because the poller would
// wake a thread for each datagram that arrives while no goroutine is waiting, which costs twice as much as reading the
// datagram.
type socket struct {
	kind    string // statsd, dogstatsd or unix
	dialect wire.Dialect
	address string      // for the report; for a UDP port, the job sends to it
	path    string      // Unix sockets only
	file    os.FileInfo // of path
	fd      int
	large   bool   // the receive buffer is large enough for datagrams to wait
	counted uint32 // drops counted so far
	source  int

	event      wire.Event
	buffer     []byte
	discarding bool  // discard datagrams, because the budget is used up
	empty      bool  // the last read emptied the socket
	newest     int64 // number of datagrams since the socket was last empty
}

// The pauses after a UDP port was read until it was empty. They save wake-ups, each of which costs as much as reading a
// hundred datagrams. The long pause is for large buffers while few datagrams arrive.
const (
	coalesceDelay     = 10 * time.Millisecond
	longCoalesceDelay = 100 * time.Millisecond
	few               = 1000 // datagrams since the socket was last empty
)

// pause returns how long reading of the socket must pause: for a moment if the socket is empty, and longer if the
// budget is used up. For a Unix socket it is always 0, because senders wait while about ten datagrams are unread; over
// budget, the datagrams are discarded instead. The caller holds the lock.
func (in *Intake) pause(s *socket) time.Duration {
	over := in.budget.pause(time.Since(in.began))
	s.discarding = over > 0 && s.path != ""
	switch {
	case over > 0 && !s.discarding:
		return over
	case s.empty && s.path == "" && s.large && s.newest < few:
		return longCoalesceDelay
	case s.empty && s.path == "":
		return coalesceDelay
	}
	return 0
}
