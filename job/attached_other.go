//go:build !linux

package job

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// An AttachedProcess is a running process that this program did not start. Only Linux supports attaching.
type AttachedProcess struct{}

// Attach returns an error on this system.
func Attach(pid int) (*AttachedProcess, error) {
	return nil, fmt.Errorf("process %d: perfagent attaches to processes on Linux only, and this is %s", pid, runtime.GOOS)
}

// Close does nothing.
func (a *AttachedProcess) Close() {}

// Wait returns true immediately.
func (a *AttachedProcess) Wait(context.Context, time.Duration) bool { return true }

// Status returns zero values.
func (a *AttachedProcess) Status() (exitCode int, signal string, err error) { return 0, "", nil }
