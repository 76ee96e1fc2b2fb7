//go:build !linux

package agent

// holdPMI returns false on this system.
func holdPMI() bool { return false }
