//go:build !linux

package procfile

// Descends reports false: other processes are not looked at.
func Descends(int) bool { return false }
