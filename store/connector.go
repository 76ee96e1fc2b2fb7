package store

import (
	"context"
	"errors"
	"time"
)

// MaxSize is the maximum size of an object to read, both as stored and unpacked.
const MaxSize = 256 << 20

var (
	// ErrExists is returned by Put if the name is taken.
	ErrExists = errors.New("the name is already in use")

	// ErrNotFound is returned by Get if no object has the name.
	ErrNotFound = errors.New("there is no such object")

	// ErrName is returned by all operations for a string that cannot be the name of an object in the store.
	ErrName = errors.New("the name is not valid for an object")
)

// A Connector stores bytes under names in one place. Its methods are safe for concurrent use. The caller owns the
// results. If the Connector is a checker, its check has accepted each name.
type Connector interface {
	// Put stores an object if name is free. If the name is taken, the error is ErrExists, and nothing changes.
	Put(ctx context.Context, name string, data []byte) error

	// Replace stores an object under name, whether or not the name is taken. If objects in this place never change, the
	// error is errors.ErrUnsupported.
	Replace(ctx context.Context, name string, data []byte) error

	// Get returns the object called name. If there is none, the error is ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)

	// Exists reports whether there is an object called name.
	Exists(ctx context.Context, name string) (bool, error)

	// Evict deletes the object called name. It is not an error if there is none.
	Evict(ctx context.Context, name string) error

	// List returns the objects with names that begin with prefix, in any order. The result may include other objects.
	List(ctx context.Context, prefix string) ([]ObjectInfo, error)

	// Key returns the key under which the object called name is stored.
	Key(name string) string

	// URL returns an address with which Open finds the same objects. It contains neither user nor password.
	URL() string

	// Close releases the resources of the Connector. It deletes nothing.
	Close() error
}

// A checker is a Connector that does not accept every string as a name.
type checker interface {
	// check returns ErrName if name cannot be the name of an object, and another error if ctx has ended or a symbolic
	// link leads out of the store.
	check(ctx context.Context, name string) error
}

// ObjectInfo describes an object in a list.
type ObjectInfo struct {
	Name     string
	Size     int64     // bytes, as stored
	Modified time.Time // zero if unknown
}
