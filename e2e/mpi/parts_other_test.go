//go:build e2e && !linux

package mpi

// parts are the helpers of this test binary: none.
var parts map[string]func()
