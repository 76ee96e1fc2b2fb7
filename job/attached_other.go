//go:build !linux

package job

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// An Attached is a process that this one did not start. Only Linux has them.
type Attached struct{}

// Attach returns an error: there are no other processes to be watched on this system.
func Attach(pid int) (*Attached, error) {
	return nil, fmt.Errorf("process %d: processes are attached to on Linux only, and this is %s", pid, runtime.GOOS)
}

// Close does nothing.
func (a *Attached) Close() {}

// Wait reports true at once.
func (a *Attached) Wait(context.Context, time.Duration) bool { return true }

// Status knows nothing.
func (a *Attached) Status() (exitCode int, signal string, err error) { return 0, "", nil }
