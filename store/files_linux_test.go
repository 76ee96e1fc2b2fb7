package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/store"
)

// Entries that are no objects are not listed, but take their names.
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

// A link out of a store is not followed: neither the object nor the run exists. A link within the store is.
func TestStore_Links(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "store")
	write := func(path, words string) {
		t.Helper()
		path = filepath.Join(outside, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(words), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("secret.json", "secret")
	write("run/node-0.json", "secret")
	write("perfagent.job.node-2.json", "US\nsecret")
	write("store/job/node-0.json", "ours")
	write("store/perfagent.job.node-2.json.ready", "")
	for to, at := range map[string]string{
		filepath.Join(outside, "secret.json"): "job/node-1.json", "../run": "out", "job": "in",
		filepath.Join(outside, "perfagent.job.node-2.json"): "perfagent.job.node-2.json", "/nothing/there": "job/node-3.json",
	} {
		if err := os.Symlink(to, filepath.Join(dir, at)); err != nil {
			t.Fatal(err)
		}
	}

	s := open(t, dir)
	want(t, s, "in/node-0", "ours")
	list, err := s.List(t.Context(), "")
	if err != nil || len(list) != 2 || list[0].Name != "in/node-0" || list[1].Name != "job/node-0" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := s.List(t.Context(), "out/"); err == nil {
		t.Errorf("a run that lies elsewhere: %v", list)
	}

	python := open(t, "proxystore+file://"+dir)
	for name, s := range map[string]*store.Store{"job/node-1": s, "out/node-0": s, "out/node-9": s, "job/node-2": python} {
		data, err := s.Get(t.Context(), name)
		if err == nil || !strings.HasSuffix(err.Error(), ": a link leads out of the store") {
			t.Errorf("get %s: %q, %v", name, data, err)
		}
		if err := errors.Join(s.Put(t.Context(), name, []byte("new")), s.Evict(t.Context(), name)); err == nil {
			t.Errorf("put and evict %s", name)
		}
	}
	if _, err := s.Get(t.Context(), "job/node-3"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a link to nothing: %v", err)
	}
	for _, path := range []string{"secret.json", "run/node-0.json"} {
		if data, err := os.ReadFile(filepath.Join(outside, path)); err != nil || string(data) != "secret" {
			t.Errorf("%s has %q, %v", path, data, err)
		}
	}
}

// A full disk causes one error, and the put leaves nothing behind.
func TestStore_PutFails(t *testing.T) {
	const full = "/dev/full" // no directory can be created below it
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

// If Python deletes an object before its marker exists, it is put again: a marker alone would take the name for ever.
func TestProxyStore_ClearedDuringPut(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its hundred races")
	dir := filepath.Join(t.TempDir(), "ps")
	s := open(t, "proxystore+file://"+dir)
	payload := filepath.Join(dir, "perfagent.job.node-0.json")
	again := 0
	for range 100 {
		over, removed := make(chan struct{}), make(chan bool)
		go func() {
			for {
				select {
				case <-over:
					removed <- false
					return
				default:
				}
				if os.Remove(payload) == nil {
					removed <- true
					return
				}
			}
		}()

		err := s.Put(t.Context(), "job/node-0", []byte("text"))
		close(over)
		if err != nil {
			t.Fatal(err)
		}
		there, err := s.Exists(t.Context(), "job/node-0")
		if err != nil {
			t.Fatal(err)
		}
		if <-removed && there {
			again++
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if again == 0 {
		t.Error("no object was there again after it had been removed")
	}
}

// A full or read-only disk stores no part of an object. When there is room, it stores the object.
func TestStore_Disks(t *testing.T) {
	if dir := os.Getenv("STORE_TEST_DISK"); dir != "" {
		testDisk(t, dir)
		return
	}
	testenv.NeedsRoot(t, "mounts of its own")
	unshare := testenv.NeedsTool(t, "unshare", "apt-get install util-linux")

	for _, options := range []string{"size=64k", "nr_inodes=2", "ro"} {
		t.Run(options, func(t *testing.T) {
			dir := t.TempDir()
			script := `mount -t tmpfs -o "$1" tmpfs "$2" && STORE_TEST_DISK="$2" exec "$3" -test.run '^TestStore_Disks$' -test.v`
			out, err := exec.Command(unshare, "--mount", "sh", "-c", script, "sh", options, dir, os.Args[0]).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestStore_Disks") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// testDisk puts more than a disk has room for.
func testDisk(t *testing.T, dir string) {
	s := open(t, "proxystore+file://"+dir)
	large := []byte(strings.Repeat("x", 1<<20))
	err := s.Put(t.Context(), "job/node-0", large)
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EROFS) || store.Temporary(err) {
		t.Errorf("put: %v", err)
	}
	if left := glob(t, dir); len(left) > 0 {
		t.Errorf("it has left %q", left)
	}
	if errors.Is(err, syscall.EROFS) {
		return
	}

	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m,nr_inodes=100"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "job/node-0", string(large))
	want(t, s, "job/node-0", string(large))
}
