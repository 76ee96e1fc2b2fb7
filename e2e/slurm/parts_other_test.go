//go:build e2e && !linux

package slurm

// parts are the helpers of this test binary.
var parts map[string]func()
