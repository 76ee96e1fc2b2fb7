package cgroup

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
)

// wantV2 returns the expected sample of groupV2, computed by hand.
func wantV2() Counters {
	return Counters{
		CPUSeconds: 5.5, Periods: 300, ThrottledPeriods: 120, ThrottledSeconds: 4.5,
		Memory: 5e8, WorkingSet: 4.1e8, PageCache: 1.2e8, PeakMemory: 6e8, Swap: 7e7,
		Anon: 3e8, Shmem: 3e7, Kernel: 5e6, Sock: 6e6, HugeTLB: math.NaN(),
		LimitWorkingSet: 7e8, LimitPageCache: 2e8, LimitPeak: 9e8, LimitUnreclaimable: 6e8, OOMKills: 1, OOMs: 1, LimitOOMs: 2,
		ReadBytes: 1005, WriteBytes: 2006, Processes: 5, Threads: 5,
		Pressure: Pressure{Stall{2.5, 1.5}, Stall{30e-6, 20e-6}, Stall{7e-6, math.NaN()}}}
}

func wantV1() Counters {
	return Counters{
		CPUSeconds: 2.5, Periods: 40, ThrottledPeriods: 30, ThrottledSeconds: 1.5,
		Memory: 1e8, WorkingSet: 7e7, PageCache: 4e7, PeakMemory: 1.2e8, Swap: 5e6,
		Anon: 4e7, Shmem: 1e7, Kernel: 1e7, Sock: math.NaN(), HugeTLB: math.NaN(),
		LimitWorkingSet: 1.3e8, LimitPageCache: 5e7, LimitPeak: 209715200, LimitUnreclaimable: 1e8, OOMKills: 3, OOMs: math.NaN(), LimitOOMs: math.NaN(),
		ReadBytes: 52527104, WriteBytes: 73408512, Processes: 2, Threads: 3, // 3 of the 6 tasks have ended
		Pressure: UnknownPressure()}
}

func TestGroup_ReadReturnsCountersOfTree(t *testing.T) {
	t.Parallel()
	n := math.NaN()
	with := func(c Counters, change func(*Counters)) Counters {
		change(&c)
		return c
	}
	root := unknownCounters()
	for name, c := range map[string]struct {
		tree groupTree
		want Counters
	}{
		"v2": {groupV2(), wantV2()},
		"v1": {groupV1(), wantV1()},
		"v2, no controllers": {
			groupTree{groupV2().cgroup, groupV2().mounts, map[string]string{
				"kube/pod/app/cgroup.procs": "42\n", "kube/pod/app/cgroup.threads": "42\n43\n", "kube/pod/app/cgroup.events": "",
				"kube/pod/app/cpu.stat": "usage_usec 100\nuser_usec 50\nsystem_usec 50\n"}},
			with(unknownCounters(), func(c *Counters) { c.CPUSeconds, c.Processes, c.Threads = 1e-4, 1, 2 })},
		"v2, no pids controller, no peak, no io, no swap": {
			groupV2().with(map[string]string{"kube/pod/app/pids.current": "-", "kube/pod/app/memory.peak": "-", "kube/pod/app/io.stat": "-", "kube/pod/app/memory.swap.current": "-"}),
			with(wantV2(), func(c *Counters) { c.Threads, c.PeakMemory, c.ReadBytes, c.WriteBytes, c.Swap = 7, n, n, n, n })},
		"v2 before Linux 5.18, and with huge pages in its usage": {
			groupV2().with(map[string]string{"kube/pod/app/memory.stat": "anon 300000000\nfile 150000000\nsock 10000000\nhugetlb 4194304\nshmem 30000000\ninactive_file 90000000\n"}),
			with(wantV2(), func(c *Counters) { c.Kernel, c.Sock, c.HugeTLB = 4e7-4194304, 1e7, 4194304 })},
		"v2, no storage I/O yet": {
			groupV2().with(map[string]string{"kube/pod/app/io.stat": ""}),
			with(wantV2(), func(c *Counters) { c.ReadBytes, c.WriteBytes = 0, 0 })},
		"v1, no throttle rule": {
			groupV1().with(map[string]string{"blkio/job/task/blkio.throttle.io_service_bytes_recursive": "Total 0\n"}),
			with(wantV1(), func(c *Counters) { c.ReadBytes, c.WriteBytes = n, n })},
		"v1, no throttle rule, bfq counts": {
			groupV1().with(map[string]string{"blkio/job/task/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
				"blkio/job/task/blkio.bfq.io_service_bytes_recursive": "8:0 Read 12\n8:0 Write 13\n8:0 Total 25\nTotal 25\n"}),
			with(wantV1(), func(c *Counters) { c.ReadBytes, c.WriteBytes = 12, 13 })},
		"v1, old kernel": {
			groupV1().with(map[string]string{"blkio/job/task/blkio.throttle.io_service_bytes_recursive": "-",
				"blkio/job/task/blkio.throttle.io_service_bytes": "8:0 Read 12\n8:0 Write 13\nTotal 25\n",
				"memory/job/task/memory.oom_control":             "oom_kill_disable 0\nunder_oom 0\n", "pids/job/task/cgroup.procs": "-"}),
			with(wantV1(), func(c *Counters) { c.ReadBytes, c.WriteBytes, c.OOMKills, c.Threads = 12, 13, n, 3 })},
		"v1, storage of another group": {
			groupTree{strings.Replace(groupV1().cgroup, "blkio:/job/task", "blkio:/", 1), groupV1().mounts, groupV1().files},
			with(wantV1(), func(c *Counters) { c.ReadBytes, c.WriteBytes = n, n })},
		"v2, root group": {groupTree{"0::/\n", groupV2().mounts, groupV2().files}, root},
		"v1, root group": {groupTree{"5:memory:/\n4:cpu,cpuacct:/\n", groupV1().mounts, groupV1().files}, root},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groupSame(t, "counters", c.tree.find(t).Read(), c.want)
		})
	}
}

// groupFields maps each file of the app in groupV2 to a function that makes the fields from this file unknown.
var groupFields = map[string]func(*Counters){
	"cpu.stat":       func(c *Counters) { c.CPUSeconds = nan },
	"memory.current": func(c *Counters) { c.Memory, c.WorkingSet = nan, nan },
	"memory.peak":    func(c *Counters) { c.PeakMemory = nan },
	"memory.stat": func(c *Counters) {
		c.WorkingSet, c.PageCache, c.Anon, c.Shmem, c.Kernel, c.Sock = nan, nan, nan, nan, nan, nan
	},
	"memory.swap.current": func(c *Counters) { c.Swap = nan },
	"memory.events":       func(c *Counters) { c.OOMKills, c.OOMs = nan, nan },
	"io.stat":             func(c *Counters) { c.ReadBytes, c.WriteBytes = nan, nan },
	"pids.current":        func(c *Counters) { c.Threads = nan },
	"cgroup.procs":        func(c *Counters) { c.Processes = nan },
	"cpu.pressure":        func(c *Counters) { c.Pressure.CPU = Stall{nan, nan} },
	"memory.pressure":     func(c *Counters) { c.Pressure.Memory = Stall{nan, nan} },
	"io.pressure":         func(c *Counters) { c.Pressure.IO = Stall{nan, nan} },
}

// If a file is empty, short, malformed, huge, a directory, unreadable or missing, only the fields from this file are
// unknown, and Failed holds the reason.
func TestGroup_DamagedFileAffectsOnlyItsFields(t *testing.T) {
	t.Parallel()
	faults := map[string]func(t *testing.T, path string){
		"empty":    func(t *testing.T, path string) { groupWrite(t, path, "") },
		"short":    func(t *testing.T, path string) { groupWrite(t, path, "usag") },
		"nonsense": func(t *testing.T, path string) { groupWrite(t, path, "\x00\xff - = :\n\n\nsome full total=\n") },
		"negative": func(t *testing.T, path string) { groupWrite(t, path, "-1\n") },
		"huge": func(t *testing.T, path string) {
			size := maxFile
			if filepath.Base(path) == "cgroup.procs" {
				size = maxTable
			}
			groupWrite(t, path, strings.Repeat("7", size+1))
		},
		"directory": func(t *testing.T, path string) { os.Remove(path); os.Mkdir(path, 0o755) },
		"gone":      func(t *testing.T, path string) { os.Remove(path) },
		"fifo":      func(t *testing.T, path string) { os.Remove(path); unix.Mkfifo(path, 0o644) },
	}

	// An empty cgroup.procs or io.stat is valid: there are no processes or no I/O.
	none := map[string]func(*Counters){
		"io.stat":      func(c *Counters) { c.ReadBytes, c.WriteBytes = 0, 0 },
		"cgroup.procs": func(c *Counters) { c.Processes = 3 }}

	for file, absent := range groupFields {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			o := groupV2().write(t)
			path := groupFile(o, "kube/pod/app/"+file)
			sound, err := os.ReadFile(path)
			must(t, err)
			for fault, spoil := range faults {
				g := groupFind(t, o)
				spoil(t, path)
				got, want := g.Read(), wantV2()
				if set, ok := none[file]; ok && fault == "empty" {
					set(&want)
				} else {
					absent(&want)
					want.Failed = map[string]error{file: errors.New("")}
				}
				groupSame(t, "counters, "+fault, got, want)
				for _, err := range got.Failed {
					check.True(t, len(err.Error()) <= 500 && strings.Contains(err.Error(), file),
						"%s: reason = %q, want at most 500 bytes that contain %s", fault, err, file)
				}
				os.Remove(path)
				groupWrite(t, path, string(sound))
			}
		})
	}
}

// Processes and threads are counted unless CountTasks(false) was called.
func TestGroup_CountTasksDisablesCounting(t *testing.T) {
	t.Parallel()
	g := groupV2().find(t)
	g.CountTasks(false)
	want := wantV2()
	want.Processes, want.Threads = math.NaN(), math.NaN()
	groupSame(t, "counters without tasks", g.Read(), want)
	g.CountTasks(true)
	groupSame(t, "counters", g.Read(), wantV2())
}

// Values from a file that this user may not read are unknown, with the reason EACCES.
func TestGroup_UnreadableFileIsUnknown(t *testing.T) {
	t.Parallel()
	o := groupV2().write(t)
	g := groupFind(t, o)
	path := groupFile(o, "kube/pod/app/memory.current")
	must(t, os.Chmod(path, 0))
	must(t, os.Chmod(filepath.Dir(filepath.Dir(o.Proc)), 0o755)) // directory made by MkdirTemp
	var c Counters
	groupAsNobody(t, func() { c = g.Read() })
	check.True(t, math.IsNaN(c.Memory) && errors.Is(c.Failed["memory.current"], fs.ErrPermission) && len(c.Failed) == 1,
		"memory = %v, failures = %v; want NaN, and only ErrPermission for memory.current", c.Memory, c.Failed)
	check.True(t, c.PeakMemory == 6e8, "peak memory = %v, want 6e8", c.PeakMemory)
}

// A removed group has no values, but a reason for each file.
func TestGroup_ReportsReasonsAfterRemoval(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]groupTree{"v1": groupV1(), "v2": groupV2()} {
		o := tree.write(t)
		g := groupFind(t, o)
		g.Read()
		g.taskCounter, g.descendantOOMs.next = taskCounter{}, time.Time{}
		must(t, os.RemoveAll(groupFile(o, "")))
		c := g.Read()
		failed := c.Failed
		c.Failed = nil
		groupSame(t, name, c, unknownCounters())
		check.True(t, len(failed) >= 6, "%s: failures after the removal = %v, want at least 6", name, failed)
		if l := g.Limits(); !math.IsNaN(l.Memory) || !math.IsNaN(l.CPUs) || l.CPUSetCPUs != 0 {
			t.Errorf("%s: limits after the removal = %+v, want none", name, l)
		}
		pids, err := g.PIDs()
		check.True(t, err != nil, "%s: PIDs after the removal = %v, want an error", name, pids)
	}
}

func TestGroup_PIDsIncludesGroupsBelow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tree groupTree
		want []int
	}{
		"v2, with groups below":               {groupV2(), []int{42, 43, 50, 51, 52}},
		"v1, different CPU and memory groups": {groupV1().with(map[string]string{"memory/job/task/cgroup.procs": "43\n0\n99\n"}), []int{0, 42, 43, 99}},
	} {
		got, err := c.tree.find(t).PIDs()
		check.True(t, err == nil && slices.Equal(got, c.want), "%s: PIDs = %v, %v; want %v, nil", name, got, err, c.want)
	}

	root := groupTree{"0::/\n", groupV2().mounts, groupV2().files}.find(t)
	pids, err := root.PIDs()
	check.True(t, err != nil, "PIDs of the root group = %v, want an error", pids)
}

// OOM kills of a group below still count after the removal of that group. A new group with the same name counts from 0.
func TestGroup_CountsOOMKillsBelow(t *testing.T) {
	t.Parallel()
	o := groupV1().write(t)
	g := groupFind(t, o)
	sub := groupFile(o, "memory/job/task/sub")
	want := func(what string, n float64) {
		t.Helper()
		g.descendantOOMs.next = time.Time{}
		got := g.Read().OOMKills
		check.True(t, got == n, "%s: OOMKills = %v, want %v", what, got, n)
	}

	want("at first", 3)
	groupWrite(t, sub+"/memory.oom_control", "under_oom 0\noom_kill 5\n")
	want("after three more kills", 6)
	os.RemoveAll(sub)
	want("group removed", 6)
	groupWrite(t, sub+"/memory.oom_control", "under_oom 0\noom_kill 1\n")
	want("group created again", 7)
	groupWrite(t, sub+"/memory.oom_control", "nonsense\n")
	want("malformed file", 7)
}

// If a group has many processes, they are counted less often, so that counting takes a 300th of a core. Between counts,
// the last count is returned.
func TestGroup_CountsManyProcessesLessOften(t *testing.T) {
	t.Parallel()
	o := groupV2().write(t)
	g := groupFind(t, o)
	groupWrite(t, groupFile(o, "kube/pod/app/cgroup.procs"), strings.Repeat("12345\n", 300_000))
	start := time.Now()
	if n := g.Read().Processes; n != 300_003 {
		t.Errorf("processes in the first count = %v, want 300003", n)
	}
	wait := g.taskCounter.next.Sub(start)
	check.True(t, wait >= 50*time.Millisecond, "pause before the next count = %v, want at least 50 ms", wait)
	g.taskCounter.next = g.taskCounter.next.Add(time.Hour) // in case writing the files takes long
	groupWrite(t, groupFile(o, "kube/pod/app/cgroup.procs"), "1\n")
	n := g.Read().Processes
	check.True(t, n == 300_003, "processes before the next count = %v, want 300003", n)
	g.taskCounter.next = time.Time{}
	n = g.Read().Processes
	check.True(t, n == 4, "processes in the next count = %v, want 4", n)
}

func TestGroup_ReadAllocatesLittle(t *testing.T) {
	g := groupV2().find(t)
	g.Read()
	g.taskCounter.next = time.Now().Add(time.Hour)
	n := testing.AllocsPerRun(100, func() { g.Read() })
	check.True(t, n <= 30, "%v allocations per Read, want at most 30", n)
}

// Reclaim comes from the group with the limit, except memory.high, which may come from any ancestor.
func TestGroup_ReclaimIsOfGroupWithLimit(t *testing.T) {
	t.Parallel()
	page := float64(os.Getpagesize())
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	check := func(name string, tree groupTree, files map[string]string, want Reclaim) {
		t.Helper()
		o := tree.write(t)
		for file, text := range files {
			groupWrite(t, groupFile(o, file), text)
		}
		g := groupFind(t, o)
		g.Limits()
		got := g.Reclaim()
		check.True(t, same(got.Swap, want.Swap) && same(got.Refaults, want.Refaults) && same(got.High, want.High) && same(got.HighEvents, want.HighEvents),
			"%s: Reclaim = %+v, want %+v", name, got, want)
	}

	check("v2", groupV2(), map[string]string{
		"kube/pod/memory.stat":         "anon 1\nfile 2\nworkingset_refault_anon 5\nworkingset_refault_file 7\n",
		"kube/pod/memory.swap.current": "4096\n", "kube/pod/memory.high": "max\n", "kube/memory.high": "1000000\n",
		"kube/memory.events": "low 0\nhigh 12\nmax 0\n", "kube/pod/app/memory.high": "2000000\n",
		"kube/pod/app/memory.events": "low 0\nhigh 3\nmax 0\noom_kill 0\n",
	}, Reclaim{Swap: 4096, Refaults: 12 * page, High: 1000000, HighEvents: 12})
	check("v2, no such keys", groupV2(), nil, Reclaim{Swap: nan, Refaults: nan, High: nan, HighEvents: nan})
	check("v2 before Linux 5.9", groupV2(), map[string]string{"kube/pod/memory.stat": "anon 1\nworkingset_refault 9\n"},
		Reclaim{Swap: nan, Refaults: 9 * page, High: nan, HighEvents: nan})
	check("v1", groupV1(), map[string]string{
		"memory/job/task/memory.stat": "cache 1\nhierarchical_memory_limit 104857600\ntotal_swap 8192\ntotal_workingset_refault_file 3\n",
	}, Reclaim{Swap: nan, Refaults: nan, High: nan, HighEvents: nan}) // the group above has the limit
	check("v1, of the group with the limit", groupV1(), map[string]string{
		"memory/job/memory.stat": "cache 1\ntotal_swap 8192\ntotal_workingset_refault_file 3\ntotal_workingset_refault_anon 0\n",
	}, Reclaim{Swap: 8192, Refaults: 3 * page, High: nan, HighEvents: nan})
}
