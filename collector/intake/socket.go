package intake

import (
	"os"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
)

// MaxDatagram is the size of the largest UDP datagram, in bytes. Larger datagrams to a Unix socket are truncated.
const MaxDatagram = 65507

// A socket receives datagrams of one dialect. It is a descriptor outside Go's network poller. The poller would wake a
// thread for each datagram that arrives while no goroutine waits for one, which costs twice as much as reading it.
type socket struct {
	kind    string // statsd, dogstatsd or unix
	dialect wire.Dialect
	address string      // for the report; the job reaches a UDP port there
	path    string      // Unix sockets only
	file    os.FileInfo // of path
	fd      int
	large   bool   // the receive buffer is large: datagrams may wait
	counted uint32 // drops counted so far
	source  int

	event      wire.Event
	buffer     []byte
	discarding bool  // discard datagrams: the budget is used up
	empty      bool  // the last read found nothing more
	newest     int64 // number of datagrams since the socket was last empty
}

// The pauses after a UDP port was read until it was empty. They save wake-ups, each of which costs as much as reading a
// hundred datagrams. The long pause is for large buffers while only few datagrams come.
const (
	coalesceDelay     = 10 * time.Millisecond
	longCoalesceDelay = 100 * time.Millisecond
	few               = 1000 // datagrams at once
)

// pause returns how long not to read the socket: a moment if it is empty, longer if the budget is used up. A Unix
// socket is always read, because its senders wait while about ten datagrams are unread; over budget, its datagrams are
// discarded. The caller holds the lock.
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
