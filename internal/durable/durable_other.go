//go:build !linux

package durable

import "os"

// OpenNoAtime is the same as Open, because this system has no O_NOATIME.
func OpenNoAtime(path string) (*os.File, error) { return Open(path) }

// renameNew renames a file. If the new name is taken, it returns fs.ErrExist.
func renameNew(from, to string) error { return linkNew(from, to) }
