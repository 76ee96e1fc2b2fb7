//go:build !linux

package procfile

// DescendsFrom reports false: other processes are not read on this system.
func DescendsFrom(int) bool { return false }
