//go:build amd64 || arm64

package job

import (
	"errors"
	"syscall"
	"testing"
)

// If a start fails for a reason other than the file, the caller may become the job. But a child that was made may have
// been the job, which must not run twice.
func TestExplainStart_ErrNoProcessOnlyIfJobDidNotRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		errno syscall.Errno
		made  bool
		want  error
	}{
		{syscall.ENOENT, false, ErrNotFound}, {syscall.ENOENT, true, ErrNotFound},
		{syscall.EACCES, true, ErrNotExecutable}, {syscall.ENOEXEC, true, ErrNotExecutable},
		{syscall.EPERM, false, ErrNoProcess}, {syscall.ENOSYS, false, ErrNoProcess}, {syscall.ENOSPC, false, ErrNoProcess},
		{syscall.EMFILE, false, ErrNoProcess}, {syscall.EAGAIN, true, ErrNoProcess}, {syscall.ENOMEM, true, ErrNoProcess},
		{syscall.ENOSPC, true, ErrNotExecutable}, {syscall.EMFILE, true, ErrNotExecutable},
	} {
		err := explainStart("job", c.errno, c.made)
		for _, kind := range []error{ErrNotFound, ErrNotExecutable, ErrNoProcess} {
			if errors.Is(err, kind) != (kind == c.want) {
				t.Errorf("%v, child made %v: error %v, want only %v", c.errno, c.made, err, c.want)
			}
		}
	}
}
