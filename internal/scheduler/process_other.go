//go:build !linux

package scheduler

// hydraLaunch returns "" on this system.
func hydraLaunch() string { return "" }

// UnderHydra returns false on this system.
func UnderHydra() bool { return false }

// parent returns "" on this system.
func parent() (process, day string) { return "", "" }
