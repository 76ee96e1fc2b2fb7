package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/opstats"
)

// DefaultCacheSize is the number of objects that ProxyStore's class Store caches by default.
const DefaultCacheSize = 16

// Options configures a Store.
type Options struct {
	CacheSize int  // number of recently used objects in the cache; 0: none
	Metrics   bool // count and time the operations

	// Debug, if not nil, receives a line for each successful operation, in the format of the log of ProxyStore's class
	// Store. Name is the name of the store in these lines.
	Debug func(line string)
	Name  string

	// Credentials is an address with user and password. A store on the same server uses them if its own address
	// contains none. References contain none, because they may be shown.
	Credentials string
}

// A Store puts objects into a Connector, gets them from there, and caches recently used objects. It is safe for
// concurrent use.
type Store struct {
	connector Connector
	codec     codec
	debug     func(line string) // nil: no lines
	name      string
	cache     cache

	mu     sync.Mutex
	ledger *opstats.KeyedMetrics // nil without metrics
	last   map[string]any        // the last value of each attribute, for any object
}

// Open opens the store at address; the package comment describes addresses. Open only parses the address: if the store
// cannot be used, the first operation fails. No error repeats the address.
func Open(address string, o Options) (*Store, error) {
	connector, coding, err := newConnector(address, o.Credentials)
	if err != nil {
		return nil, err
	}
	return newStore(connector, coding, o)
}

func newStore(connector Connector, coding codec, o Options) (*Store, error) {
	if o.CacheSize < 0 {
		return nil, errors.New("open store: the size of the cache is negative")
	}

	s := &Store{
		connector: connector, codec: coding, debug: o.Debug, name: o.Name,
		cache: cache{size: o.CacheSize, replaced: make(map[string]bool)}, last: make(map[string]any),
	}
	if o.Metrics {
		s.ledger = opstats.NewKeyedMetrics(maxMetrics)
	}
	return s, nil
}

// URL returns an address of the store, without user and password.
func (s *Store) URL() string { return s.connector.URL() }

// Dir returns the directory of the store, and reports whether the store is a directory with the layout of --out, in
// which each object is a plain file.
func (s *Store) Dir() (string, bool) {
	d, ok := s.connector.(directory)
	return d.dir, ok && !d.proxyStore
}

// Unconditional reports whether an object was put on a server that cannot check in the same step whether the name is
// free. One of two simultaneous puts may then be lost.
func (s *Store) Unconditional() bool {
	c, ok := s.connector.(*s3)
	return ok && c.unconditional.Load()
}

// Close releases the resources of the store. It deletes nothing.
func (s *Store) Close() error { return s.connector.Close() }

// A MissingKeyError is the error for a missing object.
type MissingKeyError struct {
	Key   string // key of the object
	Store string // URL of the store
}

// Error implements error.
func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("no object %s in %s: it may have been evicted", text.Printable(text.Clip(e.Key, maxKey)), e.Store)
}

// Unwrap returns ErrNotFound.
func (e *MissingKeyError) Unwrap() error { return ErrNotFound }

// finish records an operation that has succeeded since start, and logs it in ProxyStore's wording. note is appended to
// the line.
func (s *Store) finish(op, name string, start time.Time, note string) {
	took := time.Since(start)
	s.recordTime("store."+op, name, took)
	if s.debug != nil {
		s.debug(fmt.Sprintf(`Store(name="%s"): %s %s in %.3f ms%s`,
			s.name, strings.ToUpper(op), s.key(name), took.Seconds()*1e3, note))
	}
}

// maxKey limits how many bytes of a key are shown.
const maxKey = 200

// opError wraps err with the operation and the object, and counts the failure, unless the name was taken.
func (s *Store) opError(op, name string, err error) error {
	if !errors.Is(err, ErrExists) {
		s.recordCount("store."+op+".errors", name)
	}
	what := ""
	if key := s.key(name); key != "" {
		what = " " + text.Printable(text.Clip(key, maxKey))
	}
	return fmt.Errorf("%s%s in %s: %w", op, what, s.URL(), err)
}

// key returns the key of the object called name. A prefix, as passed to List, is returned unchanged.
func (s *Store) key(name string) string {
	if name == "" || strings.HasSuffix(name, "/") {
		return name
	}
	return s.connector.Key(name)
}

// Put stores an object if name is free. If name is taken, the error is ErrExists, and nothing changes.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	return s.put(ctx, name, data, s.connector.Put)
}

// Replace stores an object under name, whether or not the name is taken. A replaced object is never cached, because
// other processes may replace it as well. In the layouts of ProxyStore the error is errors.ErrUnsupported.
func (s *Store) Replace(ctx context.Context, name string, data []byte) error {
	s.cache.drop(name, true)
	return s.put(ctx, name, data, s.connector.Replace)
}

func (s *Store) put(
	ctx context.Context, name string, data []byte, put func(context.Context, string, []byte) error,
) error {
	start := time.Now()
	stored := s.codec.encode(data)
	encoded := time.Now()
	if err := s.withRetries(ctx, "put", name, func() error { return put(ctx, name, stored) }); err != nil {
		return s.opError("put", name, err)
	}

	s.recordTime("store.put.serialize", name, encoded.Sub(start))
	s.recordTime("store.put.connector", name, time.Since(encoded))
	s.recordSize("store.put.object_size", name, len(stored))
	s.finish("put", name, start, "")
	return nil
}

// Get returns the object called name. The caller must not change the object, because other callers may get the same
// slice. If it does not exist, the error is a *MissingKeyError.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	start := time.Now()
	if data, ok := s.cache.get(name); ok {
		s.recordCount("store.get.cache_hits", name)
		s.finish("get", name, start, " (cached=True)")
		return data, nil
	}

	data, _, err := s.GetStored(ctx, name)
	if err == nil {
		s.cache.put(name, data)
	}
	return data, err
}

// GetStored is Get without the cache. It also returns the bytes as stored: with ProxyStore's tag, or compressed.
func (s *Store) GetStored(ctx context.Context, name string) (data, stored []byte, err error) {
	start := time.Now()
	data, stored, err = s.fetch(ctx, name)
	missing := errors.Is(err, ErrNotFound)
	if err != nil && !missing {
		return nil, nil, s.opError("get", name, err)
	}
	s.recordCount("store.get.cache_misses", name)
	if missing {
		s.recordTime("store.get", name, time.Since(start))
		return nil, nil, &MissingKeyError{s.connector.Key(name), s.URL()}
	}
	s.finish("get", name, start, " (cached=False)")
	return data, stored, nil
}

// fetch gets an object from the connector and decodes it.
func (s *Store) fetch(ctx context.Context, name string) (data, stored []byte, err error) {
	start := time.Now()
	err = s.withRetries(ctx, "get", name, func() error {
		stored, err = s.connector.Get(ctx, name)
		return err
	})
	got := time.Now()
	if err == nil || errors.Is(err, ErrNotFound) {
		s.recordTime("store.get.connector", name, got.Sub(start))
	}
	if err == nil {
		data, err = s.codec.decode(stored)
	}
	if err != nil {
		return nil, nil, err
	}
	s.recordTime("store.get.deserialize", name, time.Since(got))
	s.recordSize("store.get.object_size", name, len(stored))
	return data, stored, nil
}

// Exists reports whether there is an object called name. It returns true for a cached object, even if another process
// has evicted it.
func (s *Store) Exists(ctx context.Context, name string) (bool, error) {
	start := time.Now()
	there := s.IsCached(name)
	if !there {
		err := s.withRetries(ctx, "exists", name, func() (err error) {
			there, err = s.connector.Exists(ctx, name)
			return err
		})
		if err != nil {
			return false, s.opError("exists", name, err)
		}
		s.recordTime("store.exists.connector", name, time.Since(start))
	}
	s.finish("exists", name, start, "")
	return there, nil
}

// IsCached reports whether an object is in the cache.
func (s *Store) IsCached(name string) bool { return s.cache.has(name) }

// Evict deletes the object called name. It is not an error if there is none.
func (s *Store) Evict(ctx context.Context, name string) error {
	start := time.Now()
	if err := s.withRetries(ctx, "evict", name, func() error { return s.connector.Evict(ctx, name) }); err != nil {
		return s.opError("evict", name, err)
	}
	s.recordTime("store.evict.connector", name, time.Since(start))
	s.cache.drop(name, false)
	s.finish("evict", name, start, "")
	return nil
}

// List returns the objects with names that begin with prefix, sorted by name. It does not fetch them. Objects with
// names of any other form than RUN-ID/node-N are left out.
func (s *Store) List(ctx context.Context, prefix string) ([]ObjectInfo, error) {
	start := time.Now()
	var list []ObjectInfo
	err := s.withRetries(ctx, "list", prefix, func() (err error) {
		list, err = s.connector.List(ctx, prefix)
		return err
	})
	if err != nil {
		return nil, s.opError("list", prefix, err)
	}
	list = slices.DeleteFunc(list, func(e ObjectInfo) bool {
		return !strings.HasPrefix(e.Name, prefix) || !IsName(e.Name)
	})
	slices.SortFunc(list, func(a, b ObjectInfo) int { return cmp.Compare(a.Name, b.Name) })
	s.recordTime("store.list", prefix, time.Since(start))
	return list, nil
}

// A cache holds the most recently used objects. A list is enough, because there are few objects.
type cache struct {
	size int

	mu       sync.Mutex
	list     []cacheEntry    // the most recently used first
	replaced map[string]bool // names of objects that are not cached
}

type cacheEntry struct {
	name string
	data []byte
}

// get returns the object called name, and makes it the most recently used object.
func (c *cache) get(name string) (data []byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.index(name)
	if i < 0 {
		return nil, false
	}
	data = c.list[i].data
	c.insert(name, data)
	return data, true
}

// has reports whether the object called name is cached.
func (c *cache) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.index(name) >= 0
}

// put adds an object. If the cache is full, the least recently used object is dropped.
func (c *cache) put(name string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size > 0 && !c.replaced[name] {
		c.insert(name, data)
	}
}

// drop removes an object. If replaced is set, the object is never added again.
func (c *cache) drop(name string, replaced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if replaced {
		c.replaced[name] = true
	}
	c.remove(name)
}

func (c *cache) insert(name string, data []byte) {
	c.remove(name)
	c.list = slices.Insert(c.list[:min(len(c.list), c.size-1)], 0, cacheEntry{name, data})
}

func (c *cache) remove(name string) {
	c.list = slices.DeleteFunc(c.list, func(e cacheEntry) bool { return e.name == name })
}

// index returns the index of the object called name in the list, or -1.
func (c *cache) index(name string) int {
	return slices.IndexFunc(c.list, func(e cacheEntry) bool { return e.name == name })
}

// maxMetrics limits the number of metrics that a store keeps. It is enough for about ten thousand objects.
const maxMetrics = 1 << 17

// record calls add with the key of the object called name if the store records metrics.
func (s *Store) record(name string, add func(l *opstats.KeyedMetrics, key string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger != nil {
		_ = add(s.ledger, s.key(name)) // fails if the ledger is full
	}
}

// recordTime records how long the operation op on an object took, until now.
func (s *Store) recordTime(op, name string, took time.Duration) {
	s.record(name, func(l *opstats.KeyedMetrics, key string) error {
		return l.AddTime(op, key, took.Seconds()*1e3, time.Now())
	})
}

// recordCount adds one to a counter of an object.
func (s *Store) recordCount(counter, name string) {
	s.record(name, func(l *opstats.KeyedMetrics, key string) error { return l.AddCounter(counter, key, 1) })
}

// recordSize records the stored size of an object.
func (s *Store) recordSize(attribute, name string, bytes int) {
	s.record(name, func(l *opstats.KeyedMetrics, key string) error {
		s.last[attribute] = float64(bytes)
		return l.AddAttribute(attribute, key, float64(bytes))
	})
}

// Metrics returns the metrics of the store, or nil if it was opened without them. The metrics have ProxyStore's names,
// except store.list and the counters store.OP.errors and store.OP.retries.
func (s *Store) Metrics() *opstats.StoreMetrics {
	if s.ledger == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	m := &opstats.StoreMetrics{
		Attributes: maps.Clone(s.last), Counters: make(map[string]float64), Times: s.ledger.AggregateTimes(),
		Keys: make(map[string]opstats.Metrics),
	}
	for _, key := range s.ledger.Keys() {
		of, _ := s.ledger.Get(key)
		m.Keys[key] = of
		for name, v := range of.Counters {
			m.Counters[name] += v
		}
	}
	return m
}

// A Ref refers to an object. It corresponds to a proxy in ProxyStore, but the object is fetched only by Resolve. It is
// safe for concurrent use.
type Ref struct {
	name    string
	store   *Store
	options RefOptions

	turn     chan struct{} // capacity 1: held while fetching
	resolved bool
	data     []byte
}

// RefOptions configures a Ref.
type RefOptions struct {
	Evict bool // delete the object after it has been fetched
}

// Proxy puts an object and returns a Ref to it.
func (s *Store) Proxy(ctx context.Context, name string, data []byte, o RefOptions) (*Ref, error) {
	start := time.Now()
	if err := s.Put(ctx, name, data); err != nil {
		return nil, err
	}
	s.finish("proxy", name, start, "")
	return s.ProxyFromKey(name, o), nil
}

// ProxyFromKey returns a Ref to the object called name, which need not exist.
func (s *Store) ProxyFromKey(name string, o RefOptions) *Ref {
	return &Ref{name: name, store: s, options: o, turn: make(chan struct{}, 1)}
}

// Reference returns the reference of the object called name: STORE#NAME.
func (s *Store) Reference(name string) string { return s.URL() + "#" + name }

// Name returns the object's name.
func (r *Ref) Name() string { return r.name }

// String returns the reference, STORE#NAME, without user and password. Two Refs refer to the same object if their
// references are equal.
func (r *Ref) String() string { return r.store.Reference(r.name) }

// MarshalText implements encoding.TextMarshaler. The text is the reference.
func (r *Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Resolve returns the object, which the caller must not change. It fetches the object only once for all callers, unless
// fetching fails. If the object does not exist, the error is a *MissingKeyError. If the object cannot be evicted as
// requested, Resolve returns both the object and the error.
func (r *Ref) Resolve(ctx context.Context) ([]byte, error) {
	start := time.Now()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	var errEvict error
	if !r.resolved {
		data, err := r.store.Get(ctx, r.name)
		if err != nil {
			return nil, err
		}
		r.data, r.resolved = data, true
		if r.options.Evict {
			errEvict = r.store.Evict(ctx, r.name)
		}
		r.store.recordTime("factory.resolve", r.name, time.Since(start))
	}
	r.store.recordTime("factory.call", r.name, time.Since(start))

	return r.data, errEvict
}
