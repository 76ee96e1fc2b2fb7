package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/store"
)

// What is no object is not listed, and takes its name all the same.
func TestStore_StrangeFiles(t *testing.T) {
	dir := t.TempDir()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "job", "node-0.json"), 0o700), syscall.Mkfifo(filepath.Join(dir, "job", "node-1.json"), 0o600),
		os.WriteFile(filepath.Join(dir, "job", "node-2.html"), nil, 0o600), os.WriteFile(filepath.Join(dir, "job", "notes.json"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.WriteFile(filepath.Join(dir, "job", ".node-3.json.tmp"), nil, 0o600))

	s := open(t, dir)
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("listed %v, %v", list, err)
	}
	for _, name := range []string{"job/node-0", "job/node-1"} {
		if err := s.Put(t.Context(), name, nil); !errors.Is(err, store.ErrExists) {
			t.Errorf("put %s: %v", name, err)
		}
		if there, err := s.Exists(t.Context(), name); there || err != nil {
			t.Errorf("exists %s: %v, %v", name, there, err)
		}
		if _, err := s.Get(t.Context(), name); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("get %s: %v", name, err)
		}
	}
	if err := s.Put(t.Context(), "file/node-0", nil); err == nil {
		t.Error("a file where the run's directory should be")
	}

	s = open(t, "proxystore+file://"+dir)
	must(os.WriteFile(filepath.Join(dir, "perfagent.job.node-0.json"), []byte("US\nx"), 0o600),
		os.WriteFile(filepath.Join(dir, "perfagent.job.node-1.json.ready"), nil, 0o600))
	for _, name := range []string{"job/node-0", "job/node-1"} {
		if there, err := s.Exists(t.Context(), name); there || err != nil {
			t.Errorf("half of %s: %v, %v", name, there, err)
		}
		if _, err := s.Get(t.Context(), name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("half of %s: %v", name, err)
		}
		if err := s.Put(t.Context(), name, nil); !errors.Is(err, store.ErrExists) {
			t.Errorf("half of %s: %v", name, err)
		}
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("listed %v, %v", list, err)
	}
}

// A disk that takes nothing costs one error, and leaves nothing behind.
func TestStore_PutFails(t *testing.T) {
	const full = "/dev/full" // no directory can be made below it
	for _, address := range []string{full, "proxystore+file://" + full} {
		s := open(t, address)
		err := s.Put(t.Context(), "job/node-0", []byte("x"))
		var path *fs.PathError
		if !errors.As(err, &path) || errors.Is(err, store.ErrExists) {
			t.Errorf("%s: %v", address, err)
		}
		if n := s.Metrics().Counters["store.put.errors"]; n != 1 || len(s.Metrics().Times) != 0 {
			t.Errorf("%s: %+v", address, s.Metrics())
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := open(t, t.TempDir())
	if err := s.Put(ctx, "job/node-0", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
