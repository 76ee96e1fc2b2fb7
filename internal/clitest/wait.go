package clitest

import (
	"os"
	"testing"
	"time"
)

// WaitUntil waits for something that no pipe and no channel reports.
func WaitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > Longest {
			t.Fatalf("not within %v: %s", Longest, what)
		}
	}
}

// Exists reports whether there is something at a path, be it a link that leads nowhere.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Write writes a file of a test, and returns its path.
func Write(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns what is in a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
