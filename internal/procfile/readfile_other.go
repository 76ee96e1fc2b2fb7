//go:build !linux

package procfile

import "os"

// ReadFile reads the kernel file at path. On Linux it avoids the extra system calls of os.ReadFile; elsewhere there are
// no such files, and it is os.ReadFile.
func ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }
