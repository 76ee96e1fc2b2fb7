//go:build !linux

package scheduler

// hydraLaunch returns "": processes are not looked at.
func hydraLaunch() string { return "" }

// parent returns "".
func parent() (process, day string) { return "", "" }
