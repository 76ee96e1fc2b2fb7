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

// MaxDatagram is the size of the largest UDP datagram, in bytes. Larger datagrams to a Unix socket are truncated.
const MaxDatagram = 65507

// wantedBuffer is the requested size of receive buffers: 8 MiB.
const wantedBuffer = 8 << 20

// A socket receives datagrams of one dialect.
type socket struct {
	handle
	in      *Intake
	kind    string // statsd, dogstatsd or unix
	dialect wire.Dialect
	address string // for the report
	path    string // Unix sockets only
	file    os.FileInfo
	port    netip.AddrPort
	source  int

	event      wire.Event
	buffer     []byte
	discarding bool  // discard datagrams: the budget is used up
	empty      bool  // the last read found nothing more
	newest     int64 // number of datagrams since the socket was last empty
}

// A datagramConn is a socket of package net.
type datagramConn interface {
	net.PacketConn
	syscall.Conn
}

// openUDP opens the port of a and the next one or, if that is 0, any two ports.
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
		network = "udp4" // "udp" turns 0.0.0.0 into [::] and the job's address into ::1, which some clients reject
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

// newSocket returns a socket for conn, and takes ownership of conn.
func newSocket(conn datagramConn) (*socket, error) {
	h, err := newHandle(conn)
	if err != nil {
		return nil, fmt.Errorf("prepare a socket: %w", errors.Join(err, conn.Close()))
	}
	return &socket{handle: h, buffer: make([]byte, MaxDatagram+1)}, nil
}

// openUnix opens a Unix socket that only this user may send to. It replaces a socket without a reader, such as one left
// behind by perfagent.
func openUnix(path string) ([]*socket, error) {
	lc := net.ListenConfig{Control: restrictMode}
	conn, err := lc.ListenPacket(context.Background(), "unixgram", path)
	if errors.Is(err, syscall.EADDRINUSE) && isStaleSocket(path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replace the unused socket %s: %w", path, cause(err))
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

// isStaleSocket reports whether path is a socket without a reader.
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

// cause returns the system's error, without the operation and the address that package net adds.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// jobAddress returns the address at which the job reaches the UDP port.
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

// close closes the socket, and removes its path unless the job has replaced it.
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

// sleep waits for pause. It returns false if the Intake is closed meanwhile.
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

// chunk reads and processes datagrams until there are none, or until the budget is due for a check. It reports whether
// there were any. read returns the size of the next datagram, or false if there is none. The caller holds the lock.
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
