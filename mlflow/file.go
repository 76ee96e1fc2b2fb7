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

// errUnfit is the error of readFile for what can be opened, and is not read.
var errUnfit = errors.New("not read")

// readFile reads a regular file of at most so many bytes. Whatever else has its name, a FIFO or a device, neither blocks
// nor is read without end. The error names the file.
func readFile(path string, most int64) ([]byte, error) {
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
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it is no regular file", errUnfit)}
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d MiB", errUnfit, most>>20)}
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}
