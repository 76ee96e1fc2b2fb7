package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteNew_NeverReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	for name, place := range map[string]func(string, string) error{"rename": renameNew, "link": linkNew} {
		t.Run(name, func(t *testing.T) {
			os.Remove(path)
			if err := write(path, bytesOf([]byte("first")), (*os.File).Sync, place); err != nil {
				t.Fatal(err)
			}
			err := write(path, bytesOf([]byte("second")), (*os.File).Sync, place)
			if !errors.Is(err, fs.ErrExist) {
				t.Errorf("second write: error %v, want %v", err, fs.ErrExist)
			}
			got, _ := os.ReadFile(path)
			if string(got) != "first" {
				t.Errorf("the file holds %q, want \"first\"", got)
			}
			entries, _ := os.ReadDir(filepath.Dir(path))
			if len(entries) != 1 {
				t.Errorf("directory has %v, want only the file", entries)
			}
		})
	}
}

// CompareAndSwap keeps permissions and links, and leaves no other file.
func TestCompareAndSwap_KeepsModeAndLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "sub", "node-0.json"), filepath.Join(dir, "link.json")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/node-0.json", link); err != nil {
		t.Skipf("this system does not support symbolic links: %v", err)
	}
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o444, 0o777} {
		os.Remove(path)
		if err := os.WriteFile(path, []byte("old"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // override the umask
			t.Fatal(err)
		}
		old := "old"
		for _, name := range []string{path, link} {
			if err := CompareAndSwap(name, []byte("other"), []byte("lost")); !errors.Is(err, ErrChanged) {
				t.Errorf("CompareAndSwap of a replaced file: error %v, want %v", err, ErrChanged)
			}
			if err := CompareAndSwap(name, []byte(old), []byte(name)); err != nil {
				t.Fatal(err)
			}
			old = name
			st, err := os.Stat(path)
			if err != nil || st.Mode() != mode {
				t.Errorf("mode after the swap = %v, want %v (stat: %v)", st.Mode(), mode, err)
			}
			if text, err := os.ReadFile(path); string(text) != name {
				t.Errorf("the file holds %q (%v), want %q", text, err, name)
			}
		}
		if st, err := os.Lstat(link); err != nil || st.Mode().Type() != fs.ModeSymlink {
			t.Errorf("mode of the link = %v (%v), want a symbolic link", st.Mode(), err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("directory has %v (%v), want only the file", left, err)
	}
	if err := CompareAndSwap(filepath.Join(dir, "nowhere"), nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CompareAndSwap of a missing file: error %v, want %v", err, fs.ErrNotExist)
	}
}

// A file with a different length counts as changed, however large it is.
func TestCompareAndSwap_DetectsChangedLength(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.json")
	for _, now := range []string{"", "ol", "older"} {
		if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CompareAndSwap(path, []byte("old"), []byte("new")); !errors.Is(err, ErrChanged) {
			t.Errorf("CompareAndSwap of a file that contains %q, not \"old\": error %v, want %v", now, err, ErrChanged)
		}
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(path, 4); err != nil || string(data) != "1234" {
		t.Errorf("ReadFile = %q, %v; want \"1234\", nil", data, err)
	}
	var tooLarge *SizeError
	if _, err := ReadFile(path, 3); !errors.As(err, &tooLarge) || tooLarge.Size != 4 {
		t.Errorf("file above the limit: error %v, want a *SizeError of 4 bytes", err)
	}
	if _, err := ReadFile(dir, 4); !errors.Is(err, ErrDirectory) {
		t.Errorf("directory: error %v, want %v", err, ErrDirectory)
	}
	if _, err := ReadFile(filepath.Join(dir, "x"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestWriteStream(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.json")
	lines := func(w io.Writer) error {
		for _, line := range []string{"one\n", "two\n"} {
			if _, err := io.WriteString(w, line); err != nil {
				return err
			}
		}
		return nil
	}
	failed := errors.New("failed")
	for _, c := range []struct {
		replace bool
		fill    func(io.Writer) error
		err     error
	}{{false, lines, nil}, {false, lines, fs.ErrExist}, {true, lines, nil}, {true, func(w io.Writer) error {
		return errors.Join(lines(w), failed)
	}, failed}} {
		if err := WriteStream(path, c.replace, c.fill); !errors.Is(err, c.err) {
			t.Errorf("WriteStream with replace = %v: error %v, want %v", c.replace, err, c.err)
		}
		if data, err := os.ReadFile(path); string(data) != "one\ntwo\n" {
			t.Errorf("the file holds %q (%v), want two lines", data, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("directory has %v (%v), want only the file", left, err)
	}
}
