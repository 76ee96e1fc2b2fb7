package cgroup

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Read takes one sample. It is meant to be called once a second. If it takes long to count the processes of the group
// and the groups below, Read counts them less often, but at least every 2 s, so that counting takes about a 300th of a
// core. Between counts, it returns the last count.
func (g *Group) Read() Counters {
	if !g.limitsRead {
		g.Limits()
	}
	c := unknownCounters()
	g.readCPU(&c)
	g.readMemory(&c)
	for _, path := range g.ioFiles {
		if g.readTraffic(&c, path) {
			break
		}
	}
	if len(g.primary) > 0 && !g.skipTasks {
		g.taskCounter.read(g, &c)
	}

	for i, s := range []*Stall{&c.Pressure.CPU, &c.Pressure.Memory, &c.Pressure.IO} {
		if g.pressureFiles[i] == "" {
			continue
		}
		data, err := g.r.ReadKeepOpen(g.pressureFiles[i], maxFile)
		if err == nil {
			if *s, err = ParseStall(data); err != nil {
				err = fmt.Errorf("read %s: %w", g.pressureFiles[i], err)
			}
		}
		if err != nil {
			c.fail(filepath.Base(g.pressureFiles[i]), err)
		}
	}
	return c
}

// CountTasks sets whether Read counts processes and threads. By default, it does.
func (g *Group) CountTasks(wanted bool) { g.skipTasks = !wanted }

// fail records err as the reason why the file name has no values.
func (c *Counters) fail(name string, err error) {
	if c.Failed == nil {
		c.Failed = map[string]error{}
	}
	c.Failed[name] = err
}

// number reads a file with one number. It returns NaN if path is "" or the file cannot be read.
func (c *Counters) number(r *reader, path string) float64 {
	if path == "" {
		return nan
	}
	v, err := r.value(path, parseNumber)
	if err != nil {
		c.fail(filepath.Base(path), err)
	}
	return v
}

func (g *Group) readCPU(c *Counters) {
	var v [4]float64
	throttled := func(unit float64) {
		c.Periods, c.ThrottledPeriods, c.ThrottledSeconds = v[1], v[2], v[3]/unit
	}

	switch {
	case g.cpuFile == "":
	case g.acct.v2:
		err := g.r.keys(g.cpuFile, []string{"usage_usec", "nr_periods", "nr_throttled", "throttled_usec"}, v[:])
		if err != nil {
			c.fail("cpu.stat", err)
		}
		c.CPUSeconds = v[0] / 1e6
		if g.cpuFile == g.quotaStat {
			throttled(1e6)
			return
		}
	default:
		c.CPUSeconds = c.number(&g.r, g.cpuFile) / 1e9
	}

	if g.quotaStat == "" {
		return
	}
	key, unit := "throttled_time", 1e9
	if g.cpu.v2 {
		key, unit = "throttled_usec", 1e6
	}
	if err := g.r.keys(g.quotaStat, []string{"nr_periods", "nr_periods", "nr_throttled", key}, v[:]); err != nil {
		c.fail("cpu.stat", err)
	}
	throttled(unit)
}

func (g *Group) readMemory(c *Counters) {
	if g.own != (memoryFiles{}) {
		c.Memory = c.number(&g.r, g.own.usage)
		c.PeakMemory = c.number(&g.r, g.own.peak)
		s := g.readMemoryStat(c, g.own.stat, c.Memory)
		c.WorkingSet, c.PageCache, c.Swap = s.workingSet, s.pageCache, s.swap
		c.Anon, c.Shmem, c.Kernel, c.Sock, c.HugeTLB = s.anon, s.shmem, s.kernel, s.sock, s.hugeTLB
		if g.memory.v2 {
			c.Swap = c.number(&g.r, g.own.swap)
		}
		if g.own.oom != "" {
			g.readOOM(c)
		}
	}

	switch g.limit {
	case memoryFiles{}:
	case g.own:
		c.LimitWorkingSet, c.LimitPageCache = c.WorkingSet, c.PageCache
		c.LimitPeak, c.LimitUnreclaimable = c.PeakMemory, max(c.Memory-c.PageCache, 0)
	default:
		usage := c.number(&g.r, g.limit.usage)
		s := g.readMemoryStat(c, g.limit.stat, usage)
		c.LimitWorkingSet, c.LimitPageCache = s.workingSet, s.pageCache
		c.LimitPeak, c.LimitUnreclaimable = c.number(&g.r, g.limit.peak), max(usage-c.LimitPageCache, 0)
	}
}

// readOOM reads the OOM counters of the group and of the group that sets the memory limit.
func (g *Group) readOOM(c *Counters) {
	own, err := readOOM(g.r.ReadKeepOpen, g.own.oom)
	if err != nil {
		c.fail(filepath.Base(g.own.oom), err)
	}
	c.OOMKills, c.OOMs, c.UnderOOM = own.kills, own.ooms, own.under > 0
	if !g.memory.v2 {
		c.OOMKills += g.descendantOOMs.read(g)
	}

	if g.limit.local == "" {
		return
	}
	limit, err := readOOM(g.r.ReadKeepOpen, g.limit.local)
	if err != nil {
		c.fail(filepath.Base(g.limit.local), err)
	}
	c.LimitOOMs = limit.ooms
}

// A memoryStat holds numbers of a memory.stat, in bytes, with the names of Counters.
type memoryStat struct{ workingSet, pageCache, shmem, anon, kernel, sock, hugeTLB, swap float64 }

// The keys of memory.stat, which counts shmem as file or cache.
var (
	memoryStatV1 = []string{"total_inactive_file", "total_cache", "total_shmem", "total_rss", "", "", "", "total_swap"}
	memoryStatV2 = []string{"inactive_file", "file", "shmem", "anon", "kernel", "sock", "hugetlb"}
)

// readMemoryStat reads the memory.stat at path, of a group that uses usage bytes. "" means that there is no such file.
// Differences are at least 0, because the numbers are not read at one instant.
func (g *Group) readMemoryStat(c *Counters, path string, usage float64) memoryStat {
	v, keys := [8]float64{nan, nan, nan, nan, nan, nan, nan, nan}, memoryStatV1
	if g.memory.v2 {
		keys = memoryStatV2
	}
	if path != "" {
		if err := g.r.keys(path, keys, v[:]); err != nil {
			c.fail("memory.stat", err)
		}
	}
	s := memoryStat{max(usage-v[0], 0), max(v[1]-v[2], 0), v[2], v[3], v[4], v[5], v[6], v[7]}
	if math.IsNaN(s.kernel) {
		s.kernel = max(usage-v[1]-s.anon-orZero(s.sock)-orZero(s.hugeTLB), 0)
	}
	return s
}

// orZero returns v, or 0 if v is NaN.
func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// readTraffic reads the storage bytes from the file at path, and reports whether the file counts. A v1 file without
// devices does not count. A v2 file without devices means that there was no traffic yet.
func (g *Group) readTraffic(c *Counters, path string) bool {
	data, err := g.r.ReadKeepOpen(path, maxFile)
	if err != nil {
		c.fail(filepath.Base(path), err)
		return false
	}

	parse := parseBlkio
	if g.io.v2 {
		parse = parseIOStat
	}
	var sum traffic
	counted := len(data) == 0 && g.io.v2
	for rest := data; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		t, ok := parse(line)
		if !ok && g.io.v2 {
			c.fail("io.stat", malformed(path, line))
			return false
		}
		if !ok {
			continue // v1 also has lines with sums
		}
		counted = true
		if !g.isStacked(t.device) {
			sum.reads, sum.writes = sum.reads+t.reads, sum.writes+t.writes
		}
	}

	if !counted {
		if !bytes.HasPrefix(data, []byte("Total ")) {
			c.fail(filepath.Base(path), malformed(path, data))
		}
		return false
	}

	c.ReadBytes, c.WriteBytes = sum.reads, sum.writes
	return true
}

// maxDevices is the largest number of devices that isStacked caches.
const maxDevices = 4096

// isStacked reports whether the bytes of device are also counted by another device. That is the case for devices that
// consist of other devices (LVM, RAID, dm-crypt), and for loop devices, which read and write a file.
func (g *Group) isStacked(device string) bool {
	stacked, known := g.stacked[device]
	if known {
		return stacked
	}
	entries, err := os.ReadDir(filepath.Join(g.sys, "dev/block", device, "slaves"))
	stacked = err == nil && len(entries) > 0 || strings.HasPrefix(device, "7:")
	if g.stacked == nil {
		g.stacked = map[string]bool{}
	}
	if len(g.stacked) < maxDevices {
		g.stacked[device] = stacked
	}
	return stacked
}

// Reclaim reads the Reclaim of the group that set Limits.Memory in the last call to Limits, or of this group if no
// group did. Call Reclaim at most every few seconds, because the kernel sums memory.stat over all CPUs and the groups
// below.
func (g *Group) Reclaim() Reclaim {
	h := Reclaim{Swap: nan, Refaults: nan, High: nan, HighEvents: nan}
	if g.memory == nil || g.limitLevel < 0 && !g.memory.hasCounters() {
		return h
	}

	level, prefix := max(g.limitLevel, 0), "total_"
	if g.memory.v2 {
		prefix = ""
	}
	var v [4]float64
	_ = g.r.keys(g.memory.path(level, "memory.stat"), []string{prefix + "workingset_refault_file",
		prefix + "workingset_refault_anon", prefix + "workingset_refault", "total_swap"}, v[:])
	for _, pages := range v[:3] { // a kernel has either the first two keys, or the third, or none
		if bytes := pages * float64(os.Getpagesize()); math.IsNaN(h.Refaults) {
			h.Refaults = bytes
		} else if !math.IsNaN(bytes) {
			h.Refaults += bytes
		}
	}
	if h.Swap = v[3]; !g.memory.v2 {
		return h
	}

	var none Counters // drops errors: a missing file is not a failure
	h.Swap = none.number(&g.r, existingPath(g.memory.path(level, "memory.swap.current")))
	g.readHigh(&h)
	return h
}

// readHigh reads the lowest memory.high of the group and its visible ancestors, and how often it was exceeded.
func (g *Group) readHigh(h *Reclaim) {
	for i := range g.memory.dirs {
		data, err := g.r.ReadOnce(g.memory.path(i, "memory.high"), maxFile)
		if err != nil {
			continue
		}
		if v, ok := parseLimit(data); ok && (v < h.High || v == v && h.High != h.High) {
			var events [1]float64
			_ = g.r.keys(g.memory.path(i, "memory.events"), []string{"high"}, events[:])
			h.High, h.HighEvents = v, events[0]
		}
	}
}
