//go:build !linux

package process

import "time"

// CPUTime reports false: the clocks of processes are read on Linux only.
func CPUTime(int) (time.Duration, bool) { return 0, false }

// A UsageReader reads what single processes use, on Linux only.
type UsageReader struct{}

// Self returns nothing on this system.
func (*UsageReader) Self() Usage { return Usage{} }

// Family returns nothing on this system.
func (*UsageReader) Family(int) Usage { return Usage{} }
