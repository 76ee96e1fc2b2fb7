package reportertest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// CompareGolden compares got with a golden file. If update is set, it writes the file first.
func CompareGolden(t testing.TB, file string, got []byte, update bool) {
	t.Helper()
	if update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("output differs from %s (go test -update rewrites it):\n%s\nwant:\n%s", file, got, want)
	}
}
