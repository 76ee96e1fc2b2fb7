package reportfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error contains the path and the kind of file.
func TestWrite_ErrorsHaveThePathAndTheKindOfFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.html")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := func(w io.Writer) error {
		_, err := io.WriteString(w, "1")
		return err
	}
	nothing := func(io.Writer) error { return nil }
	for _, c := range []struct {
		begin string
		err   error
		is    error
	}{
		{"write report " + path, WriteNew(path, one), fs.ErrExist},
		{"write page " + path, WritePicture(path, false, nothing), fs.ErrExist},
		{"write picture " + path + "/x.svg", WritePicture(path+"/x.svg", true, nothing), nil},
		{"write report " + path, Rewrite(path, []byte("other"), nil), ErrReplaced},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), c.begin+": ") || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("error %v, want it to begin with %q and to wrap %v", c.err, c.begin, c.is)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "old" {
		t.Errorf("the file has %q, want old (error %v)", data, err)
	}
	two := func(w io.Writer) error {
		_, err := io.WriteString(w, "2")
		return err
	}
	if err := errors.Join(Write(path, one), WritePicture(path, true, two), Rewrite(path, []byte("2"), []byte("3"))); err != nil {
		t.Errorf("replacing the file three times: %v", err)
	}
}

// An error of fill is returned, and leaves no file.
func TestWriteStream_ErrorOfFillLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir, failed := t.TempDir(), errors.New("failed")
	fill := func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return failed
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
