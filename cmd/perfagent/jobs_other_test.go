//go:build !linux

package main

// parts are the jobs that this test binary plays: none.
var parts map[string]func()
