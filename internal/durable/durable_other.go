//go:build !linux

package durable

import "os"

// OpenNoAtime is Open: this system has no O_NOATIME.
func OpenNoAtime(path string) (*os.File, error) { return Open(path) }

// renameNew renames a file unless the new name is taken (fs.ErrExist).
func renameNew(from, to string) error { return linkNew(from, to) }
