package reportfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// Errors contain the path and the kind of file.
func TestWrite_ErrorsContainPathAndKindOfFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.html")
	check.Must(t, os.WriteFile(path, []byte("old"), 0o600))
	text := func(words string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, words)
			return err
		}
	}
	nothing := func(io.Writer) error { return nil }
	for _, c := range []struct {
		begin string
		err   error
		is    error
	}{
		{"write report " + path, WriteNew(path, text("1")), fs.ErrExist},
		{"write page " + path, WritePicture(path, false, nothing), fs.ErrExist},
		{"write picture " + path + "/x.svg", WritePicture(path+"/x.svg", true, nothing), nil},
		{"write report " + path, Rewrite(path, []byte("other"), nil), ErrReplaced},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), c.begin+": ") || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("error %v, want one that begins with %q and wraps %v", c.err, c.begin, c.is)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "old" {
		t.Errorf("the file has %q, want old (error %v)", data, err)
	}
	check.Must(t, Write(path, text("1")))
	check.Must(t, WritePicture(path, true, text("2")))
	check.Must(t, Rewrite(path, []byte("2"), []byte("3")))
}

// WriteStream returns an error from fill, and leaves no file.
func TestWriteStream_LeavesNoFileIfFillFails(t *testing.T) {
	t.Parallel()
	dir, failed := t.TempDir(), errors.New("failed")
	fill := func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, failed)
	}
	path := filepath.Join(dir, "a.html")
	for name, err := range map[string]error{
		"report": WriteStream(path, false, fill), "page": WritePicture(path, false, fill), "page again": WritePicture(path, true, fill),
	} {
		if !errors.Is(err, failed) {
			t.Errorf("%s: error %v, want %v", name, err, failed)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, want none (error %v)", left, err)
	}
}
