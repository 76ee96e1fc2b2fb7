//go:build !linux

package host

import "time"

// processStart anchors the monotonic clock, which Go gives only as differences.
var processStart = time.Now()

// Now reads the clocks. There is no boot clock here, so a suspend looks like a step of the wall
// clock.
func Now() Instant {
	mono := time.Since(processStart)
	return Instant{Wall: time.Now().Round(0), Mono: mono, Boot: mono}
}
