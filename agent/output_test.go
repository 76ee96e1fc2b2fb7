package agent

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Git ignores the default directory. A directory that the user has named or made is not changed.
func TestRun_HidesDefaultOutFromGit(t *testing.T) {
	t.Chdir(t.TempDir())
	o := shell(t, "true")
	ignored := func(out string) bool {
		data, err := os.ReadFile(filepath.Join(out, ".gitignore"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(data) == "*\n"
	}

	for _, c := range []struct {
		name, out string
		before    func() error
		want      bool
	}{
		{"made", "", func() error { return nil }, true},
		{"named", "mine", func() error { return nil }, false},
		{"there", "", func() error { return errors.Join(os.RemoveAll(DefaultOut), os.Mkdir(DefaultOut, 0o755)) }, false},
		{"there and ignored", "", func() error {
			return os.WriteFile(filepath.Join(DefaultOut, ".gitignore"), []byte("*.html\n"), 0o644)
		}, false},
	} {
		if err := c.before(); err != nil {
			t.Fatal(err)
		}
		o.Out = c.out
		mustRun(t, o)
		if got := ignored(cmp.Or(c.out, DefaultOut)); got != c.want {
			t.Errorf("%s: .gitignore ignores everything: %t, want %t", c.name, got, c.want)
		}
	}
}

// A job that cannot start leaves no directory behind, unless it contains other files.
func TestRun_FailedStartRemovesDefaultOut(t *testing.T) {
	t.Chdir(t.TempDir())
	o := shell(t, "")
	o.Out, o.Args = "", []string{"./script"}
	if err := os.WriteFile("script", []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}

	if r, err := Run(t.Context(), o); err == nil {
		t.Fatalf("Run of a script without interpreter: %+v, want an error", r)
	}
	if _, err := os.Stat(DefaultOut); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat %s: %v, want %v", DefaultOut, err, fs.ErrNotExist)
	}
}
