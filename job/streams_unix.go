//go:build unix

package job

import (
	"errors"
	"syscall"
)

// brokenPipe reports whether err says that a pipe has no reader any more.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
