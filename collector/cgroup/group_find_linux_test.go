package cgroup

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
)

// Find finds the group of each controller and the group's ancestors.
func TestFind_FindsGroupOfEachController(t *testing.T) {
	t.Parallel()
	v1 := func(root, point string) string { return groupMount(root, "/sys/fs/cgroup/"+point, "cgroup", point) }

	v1Files := func(dirs ...string) map[string]string {
		files := map[string]string{}
		for _, d := range dirs {
			files[d+"/cgroup.procs"] = "42\n"
		}
		return files
	}

	for name, c := range map[string]struct {
		tree                          groupTree
		version, path                 string
		cpu, acct, memory, pids, util []string
	}{
		"v2": {tree: groupV2(), version: "v2", path: "/kube/pod/app",
			cpu:    []string{"kube/pod/app", "kube/pod", "kube", ""},
			acct:   []string{"kube/pod/app", "kube/pod", "kube", ""},
			memory: []string{"kube/pod/app", "kube/pod", "kube", ""},
			pids:   []string{"kube/pod/app", "kube/pod", "kube", ""}},
		"v1": {tree: groupV1(), version: "v1", path: "/job/task",
			cpu:    []string{"cpu,cpuacct/job/task", "cpu,cpuacct/job", "cpu,cpuacct"},
			acct:   []string{"cpu,cpuacct/job/task", "cpu,cpuacct/job", "cpu,cpuacct"},
			memory: []string{"memory/job/task", "memory/job", "memory"},
			pids:   []string{"pids/job/task", "pids/job", "pids"}},
		"docker v1: no namespace, own group mounted": {
			tree: groupTree{"5:memory:/docker/abc\n4:cpuacct:/docker/abc\n",
				v1("/docker/abc", "memory") + v1("/docker/abc", "cpuacct"), v1Files("memory", "cpuacct")},
			version: "v1", path: "/docker/abc", acct: []string{"cpuacct"}, memory: []string{"memory"}},
		"podman v1: group of a job within the container": {
			tree: groupTree{"5:memory:/libpod_parent/libpod-1/run\n4:cpuacct:/libpod_parent/libpod-1\n",
				v1("/libpod_parent/libpod-1", "memory") + v1("/libpod_parent/libpod-1", "cpuacct"),
				v1Files("memory", "memory/run", "cpuacct")},
			version: "v1", path: "/libpod_parent/libpod-1/run", acct: []string{"cpuacct"}, memory: []string{"memory/run", "memory"}},
		"namespace": {
			tree: groupTree{"5:memory:/\n0::/\n", v1("/", "memory") + groupMount("/", "/sys/fs/cgroup/unified", "cgroup2", "x"),
				map[string]string{"memory/cgroup.procs": "42\n", "unified/cgroup.procs": "42\n",
					"unified/cgroup.events": "populated 1\n", "unified/cpu.stat": "usage_usec 1\n"}},
			version: "hybrid", path: "/", cpu: []string{"unified"}, acct: []string{"unified"}, memory: []string{"memory"}, pids: []string{"unified"}},
		"namespace, process outside": {
			tree: groupTree{"5:memory:/../../other\n4:cpuacct:/\n", v1("/", "memory") + v1("/", "cpuacct"),
				v1Files("memory", "cpuacct")},
			version: "v1", path: "/", acct: []string{"cpuacct"}},
		"namespace, mount from outside": {
			tree:    groupTree{"5:memory:/../other/x\n", v1("/..", "memory"), v1Files("memory", "memory/other", "memory/other/x")},
			version: "v1", path: "/../other/x", memory: []string{"memory/other/x", "memory/other", "memory"}},
		"namespace, host's mount with another root": {
			tree: groupTree{"0::/\n",
				groupMount("/", "/sys/fs/cgroup/own", "cgroup2", "x") + groupMount("/../..", "/sys/fs/cgroup/host", "cgroup2", "x"),
				map[string]string{"own/cgroup.procs": "42\n", "own/cgroup.events": "", "host/cgroup.procs": "",
					"host/a/cgroup.procs": "", "host/a/x/cgroup.procs": "7\n", "host/a/y/cgroup.procs": "1\n42\n", "host/a/y/cgroup.events": ""}},
			version: "v2", path: "/", cpu: []string{"host/a/y", "host/a", "host"}, acct: []string{"host/a/y", "host/a", "host"},
			memory: []string{"host/a/y", "host/a", "host"}, pids: []string{"host/a/y", "host/a", "host"}},
		"namespace, neighbouring group below host's mount": {
			tree: groupTree{"5:memory:/../app\n", v1("/../../..", "memory"),
				v1Files("memory", "memory/k/p/app", "memory/k/q/other", "memory/k/p", "memory/k")},
			version: "v1", path: "/../app", memory: []string{"memory/k/p/app", "memory/k/p", "memory/k", "memory"}},
		"several mounts: use the one with most ancestors": {
			tree: groupTree{"5:memory:/a/b\n",
				v1("/a/b", "memory") + groupMount("/", "/sys/fs/cgroup/all", "cgroup", "memory") + groupMount("/a", "/sys/fs/cgroup/some", "cgroup", "memory"),
				v1Files("memory", "all", "all/a", "all/a/b", "some", "some/b")},
			version: "v1", path: "/a/b", memory: []string{"all/a/b", "all/a", "all"}},
		"sibling with the same prefix": {
			tree: groupTree{"5:memory:/ab\n4:cpuacct:/ab\n", v1("/a", "memory") + v1("/", "cpuacct"),
				v1Files("memory", "memoryb", "cpuacct/ab", "cpuacct")},
			version: "v1", path: "/ab", acct: []string{"cpuacct/ab", "cpuacct"}},
		"spaces, colons and backslashes": {
			tree:    groupTree{"5:memory:/a b:c\\d/e\n", v1(`/a\040b:c\134d`, "memory"), v1Files("memory", "memory/e")},
			version: "v1", path: `/a b:c\d/e`, memory: []string{"memory/e", "memory"}},
		"hybrid: memory is in v1, which is not mounted": {
			tree: groupTree{"5:memory:/a\n0::/a\n", groupMount("/", "/sys/fs/cgroup", "cgroup2", "x"),
				map[string]string{"a/cgroup.procs": "42\n", "a/cgroup.events": ""}},
			version: "v2", path: "/a", cpu: []string{"a", ""}, acct: []string{"a", ""}, pids: []string{"a", ""}},
		"hybrid: CPU time from v2, because v1 group is the root": {
			tree: groupTree{"4:cpuacct:/\n5:memory:/user/session-1\n0::/user/session-1\n",
				v1("/", "memory") + v1("/", "cpuacct") + groupMount("/", "/sys/fs/cgroup/unified", "cgroup2", "x"),
				map[string]string{"cpuacct/cgroup.procs": "1\n", "cpuacct/release_agent": "", "memory/release_agent": "",
					"memory/user/session-1/cgroup.procs": "42\n", "unified/user/session-1/cgroup.procs": "42\n",
					"unified/user/session-1/cgroup.events": "populated 1\n", "unified/user/session-1/cpu.stat": "usage_usec 1\n"}},
			version: "hybrid", path: "/user/session-1", cpu: []string{"unified/user/session-1", "unified/user", "unified"},
			acct:   []string{"unified/user/session-1", "unified/user", "unified"},
			memory: []string{"memory/user/session-1", "memory/user", "memory"},
			pids:   []string{"unified/user/session-1", "unified/user", "unified"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.tree.write(t)
			g := groupFind(t, o)
			check.True(t, g.Version() == c.version && g.Path() == c.path,
				"version = %q, path = %q; want %q, %q", g.Version(), g.Path(), c.version, c.path)
			for what, p := range map[string]struct {
				got  *membership
				want []string
			}{"cpu": {g.cpu, c.cpu}, "cpuacct": {g.acct, c.acct}, "memory": {g.memory, c.memory}, "pids": {g.pids, c.pids}} {
				diff := cmp.Diff(p.want, groupPlaces(o, p.got))
				check.True(t, diff == "", "directories of the %s group and its ancestors (-want +got):\n%s", what, diff)
			}
		})
	}
}

// If no group is visible, the error wraps ErrNoGroups and states the reason.
func TestFind_ReturnsReasonWithoutGroup(t *testing.T) {
	t.Parallel()
	good := groupV2()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, o Options, tree *groupTree)
		why   string
	}{
		"nothing mounted":       {func(t *testing.T, o Options, _ *groupTree) { groupWrite(t, o.Proc+"/42/mountinfo", "") }, "none is mounted"},
		"empty /sys/fs/cgroup":  {func(t *testing.T, o Options, _ *groupTree) { os.RemoveAll(o.Sys + "/fs/cgroup") }, "no such file"},
		"no process":            {func(t *testing.T, o Options, _ *groupTree) { os.RemoveAll(o.Proc + "/42") }, "42/cgroup"},
		"no mountinfo":          {func(t *testing.T, o Options, _ *groupTree) { os.Remove(o.Proc + "/42/mountinfo") }, "mountinfo"},
		"kernel without groups": {func(t *testing.T, o Options, _ *groupTree) { groupWrite(t, o.Proc+"/42/cgroup", "") }, "names no group"},
		"nonsense": {func(t *testing.T, o Options, _ *groupTree) {
			groupWrite(t, o.Proc+"/42/cgroup", strings.Repeat("\x00:\xff", 5000))
		}, "names no group"},
		"mountinfo is a directory": {func(t *testing.T, o Options, _ *groupTree) {
			os.Remove(o.Proc + "/42/mountinfo")
			os.Mkdir(o.Proc+"/42/mountinfo", 0o755)
		}, "mountinfo"},
		"huge mountinfo": {func(t *testing.T, o Options, _ *groupTree) {
			groupWrite(t, o.Proc+"/self/mountinfo", strings.Repeat("x", maxTable+1))
			os.Remove(o.Proc + "/42/mountinfo")
		}, "more than"},
		"removed": {func(t *testing.T, o Options, _ *groupTree) {
			groupWrite(t, o.Proc+"/42/cgroup", "0::/kube/pod/app (deleted)\n")
		}, "no such file"},
		"outside": {func(t *testing.T, o Options, _ *groupTree) {
			groupWrite(t, o.Proc+"/42/cgroup", "0::/../x\n")
		}, "is outside"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good.write(t)
			c.spoil(t, o, nil)
			g, err := Find(o)
			check.True(t, g == nil && errors.Is(err, ErrNoGroups) && strings.Contains(err.Error(), c.why),
				"Find = %v, %v; want ErrNoGroups that contains %q", g, err, c.why)
		})
	}
}

// If this process's mounts do not show the groups of another process, Find uses that process's root directory.
func TestFind_LooksThroughRootOfOtherProcess(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	groupWrite(t, proc+"/self/mountinfo", groupMount("/docker/me", "/sys/fs/cgroup/memory", "cgroup", "memory"))
	groupWrite(t, proc+"/7/cgroup", "5:memory:/docker/app\n")
	groupWrite(t, proc+"/7/mountinfo", groupMount("/docker/app", "/sys/fs/cgroup/memory", "cgroup", "memory"))
	groupWrite(t, proc+"/7/root/sys/fs/cgroup/memory/cgroup.procs", "7\n")
	groupWrite(t, proc+"/7/root/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n")
	g, err := Find(Options{Proc: proc, PID: 7})
	must(t, err)
	l := g.Limits()
	check.True(t, l.Memory == 4096, "memory limit = %v, want 4096", l.Memory)
}

// Paths are as seen from a control group namespace.
func TestParent_CanLeaveNamespace(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/b": "/a", "/a": "/", "/": "/..", "/..": "/../..", "/../a": "/..", "/../../a/b": "/../../a", "/..a": "/"} {
		got := parent(path)
		check.True(t, got == want, "parent(%q) = %q, want %q", path, got, want)
	}
}

func TestGroup_LimitsAreTheLowestOfGroupAndAncestors(t *testing.T) {
	t.Parallel()
	n := math.NaN()
	podman := groupTree{
		cgroup: "5:memory:/p/c\n4:cpu,cpuacct:/p/c\n3:cpuset:/p/c\n",
		mounts: groupMount("/p/c", "/sys/fs/cgroup/memory", "cgroup", "memory") +
			groupMount("/p/c", "/sys/fs/cgroup/cpu", "cgroup", "cpu,cpuacct") + groupMount("/p/c", "/sys/fs/cgroup/cpuset", "cgroup", "cpuset"),
		files: map[string]string{
			"memory/cgroup.procs": "42\n", "memory/memory.limit_in_bytes": "67108864\n", "memory/memory.stat": "hierarchical_memory_limit 67108864\n",
			"cpu/cgroup.procs": "42\n", "cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n",
			"cpuset/cgroup.procs": "42\n", "cpuset/cpuset.cpus": "0\n"}}

	slurm := groupTree{ // job and step have limits, the task has none; cpuacct numbers tasks differently
		cgroup: "5:memory:/slurm/uid_0/job_1/step_0/task_0\n4:cpuacct:/slurm/uid_0/job_1/step_0/task_3\n2:cpu:/\n",
		mounts: groupMount("/", "/sys/fs/cgroup/memory", "cgroup", "memory") +
			groupMount("/", "/sys/fs/cgroup/cpuacct", "cgroup", "cpuacct") + groupMount("/", "/sys/fs/cgroup/cpu", "cgroup", "cpu"),
		files: map[string]string{
			"memory/release_agent": "", "memory/slurm/uid_0/job_1/step_0/task_0/cgroup.procs": "42\n",
			"memory/slurm/uid_0/job_1/step_0/task_0/memory.limit_in_bytes": "9223372036854771712\n",
			"memory/slurm/uid_0/job_1/step_0/memory.limit_in_bytes":        "209715200\n",
			"memory/slurm/uid_0/job_1/memory.limit_in_bytes":               "209715200\n",
			"memory/slurm/uid_0/memory.limit_in_bytes":                     "9223372036854771712\n",
			"cpuacct/release_agent":                                        "", "cpuacct/slurm/uid_0/job_1/step_0/task_3/cgroup.procs": "42\n",
			"cpu/release_agent": "", "cpu/cgroup.procs": "1\n42\n", "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}}

	for name, c := range map[string]struct {
		tree groupTree
		want Limits
	}{
		"v2, lowest limit of ancestors":  {groupV2(), Limits{CPUs: 1.5, CPUSetCPUs: 5, Memory: 1 << 30, CPUGroup: "/kube/pod", MemoryGroup: "/kube/pod"}},
		"v2, own limit is lowest":        {groupV2().with(map[string]string{"kube/pod/app/memory.max": "4096", "kube/pod/app/cpu.max": "1000 100000"}), Limits{CPUs: .01, CPUSetCPUs: 5, Memory: 4096, CPUGroup: "/kube/pod/app", MemoryGroup: "/kube/pod/app"}},
		"v2, own limit above ancestor's": {groupV2().with(map[string]string{"kube/pod/app/memory.max": "2147483648"}), Limits{CPUs: 1.5, CPUSetCPUs: 5, Memory: 1 << 30, CPUGroup: "/kube/pod", MemoryGroup: "/kube/pod"}},
		"v2, no limit, ancestor's cpuset": {groupV2().with(map[string]string{"kube/pod/memory.max": "max\n", "kube/pod/cpu.max": "max 100000\n", "kube/pod/app/cpu.max": "max 100000\n", "kube/pod/app/cpuset.cpus.effective": "-"}),
			Limits{CPUs: n, CPUSetCPUs: 64, Memory: n}},
		"v1, lowest limit of ancestors": {groupV1(), Limits{CPUs: .5, CPUSetCPUs: 3, Memory: 209715200, CPUGroup: "/job", MemoryGroup: "/job"}},
		"podman":                        {podman, Limits{CPUs: .5, CPUSetCPUs: 1, Memory: 67108864, CPUGroup: "/p/c", MemoryGroup: "/p/c"}},
		"podman, limit of a hidden pod": {podman.with(map[string]string{"memory/memory.stat": "hierarchical_memory_limit 4096\n"}),
			Limits{CPUs: .5, CPUSetCPUs: 1, Memory: 4096, CPUGroup: "/p/c"}},
		"podman without a limit": {podman.with(map[string]string{"memory/memory.stat": "hierarchical_memory_limit 9223372036854771712\n", "memory/memory.limit_in_bytes": "9223372036854771712\n", "cpu/cpu.cfs_quota_us": "-1\n"}),
			Limits{CPUs: n, CPUSetCPUs: 1, Memory: n}},
		"slurm": {slurm, Limits{CPUs: n, Memory: 209715200, MemoryGroup: "/slurm/uid_0/job_1", InnerMemoryGroup: "/slurm/uid_0/job_1/step_0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groupSame(t, "limits", c.tree.find(t).Limits(), c.want)
		})
	}
}

// A created group belongs to the job, although its paths differ between hierarchies. In a hierarchy without a created
// group, there are limits but no counters.
func TestGroup_ChildGroupHasCountersWhereCreated(t *testing.T) {
	t.Parallel()
	tree := groupV1()
	tree.cgroup = strings.Replace(tree.cgroup, "pids:/job/task", "pids:/", 1)
	o := tree.with(map[string]string{
		"cpu,cpuacct/job/task/made/cgroup.procs": "50\n", "cpu,cpuacct/job/task/made/cpuacct.usage": "1000000000\n",
		"pids/made/cgroup.procs": "50\n", "pids/made/pids.current": "9\n"}).write(t)
	g := groupFind(t, o)
	in := g.childGroup("made", func(own string) bool { return own == g.acct.dir() || own == g.pids.dir() })
	want := unknownCounters()
	want.CPUSeconds, want.Processes, want.Threads = 1, 1, 9
	want.Periods, want.ThrottledPeriods, want.ThrottledSeconds = 40, 30, 1.5
	want.LimitWorkingSet, want.LimitPageCache, want.LimitPeak, want.LimitUnreclaimable = 1.3e8, 5e7, 209715200, 1e8
	groupSame(t, "counters", in.Read(), want)
	if l := in.Limits(); l.Memory != 209715200 || l.CPUs != .5 || l.CPUGroup != "/job" || in.Path() != "/job/task/made" {
		t.Errorf("limits = %+v, path = %s; want 200 MiB, .5 CPUs of /job, path /job/task/made", l, in.Path())
	}
}

// The next call of Limits returns a changed limit. After that, Read returns counters of the group that sets the limit.
func TestGroup_LimitsAndCountersFollowChangedLimit(t *testing.T) {
	t.Parallel()
	o := groupV2().write(t)
	g := groupFind(t, o)
	if c := g.Read(); c.LimitPeak != 9e8 || c.Periods != 300 {
		t.Errorf("counters of the pod: peak = %v, periods = %v; want 9e8, 300", c.LimitPeak, c.Periods)
	}
	groupWrite(t, groupFile(o, "kube/pod/app/memory.max"), "1000\n")
	groupWrite(t, groupFile(o, "kube/pod/app/cpu.max"), "100 100000\n")
	l := g.Limits()
	check.True(t, l.Memory == 1000 && l.CPUs == .001, "changed limits = %+v, want memory 1000, CPUs .001", l)
	if c := g.Read(); c.LimitPeak != 6e8 || c.Periods != 10 {
		t.Errorf("counters of the app: peak = %v, periods = %v; want 6e8, 10", c.LimitPeak, c.Periods)
	}
	groupWrite(t, groupFile(o, "kube/pod/app/memory.max"), "max\n")
	groupWrite(t, groupFile(o, "kube/pod/memory.max"), "max\n")
	g.Limits()
	if c := g.Read(); !math.IsNaN(c.LimitPeak) || !math.IsNaN(c.LimitWorkingSet) || c.PeakMemory != 6e8 {
		t.Errorf("without a limit: LimitPeak = %v, LimitWorkingSet = %v; want NaN, NaN; PeakMemory = %v, want 6e8",
			c.LimitPeak, c.LimitWorkingSet, c.PeakMemory)
	}
}

// A malformed limit is unknown, and Failed holds the reason.
func TestGroup_MalformedLimitIsUnknown(t *testing.T) {
	t.Parallel()
	// limits replaces some files of the tree and returns its limits.
	limits := func(o Options, files map[string]string) Limits {
		t.Helper()
		for name, text := range files {
			groupWrite(t, filepath.Join(o.Sys, "fs/cgroup", name), text)
		}
		g := groupFind(t, o)
		return g.Limits()
	}

	texts := []string{"", "\n", "max", "12", "--", "-5 100000", "99999999999999999999999 1", "10 0", "a b", "\x00", "0 0 0",
		strings.Repeat("9", maxFile+1)}
	for file, of := range map[string]func(Limits) (float64, string){
		"kube/pod/cpu.max":    func(l Limits) (float64, string) { return l.CPUs, l.CPUGroup },
		"kube/pod/memory.max": func(l Limits) (float64, string) { return l.Memory, l.MemoryGroup },
	} {
		tree := groupV2().with(map[string]string{"kube/pod/app/cpu.max": "max 1"}).write(t)
		for _, text := range texts {
			if file == "kube/pod/memory.max" && (text == "max" || text == "12") {
				continue
			}
			l := limits(tree, map[string]string{file: text})
			if v, group := of(l); !math.IsNaN(v) || group != "" || l.Failed[filepath.Base(file)] == nil {
				t.Errorf("%s with content %.20q: limit = %v, group = %q, failures = %v; want NaN, no group and a failure",
					file, text, v, group, l.Failed)
			}
		}
	}

	tree := groupV2().write(t)
	for _, text := range []string{"0-", "-1", "3-1", "0-99999999", "a", "1,,2", "0-3,x"} {
		l := limits(tree, map[string]string{"kube/pod/app/cpuset.cpus.effective": text, "cpuset.cpus.effective": "-"})
		check.True(t, l.CPUSetCPUs == 0 && l.Failed["cpuset.cpus.effective"] != nil,
			"cpuset %q: %d CPUs, failures = %v; want 0 CPUs and a failure", text, l.CPUSetCPUs, l.Failed)
	}
}

// TaskLimits returns the limits of the group and all visible ancestors, in the hierarchy with the pids controller.
func TestGroup_TaskLimitsIncludesAncestors(t *testing.T) {
	t.Parallel()
	v1, v2 := "/sys/fs/cgroup/pids/", "/sys/fs/cgroup/"
	for name, c := range map[string]struct {
		tree groupTree
		want []TaskLimit
	}{
		"v1": {groupV1().with(map[string]string{"pids/job/task/pids.max": "max\n", "pids/job/pids.max": "100\n", "pids/job/pids.current": "84\n"}),
			[]TaskLimit{{v1 + "job/pids.max", 100, 84}}},
		"v2": {groupV2().with(map[string]string{"kube/pod/app/pids.max": "50\n", "kube/pids.max": "70\n", "kube/pids.current": "9\n"}),
			[]TaskLimit{{v2 + "kube/pod/app/pids.max", 50, 5}, {v2 + "kube/pids.max", 70, 9}}},
		"none": {groupV1(), nil},
		"damaged": {groupV1().with(map[string]string{"pids/job/task/pids.max": "12x\n", "pids/job/pids.max": "7\n", "pids/job/pids.current": "\n"}),
			nil},
	} {
		o := c.tree.write(t)
		g := groupFind(t, o)
		got := g.TaskLimits()
		for i := range got {
			got[i].Name = strings.Replace(got[i].Name, o.Sys, "/sys", 1)
		}
		check.True(t, slices.Equal(got, c.want), "%s: task limits = %+v, want %+v", name, got, c.want)
	}

	check.True(t, (*Group)(nil).TaskLimits() == nil, "TaskLimits of a nil Group is not nil")
}
