//go:build e2e && !linux

package e2e

// parts are the helpers of this test binary: none.
var parts map[string]func()
