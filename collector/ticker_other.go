//go:build !linux

package collector

import "time"

// A tickFile exists on Linux only.
type tickFile struct{}

func openTicks(time.Duration, time.Duration) *tickFile { return nil }

func (*tickFile) wait() bool { return false }

func (*tickFile) close() {}
