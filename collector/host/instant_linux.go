package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads the three clocks of the machine.
func Now() Instant {
	return Instant{Wall: time.Now().Round(0), Mono: clock(unix.CLOCK_MONOTONIC), Boot: clock(unix.CLOCK_BOOTTIME)}
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
