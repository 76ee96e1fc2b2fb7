package intake

import (
	"fmt"
	"net"
	"os"
	"time"
)

// maxSend is how long a datagram waits for a receiver. UDP never waits. A Unix socket waits once about ten datagrams
// are unread, which are read at once unless the machine is busy or perfagent has stopped.
const maxSend = 100 * time.Millisecond

// A Sender sends lines to the perfagent that this program runs under. A nil Sender sends nothing.
type Sender struct{ conn net.Conn }

// Dial returns a Sender to the address in the environment that [Intake.Environ] makes. Without an address, which is so
// outside of perfagent, the Sender is nil.
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

// Send sends one datagram. An error means that there is nobody to receive it, or that the receiver has stopped.
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
		_ = s.conn.Close() // what was sent is sent
	}
}
