//go:build !linux

package catalog

// wasCopied returns true, because it is unknown on this system whether a file was copied.
func wasCopied(string) bool { return true }
