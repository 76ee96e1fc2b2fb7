package store

import (
	"context"
	"time"
)

// A Ref stands for an object until somebody looks into it. It is what ProxyStore calls a proxy, but for that nothing is
// fetched by accident: only Resolve fetches. A Ref may be used from several goroutines.
type Ref struct {
	url, name string
	store     *Store
	options   RefOptions

	turn     chan struct{} // of one: held by who fetches
	resolved bool
	data     []byte
}

// RefOptions configure a Ref.
type RefOptions struct {
	Evict bool // delete the object after it has been fetched
}

// Proxy puts an object and returns a Ref to it.
func (s *Store) Proxy(ctx context.Context, name string, data []byte, o RefOptions) (*Ref, error) {
	begun := time.Now()
	if err := s.Put(ctx, name, data); err != nil {
		return nil, err
	}
	s.time("store.proxy", name, time.Since(begun), time.Now())
	s.say("PROXY", name, time.Since(begun), "")

	return s.ProxyFromKey(name, o), nil
}

// ProxyFromKey returns a Ref to an object. It does not look whether there is one.
func (s *Store) ProxyFromKey(name string, o RefOptions) *Ref {
	return &Ref{url: s.URL(), name: name, store: s, options: o, turn: make(chan struct{}, 1)}
}

// Reference returns the text of a Ref to an object, STORE#NAME.
func (s *Store) Reference(name string) string { return s.ProxyFromKey(name, RefOptions{}).String() }

// Name returns the object's name.
func (r *Ref) Name() string { return r.name }

// String returns the reference, STORE#NAME, without user and password. References are equal if their texts are.
func (r *Ref) String() string { return r.url + "#" + r.name }

// MarshalText implements encoding.TextMarshaler: the reference.
func (r *Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Resolve returns the object, which must not be changed. It is fetched once, whoever and however many ask, unless that
// fails. If there is none, the error is a *MissingKeyError. One that cannot be deleted afterwards, if it is to be, is
// returned together with the error.
func (r *Ref) Resolve(ctx context.Context) ([]byte, error) {
	begun := time.Now()
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
		r.store.time("factory.resolve", r.name, time.Since(begun), time.Now())
	}
	r.store.time("factory.call", r.name, time.Since(begun), time.Now())

	return r.data, errEvict
}
