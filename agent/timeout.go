package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/procfile"

	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// timeoutEnd returns when the timeout(1) that runs this process ends the job, computed from its
// command line and its start time in /proc. A TERM that it sends before that is one that it was sent
// itself. timeoutEnd returns the zero time if the parent is not timeout(1), or if the end is not known.
func timeoutEnd(now host.Instant) time.Time {
	dir := filepath.Join("/proc", strconv.Itoa(os.Getppid()))
	data, err := procfile.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return time.Time{}
	}

	var f [procfile.StatStart + 1][]byte
	_, name, n := procfile.SplitStat(data, f[:])
	if string(name) != "timeout" || n < len(f) {
		return time.Time{}
	}

	ticks, ok := procfile.ParseCount(f[procfile.StatStart])
	command, err := procfile.ReadFile(filepath.Join(dir, "cmdline"))
	limit, known := diagnosis.TimeoutLimit(strings.Split(strings.TrimRight(string(command), "\x00"), "\x00"))
	const longest = 10 * 365 * 24 * 3600.0 // seconds; a longer limit ends no job
	if !ok || err != nil || !known || limit > longest || ticks > 1<<40 {
		return time.Time{}
	}

	start := now.Wall.Add(time.Duration(ticks)*time.Second/procfile.UserHZ - now.Boot)
	return start.Add(time.Duration(limit * float64(time.Second)))
}
