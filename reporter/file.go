package reporter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFileSize is the largest report that is read: a merged report of a thousand
// nodes is kept below it (see Merge).
const maxFileSize = 256 << 20

// WriteNew writes a report file that must not be there yet: to a temporary file,
// synced, then given its name, so that the name never shows half a report and
// never replaces another. It returns fs.ErrExist when the name is taken. The
// directory is not synced: after a power failure in that moment either the report
// or the journal, which is removed later, is there.
func WriteNew(path string, data []byte) error {
	return named("report", path, writeFile(path, data, (*os.File).Sync, renameNew))
}

// Write writes a report file, replacing what has the name.
func Write(path string, data []byte) error {
	return named("report", path, writeFile(path, data, (*os.File).Sync, os.Rename))
}

// WritePicture writes a file that can be made again from a report: as WriteNew, or
// with replace as Write, but without waiting for the disk.
func WritePicture(path string, data []byte, replace bool) error {
	place := renameNew
	if replace {
		place = os.Rename
	}
	what := "picture"
	if strings.EqualFold(filepath.Ext(path), ".html") {
		what = "page"
	}
	return named(what, path, writeFile(path, data, func(*os.File) error { return nil }, place))
}

func named(what, path string, err error) error {
	if err != nil {
		return fmt.Errorf("write %s %s: %w", what, path, err)
	}
	return nil
}

func writeFile(path string, data []byte, sync func(*os.File) error, place func(from, to string) error) error {
	tmp, err := createBeside(path)
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, sync(tmp), tmp.Close()); err == nil {
		err = place(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// createBeside makes the temporary file: hidden, with the permissions that the
// umask leaves, which os.CreateTemp does not ask for.
func createBeside(path string) (*os.File, error) {
	for k := 0; ; k++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.%d.tmp", filepath.Base(path), os.Getpid(), k))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// linkNew is renameNew by a hard link, which refuses a taken name atomically;
// file systems that have none get a look before the rename.
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

// readFile reads a whole file of at most maxFileSize.
func readFile(path string) ([]byte, error) {
	// A FIFO that nobody writes to must not hold us: it reads as empty.
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, errors.New("is a directory, not a report")
	}
	if st.Size() > maxFileSize {
		return nil, fmt.Errorf("is %d MiB large: only perfagent plot reads reports of more than %d MiB", st.Size()>>20, maxFileSize>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("is larger than the %d MiB that a report may have", maxFileSize>>20)
	}
	return data, nil
}
