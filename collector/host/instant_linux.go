package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// Now reads the machine's three clocks.
func Now() Instant {
	return Instant{Wall: time.Now().Round(0), Mono: procfile.Clock(unix.CLOCK_MONOTONIC),
		Boot: procfile.Clock(unix.CLOCK_BOOTTIME)}
}
