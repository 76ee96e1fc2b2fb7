//go:build unix && !linux

package gpu

import "syscall"

// ownGroup returns the attributes that start a process in a new process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
