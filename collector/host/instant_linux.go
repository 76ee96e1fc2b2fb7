package host

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// Now reads the machine's three clocks.
func Now() Instant {
	return Instant{Wall: time.Now().Round(0), Mono: clock(unix.CLOCK_MONOTONIC), Boot: clock(unix.CLOCK_BOOTTIME)}
}

func clock(id int32) time.Duration {
	t, _ := procfile.ClockGettime(id)
	return t
}
