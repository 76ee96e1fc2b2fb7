package clitest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ThreadTime returns the CPU time of all threads of the process pid, from schedstat. ok is false if the process has
// ended, or if the kernel lacks CONFIG_SCHED_INFO.
func ThreadTime(tb testing.TB, pid int) (sum time.Duration, ok bool) {
	tb.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	if err != nil || len(files) == 0 {
		return 0, false
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum, true
}

// Median returns the middle value. If the number of values is even, it returns the greater of the two middle values.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
