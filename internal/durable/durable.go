// Package durable writes files completely or not at all, and reads files within bounds.
//
// A file is written under a temporary name, synced, and then renamed. So readers never see a part of the file, and a
// crash leaves either the old file or the new one.
package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteNew writes a file that must not exist yet, and waits until its contents are on disk. If the name is taken, it
// returns fs.ErrExist. It does not sync the directory, so the name may be missing after a power failure.
func WriteNew(path string, data []byte) error {
	return WriteStream(path, false, bytesOf(data))
}

// Write is like WriteNew but replaces an existing file.
func Write(path string, data []byte) error {
	return WriteStream(path, true, bytesOf(data))
}

// WriteStream is like Write, or like WriteNew if replace is false, for content that fill writes. It returns errors from
// fill unchanged.
func WriteStream(path string, replace bool, fill func(io.Writer) error) error {
	return write(path, fill, (*os.File).Sync, placing(replace))
}

// WriteStreamUnsynced is like WriteStream but does not wait for the disk. It is for files that can be created again.
func WriteStreamUnsynced(path string, replace bool, fill func(io.Writer) error) error {
	return write(path, fill, func(*os.File) error { return nil }, placing(replace))
}

// placing returns a function that renames a file. If replace is set, it may replace another file.
func placing(replace bool) func(from, to string) error {
	if replace {
		return os.Rename
	}
	return renameNew
}

// ErrChanged is the error of CompareAndSwap for a file that no longer holds the expected bytes.
var ErrChanged = errors.New("it was replaced in the meantime")

// CompareAndSwap replaces the contents of the file with data if they are still old, and keeps its name and permissions.
// It does not detect a change between the check and the replacement. If path is a symbolic link, the target is
// replaced.
func CompareAndSwap(path string, old, data []byte) error {
	now, err := ReadFile(path, int64(len(old)))
	if tooLarge := (*SizeError)(nil); errors.As(err, &tooLarge) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(now, old) {
		return ErrChanged
	}

	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	st, err := os.Stat(target)
	if err != nil {
		return err
	}

	place := func(from, to string) error {
		return errors.Join(os.Chmod(from, st.Mode().Perm()), os.Rename(from, to))
	}
	return write(target, bytesOf(data), (*os.File).Sync, place)
}

// bytesOf returns a function that writes data.
func bytesOf(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

func write(
	path string, fill func(io.Writer) error, sync func(*os.File) error, place func(from, to string) error,
) error {
	tmp, err := createBeside(path)
	if err != nil {
		return err
	}

	if err = fill(tmp); err == nil {
		err = sync(tmp)
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = place(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// createBeside creates a hidden temporary file in the directory of path. Unlike with os.CreateTemp, the umask
// determines the permissions.
func createBeside(path string) (*os.File, error) {
	for k := 0; ; k++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.%d.tmp", filepath.Base(path), os.Getpid(), k))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// linkNew implements renameNew with a hard link: link(2) fails atomically if the name is taken. On file systems without
// hard links, linkNew checks the name and then renames the file.
func linkNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) {
		return fs.ErrExist
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// nonblock makes open(2) of a FIFO return immediately even if the other end is not open.
const nonblock = syscall.O_NONBLOCK

// Open opens a file for reading. It never waits for the writer of a FIFO. Without a writer, a FIFO reads as empty.
func Open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|nonblock, 0)
}

// OpenAppend opens a file for appending, and creates it if it does not exist. It never waits for the reader of a FIFO.
// If a FIFO has no reader, OpenAppend returns an error.
func OpenAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|nonblock, 0o666)
}

// ReadRegular is like ReadFile, but only for regular files. For any other file, it returns an error without opening it.
// Its errors contain the path.
func ReadRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a regular file")}
	}
	if err == nil && info.Size() > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is larger than %d kB", limit>>10)}
	}
	if err != nil {
		return nil, err
	}
	return ReadFile(path, limit)
}

// ErrDirectory is the error of ReadFile for a directory.
var ErrDirectory = errors.New("is a directory")

// SizeError is the error of ReadFile for a file that is larger than the limit.
type SizeError struct {
	Size int64 // size of the file; 0 if unknown, as for a pipe
}

// Error implements error.
func (e *SizeError) Error() string {
	if e.Size == 0 {
		return "is too large"
	}
	return fmt.Sprintf("is too large: %d bytes", e.Size)
}

// ReadFile reads a whole file of at most limit bytes. Its error is ErrDirectory, a *SizeError, or an error from package
// os.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, ErrDirectory
	}
	if st.Size() > limit {
		return nil, &SizeError{st.Size()}
	}

	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit { // the file is a pipe, or has grown
		return nil, &SizeError{}
	}
	return data, nil
}
