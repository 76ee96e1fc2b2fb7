//go:build !linux

package collector

import (
	"os"
	"time"
)

func tickFile(time.Duration, time.Duration) *os.File { return nil }
