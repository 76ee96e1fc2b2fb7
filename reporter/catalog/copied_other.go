//go:build !linux

package catalog

// wasCopied returns true, because on this system it is unknown whether a file was copied.
func wasCopied(string) bool { return true }
