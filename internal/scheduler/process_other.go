//go:build !linux

package scheduler

// hydraLaunch returns "": processes are not looked at.
func hydraLaunch() string { return "" }

// UnderHydra returns false: processes are not looked at.
func UnderHydra() bool { return false }

// parent returns "".
func parent() (process, day string) { return "", "" }
