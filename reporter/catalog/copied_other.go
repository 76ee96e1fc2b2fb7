//go:build !linux

package catalog

// wasCopied reports whether somebody set the time of a file. It is not known, so it may be so.
func wasCopied(string) bool { return true }
