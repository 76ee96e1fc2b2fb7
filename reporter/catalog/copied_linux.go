package catalog

import (
	"os"
	"syscall"
	"time"
)

// wasCopied reports whether the modification time of a file was set, or may have been: the file cannot be examined.
func wasCopied(path string) bool {
	st, err := os.Stat(path)
	if err != nil {
		return true
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	changed := time.Unix(sys.Ctim.Unix())

	return changed.Sub(st.ModTime()) > copyDelay
}
