//go:build !linux

package main

// parts is empty, because this test binary has no helpers.
var parts map[string]func()
