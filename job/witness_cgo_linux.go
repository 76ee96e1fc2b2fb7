//go:build cgo

package job

// withCgo reports whether the program may have been linked with a C library.
const withCgo = true
