package clitest

import (
	"os"
	"testing"
	"time"
)

// WaitUntil polls ok until it is true. It is for events without a pipe or a channel.
func WaitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > Longest {
			t.Fatalf("not within %v: %s", Longest, what)
		}
	}
}

// Exists reports whether path exists, even as a dangling link.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Write writes a file and returns its path.
func Write(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns the content of a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
