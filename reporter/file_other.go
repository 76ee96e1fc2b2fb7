//go:build !linux

package reporter

import "os"

// nonblock is for FIFOs, on Linux.
const nonblock = 0

// openQuietly opens a file for reading.
func openQuietly(path string) (*os.File, error) { return os.Open(path) }

// renameNew gives a file its name unless the name is taken (fs.ErrExist).
func renameNew(from, to string) error { return linkNew(from, to) }
