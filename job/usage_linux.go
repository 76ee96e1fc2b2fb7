//go:build amd64 || arm64

package job

import (
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/procfile"
)

// PeakRSS returns the high-water mark of this process's memory in bytes (VmHWM of
// proc(5)), or 0 if it is unknown. A child made now is charged with at least this much.
// ru_maxrss of getrusage(2) is only the last resort, because it includes what our
// own parent used when it made us.
func PeakRSS() int64 {
	if status, err := procfile.ReadFile("/proc/self/status"); err == nil {
		text := strings.TrimSuffix(procfile.StatusValue(status, "VmHWM"), " kB")
		if kib, err := strconv.ParseInt(text, 10, 64); err == nil {
			return kib * 1024
		}
	}

	own, _ := OwnUsage()
	return own.MaxRSS
}
