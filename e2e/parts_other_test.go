//go:build e2e && !linux

package e2e

// parts are the jobs that this test binary plays: none.
var parts map[string]func()
