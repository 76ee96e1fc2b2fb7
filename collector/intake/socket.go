package intake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/collector/intake/wire"
)

// MaxDatagram is the size of the largest datagram of UDP, in bytes. Larger ones of a Unix socket are cut.
const MaxDatagram = 65507

// wantedBuffer is how large a receive buffer is asked for: 8 MiB.
const wantedBuffer = 8 << 20

// A socket receives datagrams of one dialect.
type socket struct {
	handle
	in      *Intake
	kind    string // statsd, dogstatsd or unix
	dialect wire.Dialect
	address string // for the report
	path    string // of a Unix socket
	file    os.FileInfo
	port    netip.AddrPort
	source  int

	event      wire.Event
	buffer     []byte
	discarding bool  // datagrams are thrown away: the budget is used up
	empty      bool  // the last read found nothing more
	newest     int64 // how many datagrams there were since it did before
}

// A datagramConn is a socket of package net.
type datagramConn interface {
	net.PacketConn
	syscall.Conn
}

// openUDP opens two ports that follow each other, or any two.
func openUDP(a Address) ([]*socket, error) {
	first, err := listenUDP(a, a.Port)
	if err != nil {
		return nil, err
	}
	first.kind, first.dialect = "statsd", wire.StatsD

	next := a.Port
	if next != 0 {
		next++
	}
	second, err := listenUDP(a, next)
	if err != nil {
		return nil, errors.Join(err, first.handle.close())
	}
	second.kind, second.dialect = "dogstatsd", wire.DogStatsD

	return []*socket{first, second}, nil
}

// listenUDP opens one port.
func listenUDP(a Address, port uint16) (*socket, error) {
	network := "udp"
	if a.Host.Is4() {
		network = "udp4" // "udp" makes [::] of 0.0.0.0, and the job would be told ::1, which not every client takes
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a.Host, port)))
	if err != nil {
		return nil, fmt.Errorf("open UDP port %s: %w (--ops on takes any free ports)",
			net.JoinHostPort(a.Host.String(), strconv.Itoa(int(port))), cause(err))
	}
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	s, err := newSocket(conn)
	if err != nil {
		return nil, err
	}
	s.port = local
	s.address = s.jobAddress()

	return s, nil
}

// newSocket returns a socket of a connection, which belongs to the socket from then on.
func newSocket(conn datagramConn) (*socket, error) {
	h, err := newHandle(conn)
	if err != nil {
		return nil, fmt.Errorf("prepare a socket: %w", errors.Join(err, conn.Close()))
	}
	return &socket{handle: h, buffer: make([]byte, MaxDatagram+1)}, nil
}

// openUnix opens a Unix socket that only this user may send to. A socket that a perfagent has left behind is replaced.
func openUnix(path string) ([]*socket, error) {
	lc := net.ListenConfig{Control: restrictMode}
	conn, err := lc.ListenPacket(context.Background(), "unixgram", path)
	if errors.Is(err, syscall.EADDRINUSE) && isStaleSocket(path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replace socket %s, which nobody reads: %w", path, cause(err))
		}
		conn, err = lc.ListenPacket(context.Background(), "unixgram", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open socket %s: %w", path, cause(err))
	}

	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, conn.Close(), os.Remove(path))
	}
	s, err := newSocket(conn.(*net.UnixConn))
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	s.kind, s.dialect, s.address, s.path = "unix", wire.DogStatsD, path, path
	if s.file, err = os.Lstat(path); err != nil {
		return nil, errors.Join(err, s.handle.close())
	}

	return []*socket{s}, nil
}

// isStaleSocket reports whether a path is that of a socket that nobody reads.
func isStaleSocket(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unixgram", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// cause returns what the system said, without the names of operation and address that package net puts before it.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// jobAddress returns the address at which the job reaches a UDP port.
func (s *socket) jobAddress() string {
	a := s.port.Addr().Unmap()
	switch {
	case a.IsUnspecified() && a.Is4():
		a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case a.IsUnspecified():
		a = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(a, s.port.Port()).String()
}

// close closes the socket, and removes its path unless the job has put something else there.
func (s *socket) close() error {
	err := s.handle.close()
	if s.path == "" {
		return err
	}

	file, errFile := os.Lstat(s.path)
	if errFile != nil || !os.SameFile(file, s.file) {
		return errors.Join(err, errFile)
	}
	return errors.Join(err, os.Remove(s.path))
}

// gather is how long a UDP port is not read after all that were there have been: a wake-up takes as long as a hundred
// datagrams. A large buffer has room for a longer time, unless more comes than a few.
const (
	coalesceDelay     = 10 * time.Millisecond
	longCoalesceDelay = 100 * time.Millisecond
	few               = 1000 // datagrams at once
)

// pause returns how long the socket is not read: for a while if it is empty, longer if the budget is used up. The
// senders of a Unix socket wait once about ten datagrams are unread, so that is always read, and what comes while the
// budget is used up is thrown away. The caller holds the lock.
func (s *socket) pause() time.Duration {
	over := s.in.budget.pause(time.Since(s.in.began))
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

// sleep waits for a pause. It reports false if the Intake is closed meanwhile.
func (in *Intake) sleep(timer *time.Timer, pause time.Duration) bool {
	if pause == 0 {
		return true
	}

	timer.Reset(pause)
	select {
	case <-timer.C:
		return true
	case <-in.closing:
		return false
	}
}

// chunk reads and accounts for datagrams until there are none, or until it is time to look at the budget. It reports
// whether there was any. The caller holds the lock. read returns the size of the next datagram, or false if there is
// none.
func (s *socket) chunk(read func(buffer []byte) (n int, ok bool)) bool {
	start := threadTime()
	at := s.in.options.Now()
	var datagrams, events, thrown int64
	if s.empty {
		s.empty, s.newest = false, 0
	}
	for bytes := 0; bytes < maxChunk && datagrams+thrown < maxReads; {
		n, ok := read(s.buffer)
		if !ok {
			s.empty = true
			break
		}
		bytes += n
		if s.discarding {
			thrown++
			continue
		}
		datagrams++
		events += s.in.addDatagram(s, s.buffer[:n], at)
	}
	if datagrams+thrown == 0 {
		return false
	}
	s.newest += datagrams + thrown

	s.in.aggregator.AddReceived(s.source, datagrams, events, at)
	s.in.aggregator.DropDatagrams(0, thrown)
	s.in.budget.spend(time.Since(s.in.began), threadTime()-start)

	return true
}
