package store

import (
	"context"
	"errors"
	"time"
)

// MaxSize is the size of the largest object that is read, as stored and unpacked.
const MaxSize = 256 << 20

var (
	// ErrExists is the error of Put for a name that is taken.
	ErrExists = errors.New("the name is taken")

	// ErrNotFound is the error of Get for a name without an object.
	ErrNotFound = errors.New("there is no such object")

	// ErrName is the error of all operations for a text that no object of the store can have as its name.
	ErrName = errors.New("no object has such a name")
)

// A Connector keeps bytes under names in one place. Its methods may be called from several goroutines. What it returns
// is the caller's. Every name that it gets has passed its check, if it is a checker.
type Connector interface {
	// Put stores an object under a name that is free. If it is taken, the error is ErrExists, and nothing changes.
	Put(ctx context.Context, name string, data []byte) error

	// Replace stores an object under a name, taken or not. Where an object never changes, the error is
	// errors.ErrUnsupported.
	Replace(ctx context.Context, name string, data []byte) error

	// Get returns an object. If there is none, the error is ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)

	// Exists reports whether there is an object.
	Exists(ctx context.Context, name string) (bool, error)

	// Evict deletes an object. A missing one is no error.
	Evict(ctx context.Context, name string) error

	// List returns the objects whose names begin with a prefix, in any order. Others may be among them.
	List(ctx context.Context, prefix string) ([]ObjectInfo, error)

	// Key returns what the place calls the object of a name.
	Key(name string) string

	// URL returns an address, without user and password, by which Open finds the same objects.
	URL() string

	// Close lets go of what the Connector holds. It deletes nothing.
	Close() error
}

// A checker is a Connector that does not take every text as a name.
type checker interface {
	// check returns ErrName for a text that no object can have as its name, and another error if ctx has ended or a
	// link leads out of the place.
	check(ctx context.Context, name string) error
}

// An ObjectInfo is what a store tells of an object without fetching it.
type ObjectInfo struct {
	Name     string
	Size     int64     // bytes, as stored
	Modified time.Time // zero if the store does not tell
}
