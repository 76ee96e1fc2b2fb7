package store

import (
	"context"
	"errors"
	"time"
)

// MaxSize is the maximum size of an object to read, both as stored and unpacked.
const MaxSize = 256 << 20

var (
	// ErrExists is the error of Put for a taken name.
	ErrExists = errors.New("the name is already in use")

	// ErrNotFound is the error of Get for a name without an object.
	ErrNotFound = errors.New("there is no such object")

	// ErrName is the error of all operations for a text that cannot be the name of an object in the store.
	ErrName = errors.New("the name is not valid for an object")
)

// A Connector stores bytes under names in one place. Its methods are safe for concurrent use. The caller owns the
// results. If the Connector is a checker, its check has accepted each name.
type Connector interface {
	// Put stores an object if name is free. If the name is taken, the error is ErrExists, and nothing changes.
	Put(ctx context.Context, name string, data []byte) error

	// Replace stores an object under name, taken or not. If objects never change in this place, the error is
	// errors.ErrUnsupported.
	Replace(ctx context.Context, name string, data []byte) error

	// Get returns the object called name. If there is none, the error is ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)

	// Exists reports whether there is an object called name.
	Exists(ctx context.Context, name string) (bool, error)

	// Evict deletes the object called name. It is not an error if there is none.
	Evict(ctx context.Context, name string) error

	// List returns the objects with names that begin with prefix, in any order. The result may have other objects, too.
	List(ctx context.Context, prefix string) ([]ObjectInfo, error)

	// Key returns the key under which the place has the object called name.
	Key(name string) string

	// URL returns an address with which Open finds the same objects. It has neither user nor password.
	URL() string

	// Close releases the resources of the Connector. It deletes nothing.
	Close() error
}

// A checker is a Connector that does not accept every text as a name.
type checker interface {
	// check returns ErrName if name cannot be the name of an object, and another error if ctx has ended or a link leads
	// out of the place.
	check(ctx context.Context, name string) error
}

// ObjectInfo describes an object in a list.
type ObjectInfo struct {
	Name     string
	Size     int64     // bytes, as stored
	Modified time.Time // zero if unknown
}
