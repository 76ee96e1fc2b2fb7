package marks

import (
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/durable"
)

// Append appends a line to the file at path, and creates the file if it does not exist. It uses a single write, so that
// lines of several programs do not mix. If the file is not empty, it first writes a line end, in case another program
// has left an incomplete line. It returns an error if path is not a regular file.
func Append(path string, l Line) error {
	f, err := durable.OpenAppend(path)
	if err != nil {
		return fmt.Errorf("write mark: %w", err)
	}

	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file: %v", path, info.Mode())
	case info.Size() > 0:
		_, err = f.Write(l.Append([]byte("\n")))
	default:
		_, err = f.Write(l.Append(nil))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write mark: %w", err)
	}

	return nil
}
