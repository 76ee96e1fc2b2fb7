//go:build !linux

package procfile

// DescendsFrom reports false: other processes are not looked at.
func DescendsFrom(int) bool { return false }
