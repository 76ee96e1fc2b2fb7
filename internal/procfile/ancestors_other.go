//go:build !linux

package procfile

// DescendsFrom always returns false, because other processes are not read on this system.
func DescendsFrom(int) bool { return false }
