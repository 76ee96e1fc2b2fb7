package catalog

import (
	"os"
	"syscall"
	"time"
)

// wasCopied reports whether somebody set the time of a file, or may have: a file that cannot be looked at counts.
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
