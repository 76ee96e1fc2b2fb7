//go:build !linux

package timeout

// IsLocalFS returns false, because this system does not report the type of a file system.
func IsLocalFS(string) bool { return false }
