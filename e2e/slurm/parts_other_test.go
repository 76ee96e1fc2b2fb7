//go:build e2e && !linux

package slurm

// parts are the jobs that this test binary plays.
var parts map[string]func()
