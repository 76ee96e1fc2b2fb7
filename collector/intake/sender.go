package intake

import (
	"fmt"
	"net"
	"os"
	"time"
)

// maxSend is how long Send waits for a receiver. UDP never waits. A Unix socket waits while about ten datagrams are
// unread; perfagent reads them at once, unless it has stopped or the machine is busy.
const maxSend = 100 * time.Millisecond

// A Sender sends lines to the perfagent that runs this program. A nil Sender sends nothing.
type Sender struct{ conn net.Conn }

// Dial returns a Sender to the address in the environment made by [Intake.Environ]. Outside of perfagent there is no
// address, and the Sender is nil.
func Dial() (*Sender, error) {
	network, address := "udp", os.Getenv(addrVar)
	if address == "" {
		network, address = "unixgram", os.Getenv(socketVar)
	}
	if address == "" {
		return nil, nil
	}

	conn, err := net.DialTimeout(network, address, maxSend)
	if err != nil {
		return nil, fmt.Errorf("send operations: %w", err)
	}

	return &Sender{conn}, nil
}

// Send sends one datagram. An error means that there is no receiver, or that it has stopped.
func (s *Sender) Send(datagram []byte) error {
	if s == nil {
		return nil
	}
	err := s.conn.SetWriteDeadline(time.Now().Add(maxSend))
	if err == nil {
		_, err = s.conn.Write(datagram)
	}
	if err != nil {
		return fmt.Errorf("send operations: %w", err)
	}

	return nil
}

// Close closes the socket of the Sender.
func (s *Sender) Close() {
	if s != nil {
		_ = s.conn.Close() // nothing is buffered
	}
}
