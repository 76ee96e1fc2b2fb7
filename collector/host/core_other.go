//go:build !linux

package host

import "time"

// Cores does not look for core files on this system.
func Cores([]string, time.Time) (cores []Core, written bool) { return nil, false }
