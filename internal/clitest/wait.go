package clitest

import (
	"os"
	"testing"
	"time"
)

// WaitUntil polls ok until it returns true. It is for events that neither a pipe nor a channel can signal.
func WaitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > Longest {
			t.Fatalf("condition still false after %v: %s", Longest, what)
		}
	}
}

// Exists reports whether path exists, even as a dangling link.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Write writes text to the file at path and returns path.
func Write(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns the content of the file at path.
func Read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
