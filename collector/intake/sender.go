package intake

import (
	"fmt"
	"net"
	"os"
	"time"
)

// maxSend is the timeout of a send. A send over UDP never blocks. A send to a Unix socket blocks while about ten
// datagrams are unread; perfagent reads them immediately, unless it has stopped or the machine is busy.
const maxSend = 100 * time.Millisecond

// Dial returns a function that sends a datagram to the perfagent that runs this program, at the address that
// [Intake.Environ] has put into the environment. send returns an error if there is no receiver, or if the receiver has
// stopped. Outside of perfagent, there is no address, and send is nil.
func Dial() (send func(datagram []byte) error, err error) {
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
	return func(datagram []byte) error {
		err := conn.SetWriteDeadline(time.Now().Add(maxSend))
		if err == nil {
			_, err = conn.Write(datagram)
		}
		if err != nil {
			return fmt.Errorf("send operations: %w", err)
		}
		return nil
	}, nil
}
