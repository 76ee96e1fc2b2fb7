package process

import (
	"errors"
	"fmt"
	"io/fs"
)

// A failure counts the processes that could not be read, and keeps the first of them.
type failure struct {
	n     int
	first error
}

// note adds a process whose file could not be read.
func (t *Tree) note(f *failure, pid int32, name string, err error) {
	if f.n++; f.n == 1 {
		f.first = fmt.Errorf("%s/%d/%s: %w", t.proc(), pid, name, err)
	}
}

// why returns the reason for people, or nil if nothing failed.
func (f *failure) why(what string, of int) error {
	if f.n == 0 {
		return nil
	}
	hint := ""
	if errors.Is(f.first, fs.ErrPermission) {
		hint = " (to read other users' processes, run perfagent as root)"
	}
	return fmt.Errorf("%s of %d of %d processes cannot be read%s, the first: %w", what, f.n, of, hint, f.first)
}
