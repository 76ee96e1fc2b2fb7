package reportfile

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/internal/durable"
)

// WriteNew writes a report, by fill, to a file that must not exist yet, and waits until it is on disk.
// The name never shows half a report. If it is taken, the error is fs.ErrExist.
func WriteNew(path string, fill func(io.Writer) error) error {
	return writeError("report", path, durable.WriteStream(path, false, fill))
}

// Write is like WriteNew but replaces an existing file.
func Write(path string, fill func(io.Writer) error) error {
	return writeError("report", path, durable.WriteStream(path, true, fill))
}

// WriteStream is like Write, or WriteNew unless replace is set, for a report that fill writes part by part. An error of
// fill is returned as it is.
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

// WritePicture writes a page or a picture, by fill, which can be made again from its report: whole or not
// at all, but without waiting for the disk. Unless replace is set, the error is fs.ErrExist if
// the name is taken.
func WritePicture(path string, replace bool, fill func(io.Writer) error) error {
	what := "picture"
	if strings.EqualFold(filepath.Ext(path), ".html") {
		what = "page"
	}
	return writeError(what, path, durable.WriteStreamUnsynced(path, replace, fill))
}

// ErrReplaced is the error of Rewrite for a file that no longer holds the expected bytes.
var ErrReplaced = durable.ErrChanged

// Rewrite replaces the bytes of a report that still holds old, keeping its name and permissions.
// If path is a symbolic link, the file it points to is replaced.
func Rewrite(path string, old, data []byte) error {
	return writeError("report", path, durable.CompareAndSwap(path, old, data))
}

func writeError(what, path string, err error) error {
	if err != nil {
		return fmt.Errorf("write %s %s: %w", what, path, err)
	}
	return nil
}
