//go:build !linux

package reporter

// nonblock is for FIFOs, on Linux.
const nonblock = 0

// renameNew gives a file its name unless the name is taken (fs.ErrExist).
func renameNew(from, to string) error { return linkNew(from, to) }
