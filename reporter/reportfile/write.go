package reportfile

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/internal/durable"
)

// WriteNew creates a file with the report that fill writes, and waits until the file is on disk. There is never an
// incomplete report at path. If a file exists at path, the error is fs.ErrExist.
func WriteNew(path string, fill func(io.Writer) error) error {
	return writeError("report", path, durable.WriteStream(path, false, fill))
}

// Write is like WriteNew but replaces an existing file.
func Write(path string, fill func(io.Writer) error) error {
	return writeError("report", path, durable.WriteStream(path, true, fill))
}

// WriteStream is like Write, or like WriteNew if replace is false, for a report that fill writes in parts. An error
// from fill is returned unchanged.
func WriteStream(path string, replace bool, fill func(io.Writer) error) error {
	var wrong error
	err := durable.WriteStream(path, replace, func(w io.Writer) error {
		wrong = fill(w)
		return wrong
	})
	if wrong != nil {
		return wrong
	}
	return writeError("report", path, err)
}

// WritePicture creates a file with the page or picture that fill writes, completely or not at all. It does not wait for
// the disk, because the file can be created again from its report. If replace is false and the file exists, the error
// is fs.ErrExist.
func WritePicture(path string, replace bool, fill func(io.Writer) error) error {
	what := "picture"
	if strings.EqualFold(filepath.Ext(path), ".html") {
		what = "page"
	}
	return writeError(what, path, durable.WriteStreamUnsynced(path, replace, fill))
}

// ErrReplaced is the error of Rewrite for a file that no longer contains the expected bytes.
var ErrReplaced = durable.ErrChanged

// Rewrite replaces a report that still contains old with data, keeping its name and permissions. If path is a symbolic
// link, its target is replaced.
func Rewrite(path string, old, data []byte) error {
	return writeError("report", path, durable.CompareAndSwap(path, old, data))
}

func writeError(what, path string, err error) error {
	if err != nil {
		return fmt.Errorf("write %s %s: %w", what, path, err)
	}
	return nil
}
