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

// An error names the file and what was to be written there.
func TestWrite_Errors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.html")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := func(w io.Writer) error {
		_, err := io.WriteString(w, "1")
		return err
	}
	for _, c := range []struct {
		begin string
		err   error
		is    error
	}{
		{"write report " + path, WriteNew(path, one), fs.ErrExist},
		{"write page " + path, WritePicture(path, nil, false), fs.ErrExist},
		{"write picture " + path + "/x.svg", WritePicture(path+"/x.svg", nil, true), nil},
		{"write report " + path, Rewrite(path, []byte("other"), nil), ErrReplaced},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), c.begin+": ") || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("%v, want %s", c.err, c.begin)
		}
	}
	if data, err := os.ReadFile(path); string(data) != "old" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if err := errors.Join(Write(path, one), WritePicture(path, []byte("2"), true), Rewrite(path, []byte("2"), []byte("3"))); err != nil {
		t.Error(err)
	}
}
