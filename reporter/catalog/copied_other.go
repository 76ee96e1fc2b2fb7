//go:build !linux

package catalog

// wasCopied reports true: whether somebody set the time of a file is not known on this system.
func wasCopied(string) bool { return true }
