package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/store"
)

// Directory entries that are not objects are not listed, but their names are taken.
func TestStore_ForeignFilesTakeNamesButAreNotListed(t *testing.T) {
	dir := t.TempDir()
	check.Must(t, os.MkdirAll(filepath.Join(dir, "job", "node-0.json"), 0o700))
	check.Must(t, syscall.Mkfifo(filepath.Join(dir, "job", "node-1.json"), 0o600))
	for _, name := range []string{"job/node-2.html", "job/notes.json", "file", "job/.node-3.json.tmp"} {
		writeFile(t, filepath.Join(dir, name), "")
	}

	s := open(t, dir)
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v, want none", list, err)
	}
	for _, name := range []string{"job/node-0", "job/node-1"} {
		if err := s.Put(t.Context(), name, nil); !errors.Is(err, store.ErrExists) {
			t.Errorf("Put(%s): %v, want ErrExists", name, err)
		}
		if there, err := s.Exists(t.Context(), name); there || err != nil {
			t.Errorf("Exists(%s) = %v, %v, want false", name, there, err)
		}
		if _, err := s.Get(t.Context(), name); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get(%s): %v, want an error other than ErrNotFound", name, err)
		}
	}
	if err := s.Put(t.Context(), "file/node-0", nil); err == nil {
		t.Error("Put succeeded with a file in place of the run's directory, want an error")
	}

	s = open(t, "proxystore+file://"+dir)
	writeFile(t, filepath.Join(dir, "perfagent.job.node-0.json"), "US\nx")
	writeFile(t, filepath.Join(dir, "perfagent.job.node-1.json.ready"), "")
	for _, name := range []string{"job/node-0", "job/node-1"} {
		if there, err := s.Exists(t.Context(), name); there || err != nil {
			t.Errorf("%s with one of its two files: Exists = %v, %v, want false, nil", name, there, err)
		}
		if _, err := s.Get(t.Context(), name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("half of %s: Get: %v, want ErrNotFound", name, err)
		}
		if err := s.Put(t.Context(), name, nil); !errors.Is(err, store.ErrExists) {
			t.Errorf("half of %s: Put: %v, want ErrExists", name, err)
		}
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("List of a ProxyStore = %v, %v, want none", list, err)
	}
}

// A link out of a store is not followed: neither the object nor the run behind it exists. A link within the store is
// followed.
func TestStore_DoesNotFollowLinksOutOfStore(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "store")
	for path, words := range map[string]string{
		"secret.json": "secret", "run/node-0.json": "secret", "perfagent.job.node-2.json": "US\nsecret",
		"store/job/node-0.json": "ours", "store/perfagent.job.node-2.json.ready": "",
	} {
		writeFile(t, filepath.Join(outside, path), words)
	}
	for to, at := range map[string]string{
		filepath.Join(outside, "secret.json"): "job/node-1.json", "../run": "out", "job": "in",
		filepath.Join(outside, "perfagent.job.node-2.json"): "perfagent.job.node-2.json", "/nothing/there": "job/node-3.json",
	} {
		check.Must(t, os.Symlink(to, filepath.Join(dir, at)))
	}

	s := open(t, dir)
	want(t, s, "in/node-0", "ours")
	list, err := s.List(t.Context(), "")
	if err != nil || len(list) != 2 || list[0].Name != "in/node-0" || list[1].Name != "job/node-0" {
		t.Errorf("List = %v, %v, want in/node-0 and job/node-0", list, err)
	}
	if list, err := s.List(t.Context(), "out/"); err == nil {
		t.Errorf("List of a run that is a link out of the store = %v, want an error", list)
	}

	python := open(t, "proxystore+file://"+dir)
	for name, s := range map[string]*store.Store{"job/node-1": s, "out/node-0": s, "out/node-9": s, "job/node-2": python} {
		data, err := s.Get(t.Context(), name)
		if err == nil || !strings.HasSuffix(err.Error(), ": a link leads out of the store") {
			t.Errorf("Get(%s) = %q, %v, want the error that a link leads out of the store", name, data, err)
		}
		if err := errors.Join(s.Put(t.Context(), name, []byte("new")), s.Evict(t.Context(), name)); err == nil {
			t.Errorf("Put and Evict of %s succeeded through a link out of the store, want an error", name)
		}
	}
	if _, err := s.Get(t.Context(), "job/node-3"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of a link to nothing: %v, want ErrNotFound", err)
	}
	for _, path := range []string{"secret.json", "run/node-0.json"} {
		if data, err := os.ReadFile(filepath.Join(outside, path)); err != nil || string(data) != "secret" {
			t.Errorf("%s outside the store has %q, %v, want secret", path, data, err)
		}
	}
}

// A failed put counts as one error and leaves nothing behind.
func TestStore_FailedPutCountsOneError(t *testing.T) {
	const full = "/dev/full" // no directory can be created below it
	for _, address := range []string{full, "proxystore+file://" + full} {
		s := open(t, address)
		err := s.Put(t.Context(), "job/node-0", []byte("x"))
		var path *fs.PathError
		if !errors.As(err, &path) || errors.Is(err, store.ErrExists) {
			t.Errorf("Put in %s: %v, want a PathError other than ErrExists", address, err)
		}
		if n := s.Metrics().Counters["store.put.errors"]; n != 1 || len(s.Metrics().Times) != 0 {
			t.Errorf("metrics of %s: %+v, want one store.put.errors and no times", address, s.Metrics())
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := open(t, t.TempDir())
	if err := s.Put(ctx, "job/node-0", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Put with a canceled context: %v, want context.Canceled", err)
	}
}

// If Python deletes an object before its marker exists, the object is put again, because a marker alone would take the
// name forever.
func TestStore_PutRetriesIfPythonDeletesObject(t *testing.T) {
	testenv.SkipIfShort(t, "a second for a hundred races")
	dir := filepath.Join(t.TempDir(), "ps")
	s := open(t, "proxystore+file://"+dir)
	payload := filepath.Join(dir, "perfagent.job.node-0.json")
	again := 0
	for range 100 {
		var over atomic.Bool
		removed := make(chan bool)
		go func() {
			gone := false
			for !gone && !over.Load() {
				gone = os.Remove(payload) == nil
			}
			removed <- gone
		}()

		err := s.Put(t.Context(), "job/node-0", []byte("text"))
		over.Store(true)
		check.Must(t, err)
		there := check.Value(s.Exists(t.Context(), "job/node-0"))(t)
		if <-removed && there {
			again++
		}
		check.Must(t, os.RemoveAll(dir))
	}
	if again == 0 {
		t.Error("of 100 objects removed during their put, none existed afterwards, want at least one")
	}
}

// A put on a full or read-only disk leaves no part of an object. Once there is room, it succeeds.
func TestStore_FullDiskLeavesNoPartialObject(t *testing.T) {
	if dir := os.Getenv("STORE_TEST_DISK"); dir != "" {
		testDisk(t, dir)
		return
	}
	testenv.NeedsRoot(t, "mounts of its own")
	unshare := testenv.NeedsTool(t, "unshare", "apt-get install util-linux")

	for _, options := range []string{"size=64k", "nr_inodes=2", "ro"} {
		t.Run(options, func(t *testing.T) {
			dir := t.TempDir()
			script := `mount -t tmpfs -o "$1" tmpfs "$2" && STORE_TEST_DISK="$2" exec "$3" -test.run '^TestStore_FullDiskLeavesNoPartialObject$' -test.v`
			out, err := exec.Command(unshare, "--mount", "sh", "-c", script, "sh", options, dir, os.Args[0]).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestStore_FullDiskLeavesNoPartialObject") {
				t.Errorf("the test on the mounted disk failed: %v\n%s", err, out)
			}
		})
	}
}

// testDisk puts an object that does not fit on the disk.
func testDisk(t *testing.T, dir string) {
	s := open(t, "proxystore+file://"+dir)
	large := []byte(strings.Repeat("x", 1<<20))
	err := s.Put(t.Context(), "job/node-0", large)
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EROFS) || store.Temporary(err) {
		t.Errorf("Put on a full or read-only disk: %v, want a permanent ENOSPC or EROFS", err)
	}
	if left := glob(t, dir); len(left) > 0 {
		t.Errorf("the failed Put left %q, want nothing", left)
	}
	if errors.Is(err, syscall.EROFS) {
		return
	}

	check.Must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m,nr_inodes=100"))
	put(t, s, "job/node-0", string(large))
	want(t, s, "job/node-0", string(large))
}
