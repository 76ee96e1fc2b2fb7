package mlflow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	maxCredentials = 1 << 20  // bytes of ~/.mlflow/credentials
	maxCertificate = 16 << 20 // bytes of a file of certificates
)

// errUnfit reports a file that can be opened, but should not be read.
var errUnfit = errors.New("not read")

// readFile reads a regular file of at most max bytes. A FIFO or a device of that name neither
// blocks nor is read without end. The error names the file.
func readFile(path string, max int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it is not a regular file", errUnfit)}
	}

	text, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(text)) > max {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d MiB", errUnfit, max>>20)}
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}
