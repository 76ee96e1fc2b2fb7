//go:build cgo

package job

// withCgo reports whether the program may be linked with a C library.
const withCgo = true
