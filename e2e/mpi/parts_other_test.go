//go:build e2e && !linux

package mpi

// parts are the jobs that this test binary plays: none.
var parts map[string]func()
