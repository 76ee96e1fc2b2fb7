package store_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/store"
)

// A faulty is a connector with failing operations: a put fails after the object is stored, and a get before the object
// is read.
type faulty struct {
	store.Connector
	objects   map[string][]byte
	lostPuts  int // number of puts with a lost response
	lostGets  int // number of gets that do not reach the store
	afterPuts func()
}

func (f *faulty) Put(_ context.Context, name string, data []byte) error {
	if _, taken := f.objects[name]; taken {
		return store.ErrExists
	}
	f.objects[name] = data
	if f.lostPuts > 0 {
		f.lostPuts--
		if f.afterPuts != nil {
			f.afterPuts()
		}
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (f *faulty) Replace(_ context.Context, name string, data []byte) error {
	f.objects[name] = data
	return nil
}

func (f *faulty) Get(_ context.Context, name string) ([]byte, error) {
	if f.lostGets > 0 {
		f.lostGets--
		return nil, io.ErrUnexpectedEOF
	}
	data, ok := f.objects[name]
	if !ok {
		return nil, store.ErrNotFound
	}
	return data, nil
}

func (f *faulty) Evict(_ context.Context, name string) error {
	delete(f.objects, name)
	return nil
}

func (f *faulty) Key(name string) string { return name }
func (f *faulty) URL() string            { return "faulty:" }
func (f *faulty) Close() error           { return nil }

// openFaulty returns a store on a faulty connector.
func openFaulty(t *testing.T, f *faulty) *store.Store {
	t.Helper()
	f.objects = make(map[string][]byte)
	return check.Value(store.New(f, store.Options{}))(t)
}

// wantObjects checks that the store has these objects and no others.
func (f *faulty) wantObjects(t *testing.T, want map[string][]byte) {
	t.Helper()
	same(t, "objects in the store", f.objects, want)
}

// An object named like a path to another directory is still copied into the given directory.
func TestFetch_CopiesNothingOutsideTheDirectory(t *testing.T) {
	f := new(faulty)
	s, above := openFaulty(t, f), t.TempDir()
	dir := filepath.Join(above, "copies")
	for _, name := range []string{"../node-0", "/node-0", "..", "job/../node-0", "../../node-0"} {
		f.objects[name] = report(t, 0, 20)
		path, err := s.Fetch(t.Context(), name, dir)
		if err != nil || filepath.Dir(path) != dir {
			t.Errorf("Fetch(%q) = %s, %v, want a file in %s", name, path, err, dir)
		}
	}
	if list, err := os.ReadDir(above); err != nil || len(list) != 1 {
		t.Errorf("other entries next to the copies: %v, error %v, want none", list, err)
	}
}

// If only the response to a put of a partial report was lost, the report in the store is recognized: it is replaced,
// and deleted at the end.
func TestPartialReport_RecognizesObjectAfterLostResponse(t *testing.T) {
	for lost := range 3 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			f := &faulty{lostPuts: lost}
			s, p := openFaulty(t, f), store.NewPartialReport("job", "node-0")
			for i := range 4 {
				_ = p.Put(t.Context(), s, fmt.Appendf(nil, "part %d", i)) // the error of a failed put does not matter
			}
			f.wantObjects(t, map[string][]byte{"job/node-0.partial": []byte("part 3")})
			if err := p.Evict(t.Context(), s); err != nil {
				t.Errorf("Evict after %d lost responses: %v", lost, err)
			}
			f.wantObjects(t, map[string][]byte{})
		})
	}
}

// A job that ends during the put of its first partial report leaves none.
func TestPartialReport_EvictRemovesInterruptedPut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &faulty{lostPuts: 1, afterPuts: cancel}
	s, p := openFaulty(t, f), store.NewPartialReport("job", "node-0")
	f.objects["job/node-0.partial"] = []byte("of another recording")
	if err := p.Put(ctx, s, []byte("ours")); err == nil {
		t.Error("Put with a canceled context succeeded, want an error")
	}
	if err := p.Evict(t.Context(), s); err != nil {
		t.Errorf("Evict after the interrupted Put: %v", err)
	}
	f.wantObjects(t, map[string][]byte{"job/node-0.partial": []byte("of another recording")})
}

// If the object under a name cannot be read now, it may be the same recording, so the report is not put under another
// name.
func TestPutReport_FailedGetDoesNotDuplicateReport(t *testing.T) {
	f := &faulty{lostGets: 1}
	s, data := openFaulty(t, f), report(t, 0, 20)
	f.objects["job/node-0"] = data
	if name, err := s.PutReport(t.Context(), "job", "node-0", data); err == nil {
		t.Errorf("PutReport = %s with a lost Get, want an error", name)
	}
	if name, err := s.PutReport(t.Context(), "job", "node-0", data); err != nil || name != "job/node-0" {
		t.Errorf("second PutReport = %s, %v, want job/node-0", name, err)
	}
	f.wantObjects(t, map[string][]byte{"job/node-0": data})
}
