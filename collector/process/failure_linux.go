package process

import (
	"errors"
	"fmt"
	"io/fs"
)

// failure counts the processes that could not be read, and keeps the first of them.
type failure struct {
	n     int
	first error
}

func (t *Tree) note(f *failure, pid int32, name string, err error) {
	if f.n++; f.n == 1 {
		f.first = fmt.Errorf("%s/%d/%s: %w", t.proc(), pid, name, err)
	}
}

// why is the reason for people; nil when nothing failed.
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
