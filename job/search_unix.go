//go:build unix

package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// defaultPath is the search path of glibc's execvp(3) if PATH is not set.
const defaultPath = "/bin:/usr/bin"

// Resolve returns the file that Start would execute for name: name itself if it has a slash, otherwise the first
// executable file in the directories of PATH. As in execvp(3), an empty directory means the current directory, an unset
// PATH means /bin:/usr/bin, and a file without permission does not end the search. The errors are ErrNotFound,
// ErrNotExecutable, and ErrNoProcess if the kernel could not check the file.
func Resolve(name string) (string, error) {
	var found string
	err := search(name, func(file string) error {
		found = file
		return checkExecutable(file)
	})
	if err != nil {
		return "", explain(name, err)
	}
	return found, nil
}

// search executes the first of the command's candidate files that can be executed.
func (c Command) search(execute func(file string, argv []string) error) error {
	if c.Path != "" {
		if err := attempt(c.Path, c.Args, execute); err == nil || !continuesSearch(err) {
			return err
		}
	}
	return search(c.Args[0], func(file string) error {
		if err := checkExecutable(file); errors.Is(err, syscall.ENOENT) || isFileError(err) {
			return err
		}
		return attempt(file, c.Args, execute) // the kernel decides
	})
}

// search calls try with each file that name may mean until try succeeds. It returns the error that execvp(3) would
// return. The errors of try are errnos.
func search(name string, try func(file string) error) error {
	if name == "" {
		return syscall.ENOENT
	}

	if strings.Contains(name, "/") {
		return try(name)
	}

	path, set := os.LookupEnv("PATH")
	if !set {
		path = defaultPath
	}

	last := error(syscall.ENOENT)
	for _, dir := range strings.Split(path, ":") {
		file := name
		if dir != "" {
			file = dir + "/" + name
		}
		err := try(file)
		if err == nil || !continuesSearch(err) {
			return err
		}
		if errors.Is(err, syscall.EACCES) || errors.Is(err, errInterpreter) {
			last = err // worth reporting, unless a later directory has the command
		}
	}

	return last
}

// continuesSearch reports whether the search goes on after a file that failed with err.
func continuesSearch(err error) bool {
	return isOneOf(err,
		syscall.EACCES, syscall.ENOENT, syscall.ENOTDIR, syscall.ENODEV, syscall.ESTALE, syscall.ETIMEDOUT)
}

// isOneOf reports whether err is one of errnos.
func isOneOf(err error, errnos ...syscall.Errno) bool {
	return slices.ContainsFunc(errnos, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// errInterpreter is the kernel's ENOENT for a file that exists.
var errInterpreter = fmt.Errorf("its interpreter (first line or program header) is missing: %w", syscall.ENOENT)

// checkExecutable checks cheaply whether executing file can succeed. Its errors are errnos.
func checkExecutable(file string) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Errorf("is a directory: %w", syscall.EACCES)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return syscall.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}

// attempt executes file, by fork and exec or by exec in place. A text file in no executable format is given to /bin/sh,
// as execvp(3) does.
func attempt(file string, args []string, execute func(file string, argv []string) error) error {
	err := execute(file, args)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return errInterpreter
	case errors.Is(err, syscall.ENOEXEC) && isText(file):
		argv := append([]string{"/bin/sh", file}, args[1:]...)
		return execute("/bin/sh", argv)
	}
	return err
}

// isText reports whether file may be a shell script: it can be opened, and its first line holds no NUL byte, which is
// bash's rule. Data may follow, as in self-extracting scripts. An empty file is an empty script.
func isText(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false
	}
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return !bytes.Contains(first, []byte{0})
}

// explain converts an errno to one of the package's errors. An errno that cannot be due to the file becomes
// ErrNoProcess, because creating the process may have failed. Exec may still succeed in that case; otherwise it fails
// with the same errno.
func explain(name string, err error) error {
	kind := ErrNoProcess
	switch {
	case errors.Is(err, syscall.ENOENT):
		kind = ErrNotFound
	case isFileError(err):
		kind = ErrNotExecutable
	}
	if err == syscall.ENOENT {
		return fmt.Errorf("run %q: %w", name, kind)
	}
	return fmt.Errorf("run %q: %w: %w", name, kind, err)
}

// isFileError reports whether err means that the file cannot be executed, at least not with these arguments.
func isFileError(err error) bool {
	return isOneOf(err,
		syscall.EACCES, syscall.ENOEXEC, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG,
		syscall.E2BIG, syscall.ETXTBSY, syscall.EINVAL, syscall.ENODEV, syscall.ESTALE, syscall.ETIMEDOUT)
}
