package job

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PeakRSS is the high-water mark of this process's memory in bytes (VmHWM,
// proc(5)): at least what a child made just now is charged with. 0 where it
// cannot be known. ru_maxrss of getrusage(2) is only the last resort, for it
// holds also what our own parent had when it made us.
func PeakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for line := range strings.Lines(string(status)) {
			f := strings.Fields(line)
			if len(f) == 3 && f[0] == "VmHWM:" {
				kb, _ := strconv.ParseInt(f[1], 10, 64)
				return kb * 1024
			}
		}
	}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return int64(ru.Maxrss) * 1024
}
