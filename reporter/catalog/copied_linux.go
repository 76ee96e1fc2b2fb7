package catalog

import (
	"os"
	"syscall"
	"time"
)

// wasCopied reports whether a file seems to have been copied or unpacked: whether its inode changed more than copyDelay
// after its modification time. It also returns true if the file cannot be examined.
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
