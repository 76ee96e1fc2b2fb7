//go:build !linux

package intake

import (
	"errors"
	"time"
)

// On other systems, there are no sockets, but endpoints are scraped.

func openSockets(Address) ([]*socket, error) {
	return nil, errors.New("perfagent receives operations only on Linux; --scrape works on this system, too")
}

func (in *Intake) begin() error { return nil }

func (in *Intake) read(*socket) bool { return false }

func (s *socket) dropped() int64 { return 0 }

func (s *socket) close() error { return nil }

func threadTime() time.Duration { return 0 }
