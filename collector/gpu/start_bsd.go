//go:build unix && !linux

package gpu

import "syscall"

// ownGroup returns the attributes of a process in a new process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
