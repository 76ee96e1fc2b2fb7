package marks

import (
	"errors"
	"fmt"

	"github.com/perfagent/perfagent/internal/durable"
)

// Append adds a line to the file at path, which is made if it is not there. One write adds all of it, so
// that lines of several programs do not mix. It begins with a line end if the file has something already:
// what another program began to write is then a line of its own. What is not a regular file is left alone.
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
