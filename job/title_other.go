//go:build !linux

package job

// CopyArgs does nothing on this system.
func CopyArgs() {}

// SetTitle does nothing on this system.
func SetTitle(string) {}
