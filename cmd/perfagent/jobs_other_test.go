//go:build !linux

package main

// parts are the helpers of this test binary: none.
var parts map[string]func()
