package cgroup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

var nan = math.NaN()

// A Group is a process's membership in each hierarchy at the time of Find. If the process is moved, call Find again. A
// Group is not safe for concurrent use.
type Group struct {
	r   reader
	sys string

	version string
	path    string

	// The memberships by purpose; nil if not visible. acct counts CPU time, cpu has the quota. In v2, all of them are
	// equal to unified.
	cpu, acct, cpuset, memory, pids, io, unified *membership

	// primary are the memberships in the hierarchies of CPU time and memory, which determine the processes of the group.
	primary []*membership

	cpuFile       string // file with the CPU time
	own           memoryFiles
	ioFiles       []string // files with bytes read and written; the first file that counts is used
	threadsFile   string   // file with the number of threads; "" if there is none
	pressureFiles [3]string
	quotaStat     string // cpu.stat of the group that set the quota at the last Limits
	limit         memoryFiles
	limitLevel    int  // level of the group with the files in limit; -1 = none
	limitsRead    bool // Limits was called

	stacked     map[string]bool // whether devices are stacked on other devices
	taskCounter taskCounter
	// skipTasks reports whether Read skips counting processes and threads.
	skipTasks      bool
	descendantOOMs descendantOOMs
}

func newGroup(sys string) *Group { return &Group{sys: sys, r: newReader(), limitLevel: -1} }

// memoryFiles are the paths of the files about a group's memory; "" if the kernel lacks the file.
type memoryFiles struct{ usage, stat, peak, oom, local, swap string }

// name returns the path to display. It is the path of the group that counts memory or, if none does, CPU time. In v2
// they are the same group.
func (g *Group) name() string {
	for _, p := range []*membership{g.memory, g.acct, g.unified} {
		if p.hasCounters() {
			return p.names[0]
		}
	}
	p := cmp.Or(g.unified, g.memory, g.acct, g.cpu, g.pids, g.io, g.cpuset)
	return p.names[0]
}

// findFiles determines the group that counts CPU time, the group's path and the existing files, so that Read does not
// have to.
func (g *Group) findFiles() {
	// v2 counts CPU time in every group, even if a v1 hierarchy has the controller.
	if !g.acct.hasCounters() && g.unified.hasCounters() {
		g.acct = g.unified
	}
	g.path = g.name()
	if g.acct.hasCounters() {
		g.primary = append(g.primary, g.acct)
		g.cpuFile = filepath.Join(g.acct.dir(), map[bool]string{true: "cpu.stat", false: "cpuacct.usage"}[g.acct.v2])
	}
	if g.memory.hasCounters() {
		g.own = memoryFilesIn(g.memory.dir(), g.memory.v2)
		if !slices.Contains(g.primary, g.memory) {
			g.primary = append(g.primary, g.memory)
		}
	}

	for _, p := range []*membership{g.pids, g.unified} {
		if len(g.primary) == 0 && p.hasCounters() {
			g.primary = append(g.primary, p)
		}
	}

	if g.matchesPrimary(g.pids) {
		g.threadsFile = existingPath(filepath.Join(g.pids.dir(), "pids.current"))
	}
	if g.matchesPrimary(g.io) {
		g.ioFiles = trafficFiles(g.io)
	}

	if g.unified.hasCounters() {
		for i, name := range stallNames {
			g.pressureFiles[i] = existingPath(filepath.Join(g.unified.dir(), name+".pressure"))
		}
	}
}

// stallNames are the resources of PSI, in the order of Group.pressureFiles.
var stallNames = [3]string{"cpu", "memory", "io"}

// matchesPrimary reports whether the group p has the same processes as a primary group, according to its path.
func (g *Group) matchesPrimary(p *membership) bool {
	if !p.hasCounters() {
		return false
	}
	return slices.ContainsFunc(g.primary, func(h *membership) bool {
		return h.created && p.created || h.names[0] == p.names[0]
	})
}

func trafficFiles(p *membership) []string {
	names := []string{"io.stat"}
	if !p.v2 {
		names = []string{"blkio.throttle.io_service_bytes_recursive", "blkio.bfq.io_service_bytes_recursive"}
		if !exists(filepath.Join(p.dir(), names[0])) { // before Linux 4.19
			names = []string{"blkio.throttle.io_service_bytes", "blkio.io_service_bytes_recursive"}
		}
	}

	var files []string
	for _, name := range names {
		if file := filepath.Join(p.dir(), name); exists(file) {
			files = append(files, file)
		}
	}
	return files
}

func memoryFilesIn(dir string, v2 bool) memoryFiles {
	file := func(name string) string { return existingPath(filepath.Join(dir, name)) }
	if v2 {
		return memoryFiles{file("memory.current"), file("memory.stat"), file("memory.peak"), file("memory.events"),
			file("memory.events.local"), file("memory.swap.current")}
	}
	return memoryFiles{usage: file("memory.usage_in_bytes"), stat: file("memory.stat"),
		peak: file("memory.max_usage_in_bytes"), oom: file("memory.oom_control")}
}

// Version returns "v1", "v2" or "hybrid" (both), according to the visible hierarchies.
func (g *Group) Version() string { return g.version }

// Path returns the group's path in /proc/PID/cgroup, for display. It is the path of the group that counts memory or, if
// none does, of the group that counts CPU time or of the v2 group. It is the path of a root group only if all groups
// are root groups.
func (g *Group) Path() string { return g.path }

// Close closes the files that Read and Limits keep open. Without Close, the garbage collector closes them. A later Read
// opens them again.
func (g *Group) Close() { g.r.Close() }

// Limits reads the current limits. Later calls to Read return the counters of the limiting groups found by this call.
func (g *Group) Limits() Limits {
	l := noLimits()
	g.limitsRead = true
	quota, limiting := -1, -1
	if g.cpu != nil {
		for i := range g.cpu.dirs {
			if v := g.readQuota(&l, i); v < l.CPUs || v == v && l.CPUs != l.CPUs {
				l.CPUs, l.CPUGroup, quota = v, g.cpu.names[i], i
			}
		}
	}

	if g.memory != nil {
		file := "memory.max"
		if !g.memory.v2 {
			file = "memory.limit_in_bytes"
		}
		for i := range g.memory.dirs {
			switch v := g.parseFile(&l, g.memory.path(i, file), parseLimit); {
			case v == l.Memory: // of equal limits, take the outermost, which is reached first
				l.InnerMemoryGroup = cmp.Or(l.InnerMemoryGroup, l.MemoryGroup)
				l.MemoryGroup, limiting = g.memory.names[i], i
			case v < l.Memory || v == v && l.Memory != l.Memory:
				l.Memory, l.MemoryGroup, l.InnerMemoryGroup, limiting = v, g.memory.names[i], "", i
			}
		}
		if v := g.hiddenLimit(&l); v < l.Memory || v == v && l.Memory != l.Memory {
			l.Memory, l.MemoryGroup, l.InnerMemoryGroup, limiting = v, "", "", -1
		}
	}

	g.setLimitLevels(quota, limiting)
	l.CPUSetCPUs = g.readCPUSet(&l)
	return l
}

// setLimitLevels sets the levels of the limiting groups for which Read returns counters; -1 means that there is none.
func (g *Group) setLimitLevels(quota, limiting int) {
	g.quotaStat = ""
	if quota >= 0 {
		g.quotaStat = g.cpu.path(quota, "cpu.stat")
	}

	if limiting == g.limitLevel {
		return
	}
	g.limitLevel, g.limit = limiting, memoryFiles{}
	if limiting >= 0 {
		g.limit = memoryFilesIn(g.memory.dirs[limiting], g.memory.v2)
	}
}

// readQuota returns the CPU quota of the group at the given level, in cores, or NaN.
func (g *Group) readQuota(l *Limits, level int) float64 {
	if g.cpu.v2 {
		return g.parseFile(l, g.cpu.path(level, "cpu.max"), parseQuota)
	}
	quota := g.parseFile(l, g.cpu.path(level, "cpu.cfs_quota_us"), func(data []byte) (float64, bool) {
		if len(data) > 1 && data[0] == '-' {
			return nan, true
		}
		return parseNumber(data)
	})

	if quota != quota {
		return nan
	}
	period := g.parseFile(l, g.cpu.path(level, "cpu.cfs_period_us"), parseNumber)
	if quota <= 0 || !(period > 0) {
		return nan
	}
	return quota / period
}

// hiddenLimit returns the lowest memory limit of the v1 group and all its ancestors, or NaN. It reads the limit only if
// some ancestors are hidden.
func (g *Group) hiddenLimit(l *Limits) float64 {
	if g.memory.v2 || !g.memory.hidden {
		return nan
	}
	return g.parseFile(l, g.memory.path(0, "memory.stat"), func(data []byte) (float64, bool) {
		v := [1]float64{nan}
		parseKeys(data, []string{"hierarchical_memory_limit"}, v[:])
		if v[0] >= 1<<62 {
			return nan, true
		}
		return v[0], v[0] == v[0]
	})
}

// readCPUSet returns the number of CPUs of the nearest group with a cpuset.
func (g *Group) readCPUSet(l *Limits) int {
	if g.cpuset == nil {
		return 0
	}
	names := []string{"cpuset.cpus.effective"}
	if !g.cpuset.v2 {
		names = []string{"cpuset.effective_cpus", "cpuset.cpus"}
	}

	for level := range g.cpuset.dirs {
		for _, name := range names {
			n := g.parseFile(l, g.cpuset.path(level, name), func(data []byte) (float64, bool) {
				n, ok := parseCPUs(data)
				return float64(n), ok
			})
			if n > 0 {
				return int(n)
			}
		}
	}
	return 0
}

// parseFile reads and parses the file at path for Limits. It returns NaN if the file does not exist, which is not a
// failure: v2's root, and a group without the controller, lack it.
func (g *Group) parseFile(l *Limits, path string, parse func([]byte) (float64, bool)) float64 {
	v, err := g.r.value(path, parse)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return v
	}
	if l.Failed == nil {
		l.Failed = map[string]error{}
	}
	l.Failed[filepath.Base(path)] = err
	return nan
}

// PIDs returns the sorted IDs of the processes of the group and all groups below it. If CPU time and memory have
// different groups, it returns the processes of both. 0 stands for a process of another PID namespace. It returns an
// error if the process is only in root groups.
func (g *Group) PIDs() ([]int, error) {
	return g.list(g.primary...)
}

// MemoryPIDs returns the sorted IDs of the processes of the group that counts memory and all groups below it.
func (g *Group) MemoryPIDs() ([]int, error) {
	if !g.memory.hasCounters() {
		return g.list()
	}
	return g.list(g.memory)
}

func (g *Group) list(groups ...*membership) ([]int, error) {
	if len(groups) == 0 {
		return nil, fmt.Errorf("list the processes of control group %s: it is the root group, which contains all",
			g.path)
	}
	var pids []int
	for _, p := range groups {
		in, err := processesIn(p.dir())
		if err != nil {
			return nil, fmt.Errorf("list the processes of control group %s: %w", g.path, err)
		}
		pids = append(pids, in...)
	}

	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// TaskLimits returns the limits on processes and threads (pids.max) of the group and its visible ancestors, nearest
// first. It omits unlimited and unreadable groups.
func (g *Group) TaskLimits() (limits []TaskLimit) {
	if g == nil || g.pids == nil {
		return nil
	}
	for _, dir := range g.pids.dirs {
		file := filepath.Join(dir, "pids.max")
		most, limited := g.readTaskCount(file)
		if !limited {
			continue
		}
		if used, known := g.readTaskCount(filepath.Join(dir, "pids.current")); known {
			limits = append(limits, TaskLimit{Name: file, Max: most, Used: used})
		}
	}
	return limits
}

// readTaskCount reads a number of processes and threads from file. It reports false for "max", or if file cannot be
// read.
func (g *Group) readTaskCount(file string) (int64, bool) {
	data, err := g.r.ReadOnce(file, maxFile)
	if err != nil {
		return 0, false
	}
	n, ok := procfile.ParseCount(bytes.TrimSpace(data))
	return int64(min(n, math.MaxInt64)), ok
}

// isGone reports whether err means that a group was removed, or that only the group above lists its processes (threaded
// groups in v2).
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP)
}

// MemoryPath returns the path of the group to which memory is charged, as in the kernel's OOM log (task_memcg). "/" is
// the root, which has no limit; "" means that the group is not visible.
func (g *Group) MemoryPath() string {
	if g.memory == nil {
		return ""
	}
	return g.memory.names[0]
}
