//go:build !linux

package procfile

import "os"

// IsAncestor always returns false, because other processes are not read on this system.
func IsAncestor(int) bool { return false }

// FilesAreScarce always returns false, because nothing is kept open on this system.
func FilesAreScarce() bool { return false }

// ReadFile reads the kernel file at path. On Linux it avoids the extra system calls of os.ReadFile. On this system,
// which has no such files, it calls os.ReadFile.
func ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }
