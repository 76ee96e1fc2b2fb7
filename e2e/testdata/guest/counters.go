//go:build linux

package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// readCounters reads the counters of control groups v1 or v2. Missing counters are 0.
func readCounters() counters {
	c := counters{Agent: agentCPU()}
	if dir := groupDir(""); dir != "" {
		c.Periods, c.Throttled = key(dir, "cpu.stat", "nr_periods"), key(dir, "cpu.stat", "nr_throttled")
		c.ThrottledFor = key(dir, "cpu.stat", "throttled_usec") / 1e6
		c.OOMKills, c.Peak = key(dir, "memory.events", "oom_kill"), key(dir, "memory.peak", "")
	}

	if dir := groupDir("cpu"); dir != "" {
		c.Periods, c.Throttled = key(dir, "cpu.stat", "nr_periods"), key(dir, "cpu.stat", "nr_throttled")
		c.ThrottledFor = key(dir, "cpu.stat", "throttled_time") / 1e9
	}

	if dir := groupDir("memory"); dir != "" {
		c.OOMKills, c.Peak = key(dir, "memory.oom_control", "oom_kill"), key(dir, "memory.max_usage_in_bytes", "")
	}

	// Read the CPU time last, so that this process uses little of it afterwards.
	if dir := groupDir(""); dir != "" {
		c.CPU = key(dir, "cpu.stat", "usage_usec") / 1e6
	}

	if dir := groupDir("cpuacct"); dir != "" {
		c.CPU = key(dir, "cpuacct.usage", "") / 1e9
	}

	c.Own = used()
	return c
}

// groupDir returns the directory of this process's group in the hierarchy of a controller; "" = v2. In a container,
// that is the root of the mount, even if /proc/self/cgroup has another path.
func groupDir(controller string) string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}

	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[1] != controller && !slices.Contains(strings.Split(f[1], ","), controller) {
			continue
		}
		roots := []string{"/sys/fs/cgroup/" + f[1]}
		if controller == "" {
			roots = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
		}
		for _, root := range roots {
			for _, dir := range []string{filepath.Join(root, f[2]), root} {
				if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
					return dir
				}
			}
		}
	}

	return ""
}

// key reads a number from a file: from the line that begins with word or, if word is "", from the line that is only a
// number.
func key(dir, file, word string) float64 {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if word == "" && len(f) == 1 || len(f) == 2 && f[0] == word {
			v, err := strconv.ParseFloat(f[len(f)-1], 64)
			if err != nil {
				return math.NaN()
			}
			return v
		}
	}
	return 0
}
