package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/opstats"
	"github.com/perfagent/perfagent/store"
)

// open opens a store with metrics.
func open(t *testing.T, address string) *store.Store {
	t.Helper()
	s := check.Value(store.Open(address, store.Options{CacheSize: store.DefaultCacheSize, Metrics: true}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// same checks that two values are equal.
func same(t testing.TB, what string, got, want any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// writeFile writes a file, after creating its directory.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	check.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

// counts returns how often each operation was timed.
func counts(times map[string]opstats.TimeStats) map[string]float64 {
	all := make(map[string]float64)
	for name, of := range times {
		all[name] = of.Count
	}
	return all
}

func put(t *testing.T, s *store.Store, name, data string) {
	t.Helper()
	check.Must(t, s.Put(t.Context(), name, []byte(data)))
}

func want(t *testing.T, s *store.Store, name, data string) {
	t.Helper()
	if got, err := s.Get(t.Context(), name); err != nil || string(got) != data {
		t.Fatalf("Get(%s) = %q, %v, want %q", name, got, err, data)
	}
}

// addresses returns the addresses of empty stores, one of each kind, by kind.
func addresses(t *testing.T) map[string]string {
	return map[string]string{"directory": t.TempDir(), "ProxyStore": "proxystore+file://" + t.TempDir()}
}

// The metrics equal the recorded metrics of ProxyStore 1.1.0.
func TestStore_HasSameMetricsAsProxyStore(t *testing.T) {
	s := open(t, "proxystore+file://"+t.TempDir())
	const name = "job-7/node-0"
	put(t, s, name, "v")
	_, err := s.Exists(t.Context(), name)
	want(t, s, name, "v")
	want(t, s, name, "v")
	_, err2 := s.Exists(t.Context(), name)
	check.Must(t, errors.Join(err, err2, s.Evict(t.Context(), name)))

	data := check.Value(json.Marshal(s.Metrics()))(t)
	type numbers struct {
		Attributes, Counters map[string]float64
		Times                map[string]struct{ Count float64 }
	}
	var got struct {
		numbers
		Keys map[string]numbers
	}
	check.Must(t, json.Unmarshal(data, &got))
	all := numbers{
		Attributes: map[string]float64{"store.put.object_size": 4, "store.get.object_size": 4}, // the tag and v
		Counters:   map[string]float64{"store.get.cache_misses": 1, "store.get.cache_hits": 1},
		Times:      make(map[string]struct{ Count float64 }),
	}
	for op, n := range map[string]float64{
		"store.put": 1, "store.put.serialize": 1, "store.put.connector": 1, "store.exists": 2,
		"store.exists.connector": 1, "store.get": 2, "store.get.connector": 1, "store.get.deserialize": 1,
		"store.evict": 1, "store.evict.connector": 1,
	} {
		all.Times[op] = struct{ Count float64 }{n}
	}
	same(t, "metrics of the store", got.numbers, all)
	same(t, "metrics by key", got.Keys, map[string]numbers{"perfagent.job-7.node-0.json": all})
}

// All kinds of stores behave alike.
func TestStore_AllKindsBehaveAlike(t *testing.T) {
	for kind, address := range addresses(t) {
		t.Run(kind, func(t *testing.T) {
			wantAlike(t, address)
			wantOnePut(t, address)
		})
	}
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

// wantAlike checks the behavior that all kinds of stores have in common. The store must be empty, and is empty
// afterwards.
func wantAlike(t *testing.T, address string) {
	t.Helper()
	s, ctx := open(t, address), t.Context()
	if list, err := s.List(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("List of an empty store = %v, %v, want none", list, err)
	}
	if there, err := s.Exists(ctx, "job-7/node-0"); there || err != nil {
		t.Errorf("Exists of a missing object = %v, %v, want false", there, err)
	}
	if _, err := s.Get(ctx, "job-7/node-0"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of a missing object: %v, want ErrNotFound", err)
	}

	all := map[string]string{"job-7/node-0": "zero", "job-7/node-1": "one", "job.node-8/node-gpu7.2": "eight"}
	for name, data := range all {
		put(t, s, name, data)
		if err := s.Put(ctx, name, []byte("another")); !errors.Is(err, store.ErrExists) {
			t.Errorf("Put under a taken name: %v, want ErrExists", err)
		}
	}
	again := open(t, s.URL())
	var names []string
	for _, e := range check.Value(again.List(ctx, ""))(t) {
		names = append(names, e.Name)
		want(t, again, e.Name, all[e.Name])
		if told := !strings.HasPrefix(address, "proxystore+redis:"); e.Size < 3 || time.Since(e.Modified) < 10*time.Minute != told {
			t.Errorf("listed %+v, want a size of at least 3 and the time of the put (none for a ProxyStore on Redis)", e)
		}
	}
	same(t, "listed names", names, slices.Sorted(maps.Keys(all)))
	for prefix, n := range map[string]int{"job-7/": 2, "job": 3, "job-7/node-1": 1, "job-8/": 0, "../": 0, "job-7": 2} {
		if list, err := again.List(ctx, prefix); err != nil || len(list) != n {
			t.Errorf("List(%q) = %v, %v, want %d objects", prefix, list, err, n)
		}
	}

	err := s.Replace(ctx, "job-7/node-0", []byte("new"))
	switch proxyStore := strings.HasPrefix(address, "proxystore"); {
	case proxyStore && !errors.Is(err, errors.ErrUnsupported):
		t.Errorf("Replace in a ProxyStore: %v, want ErrUnsupported", err)
	case !proxyStore && err != nil:
		t.Errorf("Replace: %v", err)
	case !proxyStore:
		want(t, open(t, s.URL()), "job-7/node-0", "new")
	}
	for name := range all {
		if err := errors.Join(s.Evict(ctx, name), s.Evict(ctx, name)); err != nil {
			t.Errorf("Evict of %s, twice in a row: %v", name, err)
		}
	}
	if list, err := s.List(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("List after Evict = %v, %v, want none", list, err)
	}
}

// wantOnePut checks that exactly one of many simultaneous puts of one name succeeds.
func wantOnePut(t *testing.T, address string) {
	t.Helper()
	var wg sync.WaitGroup
	var won atomic.Pointer[string]
	for i := range 32 {
		s := open(t, address)
		wg.Go(func() {
			data := strings.Repeat(fmt.Sprint(i), 10000)
			err := s.Put(t.Context(), "job/node-0", []byte(data))
			switch {
			case err == nil && !won.CompareAndSwap(nil, &data):
				t.Error("two stores put job/node-0, want one")
			case err != nil && !errors.Is(err, store.ErrExists):
				t.Errorf("simultaneous Put: %v, want nil or ErrExists", err)
			}
		})
	}
	wg.Wait()
	want(t, open(t, address), "job/node-0", *won.Load())
}

// A replaced object is not cached.
func TestStore_DoesNotCacheReplacedObjects(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	put(t, s, "job/node-0.partial", "1")
	want(t, s, "job/node-0.partial", "1")
	for _, text := range []string{"2", "3"} {
		check.Must(t, s.Replace(t.Context(), "job/node-0.partial", []byte(text)))
		want(t, s, "job/node-0.partial", text)
	}
	check.Must(t, other.Replace(t.Context(), "job/node-0.partial", []byte("4")))
	want(t, s, "job/node-0.partial", "4")
	if s.IsCached("job/node-0.partial") {
		t.Error("a replaced object is cached, want it not cached")
	}
}

// The cache holds the most recently used objects.
func TestStore_CachesMostRecentlyUsedObjects(t *testing.T) {
	s := check.Value(store.Open(t.TempDir(), store.Options{CacheSize: 2}))(t)
	for i := range 3 {
		put(t, s, fmt.Sprintf("job/node-%d", i), "x")
	}
	for _, i := range []int{0, 1, 0, 2} {
		want(t, s, fmt.Sprintf("job/node-%d", i), "x")
	}
	var kept []bool
	for i := range 3 {
		kept = append(kept, s.IsCached(fmt.Sprintf("job/node-%d", i)))
	}
	same(t, "whether objects are cached", kept, []bool{true, false, true})
	if err := s.Evict(t.Context(), "job/node-0"); err != nil || s.IsCached("job/node-0") {
		t.Errorf("Evict(job/node-0): %v; still cached: %v", err, s.IsCached("job/node-0"))
	}

	none := check.Value(store.Open(t.TempDir(), store.Options{}))(t)
	put(t, none, "job/node-0", "x")
	want(t, none, "job/node-0", "x")
	if none.IsCached("job/node-0") || none.Metrics() != nil {
		t.Errorf("without CacheSize and Metrics: cached %v, metrics %v, want neither", none.IsCached("job/node-0"), none.Metrics())
	}
	if _, err := store.Open(t.TempDir(), store.Options{CacheSize: -1}); err == nil {
		t.Error("Open with CacheSize -1 succeeded, want an error")
	}
}

// No name gives access to files outside a store.
func TestStore_RefusesInvalidNames(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "store")
	for _, address := range []string{dir, "proxystore+file://" + dir} {
		s := open(t, address)
		for _, name := range []string{
			"", ".", "..", "/", "job", "job/", "/node-0", "../node-0", "job/../node-0", "job/x/node-0", "job/node-0/x",
			"job/other", "jo b/node-0", "job/node-\x00", "job/node-\x1b[31m", "é/node-0", strings.Repeat("x", 10000) + "/node-0",
			"job/node-" + strings.Repeat("x", 250),
		} {
			err := s.Put(t.Context(), name, []byte("x"))
			raw := !strings.ContainsAny(name, "/\x00") && strings.Trim(name, ".") != ""
			if raw && strings.HasPrefix(address, "proxystore") {
				continue // a key that Python could have made
			}
			if !errors.Is(err, store.ErrName) {
				t.Errorf("Put(%q) in %s: %v, want ErrName", name, address, err)
			} else if text := err.Error(); strings.ContainsAny(text, "\x00\x1b") || len(text) > 600 {
				t.Errorf("the error of Put has %d bytes: %.100q, want at most 600 and no control characters", len(text), text)
			}
			there, errThere := s.Exists(t.Context(), name)
			for op, err := range map[string]error{
				"Get": second(s.Get(t.Context(), name)), "Exists": errThere, "Evict": s.Evict(t.Context(), name),
			} {
				if there || !errors.Is(err, store.ErrName) {
					t.Errorf("%s(%q) in %s: exists %v, error %v, want false, ErrName", op, name, address, there, err)
				}
			}
		}
	}

	if list, err := os.ReadDir(outside); err != nil || len(list) > 1 {
		t.Errorf("entries next to the store: %v, error %v, want none", list, err)
	}
}

// List is counted under its prefix. The error for a missing object contains a shortened and escaped name.
func TestStore_CountsListsByPrefix(t *testing.T) {
	for kind, address := range addresses(t) {
		s := open(t, address)
		check.Must(t, errors.Join(second(s.List(t.Context(), "")), second(s.List(t.Context(), "job/"))))
		same(t, kind+": keys with metrics", slices.Sorted(maps.Keys(s.Metrics().Keys)), []string{"", "job/"})
	}

	missing := &store.MissingKeyError{Key: "\x1b[2J" + strings.Repeat("k", 10000), Store: "file:///d"}
	if text := missing.Error(); len(text) > 300 || strings.Contains(text, "\x1b") {
		t.Errorf("the error has %d bytes: %.300q, want at most 300 and no control characters", len(text), text)
	}
}

// An object larger than MaxSize is not read.
func TestStore_RefusesObjectsOverMaxSize(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "job/node-0", "x")
	check.Must(t, os.Truncate(filepath.Join(dir, "job", "node-0.json"), store.MaxSize+1))
	if _, err := s.Get(t.Context(), "job/node-0"); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Get of an object of more than MaxSize: %v, want \"too large\"", err)
	}
}

// Resolve fetches the object once for all callers, and nothing else fetches it.
func TestRef_FetchesOnceForAllCallers(t *testing.T) {
	for kind, address := range addresses(t) {
		t.Run(kind, func(t *testing.T) {
			s := check.Value(store.Open(address, store.Options{Metrics: true}))(t)
			ref := check.Value(s.Proxy(t.Context(), "job/node-0", []byte("text"), store.RefOptions{Evict: true}))(t)
			data, err := json.Marshal(map[string]*store.Ref{"reference": ref})
			if wanted := fmt.Sprintf(`{"reference":%q}`, ref); err != nil || string(data) != wanted {
				t.Errorf("a Ref as JSON: %s, %v, want %s", data, err, wanted)
			}
			if n := s.Metrics().Times["store.get"].Count; n != 0 {
				t.Errorf("%v fetches before Resolve, want none", n)
			}

			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if data, err := ref.Resolve(t.Context()); err != nil || string(data) != "text" {
						t.Errorf("Resolve = %s, %v, want text", data, err)
					}
				})
			}
			wg.Wait()
			same(t, "counts of operations", counts(s.Metrics().Times), map[string]float64{
				"store.put": 1, "store.put.serialize": 1, "store.put.connector": 1, "store.proxy": 1, "store.get": 1,
				"store.get.connector": 1, "store.get.deserialize": 1, "store.evict": 1, "store.evict.connector": 1,
				"factory.resolve": 1, "factory.call": 20,
			})

			other, gone, err := store.OpenRef(ref.String(), store.Options{}, store.RefOptions{})
			check.Must(t, err)
			defer other.Close()
			var missing *store.MissingKeyError
			if _, err := gone.Resolve(t.Context()); !errors.As(err, &missing) || !strings.HasSuffix(err.Error(), "it may have been evicted") {
				t.Errorf("Resolve after Evict: %v, want a MissingKeyError with \"it may have been evicted\" at its end", err)
			}
			put(t, s, "job/node-0", "again")
			if data, err := gone.Resolve(t.Context()); err != nil || string(data) != "again" {
				t.Errorf("Resolve after another Put = %s, %v, want again", data, err)
			}
		})
	}
}

// If one caller's context ends, the fetch continues for the others.
func TestRef_CanceledCallerDoesNotStopOthers(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "job/node-0", "text")
	ref := s.ProxyFromKey("job/node-0", store.RefOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ref.Resolve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Resolve with a canceled context: %v, want context.Canceled", err)
	}
	if data, err := ref.Resolve(t.Context()); err != nil || string(data) != "text" {
		t.Errorf("Resolve of another caller = %s, %v, want text", data, err)
	}
}

// Invalid addresses are refused without repeating them, because they may contain a password.
func TestOpen_RefusesInvalidAddressesWithoutRepeatingThem(t *testing.T) {
	const secret = "s3cr3t"
	for _, address := range []string{
		"", "dir/" + secret, "job-" + secret, "ftp://u:" + secret + "@h/", "file://" + secret + "/dir", "file:" + secret,
		"file:///dir?" + secret + "=1", "file:///dir#" + secret, "file:///dir?%zz" + secret, "file://u:" + secret + "@/dir",
		"proxystore+file:///dir?serializer=" + secret, "proxystore+file:///dir?serializer=US&serializer=" + secret,
		"proxystore+file://" + secret, "://" + secret, "http://[" + secret, "proxystore+file:///dir?clear=" + secret,
	} {
		s, err := store.Open(address, store.Options{})
		if err == nil {
			t.Errorf("Open(%q) opened a store at %s, want an error", address, s.URL())
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("Open(%q): error %v contains the secret", address, err)
		}
		if _, _, err := store.OpenRef(address+"#job/node-0", store.Options{}, store.RefOptions{}); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("OpenRef(%q): %v, want an error without %q", address+"#job/node-0", err, secret)
		}
	}
}

// URL returns an address of the same store.
func TestOpen_URLOpensSameStore(t *testing.T) {
	for address, want := range map[string]string{
		"/a dir/b":                            "file:///a%20dir/b",
		"file:///a/../b/":                     "file:///b",
		"file://localhost/b":                  "file:///b",
		"proxystore+file:///ps":               "proxystore+file:///ps",
		"proxystore+file:///ps?serializer=02": "proxystore+file:///ps?serializer=02",
	} {
		s, err := store.Open(address, store.Options{})
		if err != nil || s.URL() != want {
			t.Errorf("Open(%q): URL %s, error %v, want %s", address, s.URL(), err, want)
			continue
		}
		if again, err := store.Open(s.URL(), store.Options{}); err != nil || again.URL() != want {
			t.Errorf("Open(%q) = %v, %v, want a store with that URL", want, again, err)
		}
	}

	t.Chdir(t.TempDir())
	here := check.Value(os.Getwd())(t)
	if s, err := store.Open("./reports", store.Options{}); err != nil || s.URL() != "file://"+filepath.Join(here, "reports") {
		t.Errorf("Open(./reports): URL %v, error %v, want the absolute path below %s", s.URL(), err, here)
	}
}

func TestSplitReference_SplitsAtLastHash(t *testing.T) {
	for text, want := range map[string][]string{
		"/dir#job-7": {"/dir", "job-7"}, "./dir#job-7/node-0": {"./dir", "job-7/node-0"}, "s3://b/p?x=1#job@2": {"s3://b/p?x=1", "job@2"},
		"/a#b#job": {"/a#b", "job"}, "job-7": nil, "/dir": nil, "/dir#": nil, "#job": nil, "dir#job": nil,
	} {
		address, name, ok := store.SplitReference(text)
		if got := []string{address, name}; ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("SplitReference(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
}

// Open never panics, and its error does not repeat the address. If a store can be opened, so can the address from its
// URL method.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{
		"/dir", "./dir", "file:///dir", "proxystore+file:///d?serializer=02", "proxystore+file:///d?serializer=03", "a:b@c", "file://%",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		s, err := store.Open(address, store.Options{})
		if err != nil {
			return
		}
		again, err := store.Open(s.URL(), store.Options{})
		if err != nil || again.URL() != s.URL() {
			t.Errorf("Open(%q).URL() = %q; opening that gives %v, error %v; want the same URL", address, s.URL(), again, err)
		}
	})
}

// A reference consists of its store's address and its object's name. It can be opened only if the address alone can be
// opened.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"/dir#job-7", "./d#a#job/node-0", "redis://u:p@h:1/2?ttl=0#job@2", "#", "/#", "a#b", "://#x", "/d#\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, name, ok := store.SplitReference(text)
		if ok && (address+"#"+name != text || name == "" || strings.Contains(name, "#") || !store.IsAddress(address)) {
			t.Errorf("SplitReference(%q) = %q, %q, want two valid parts that form the text", text, address, name)
		}
		_, errOpen := store.Open(address, store.Options{})
		s, ref, err := store.OpenRef(text, store.Options{}, store.RefOptions{})
		if (err == nil) != (ok && errOpen == nil) {
			t.Errorf("OpenRef(%q): error %v, although SplitReference returned ok %v, and Open of the address: error %v", text, err, ok, errOpen)
		}
		if err == nil && (ref.Name() != name || ref.String() != s.URL()+"#"+name) {
			t.Errorf("OpenRef(%q) = %s, want %s#%s", text, ref, s.URL(), name)
		}
	})
}

// Any object of a ProxyStore is either decoded or refused.
func FuzzProxyStore(f *testing.F) {
	for _, s := range []string{"US\nx", " BS \nx", "02\n", "PK\n\x80", "XX\nx", "US", "", "\n", strings.Repeat(" ", 30) + "US\nx"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		data, err := store.DecodeProxyStore(stored)
		if err != nil {
			if text := err.Error(); len(text) > 200 || strings.ContainsAny(text, "\x1b\n") {
				t.Errorf("the error for %q is %q, want at most 200 bytes without control characters", stored, text)
			}
			return
		}
		tag, rest, _ := strings.Cut(string(stored), "\n")
		if rest != string(data) || !slices.Contains([]string{"US", "BS", "01", "02"}, strings.TrimSpace(tag)) {
			t.Errorf("%q was decoded as %q, want an error or the bytes after a known tag", stored, data)
		}
	})
}
