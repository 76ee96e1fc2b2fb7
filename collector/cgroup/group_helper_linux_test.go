package cgroup

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// A groupTree is a fake host: the files of /proc/42, and files below /sys/fs/cgroup.
type groupTree struct {
	cgroup, mounts string
	files          map[string]string
}

// write writes the tree to disk.
func (tree groupTree) write(t testing.TB) Options {
	t.Helper()
	root := t.TempDir()
	o := Options{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys"), PID: 42}
	groupWrite(t, filepath.Join(o.Proc, "42/cgroup"), tree.cgroup)
	groupWrite(t, filepath.Join(o.Proc, "42/mountinfo"), tree.mounts)
	for name, text := range tree.files {
		groupWrite(t, filepath.Join(o.Sys, "fs/cgroup", name), text)
	}
	return o
}

func (tree groupTree) find(t testing.TB) *Group {
	t.Helper()
	return groupFind(t, tree.write(t))
}

func groupFind(t testing.TB, o Options) *Group {
	t.Helper()
	g, err := Find(o)
	must(t, err)
	return g
}

// with returns the tree with additional files. The content "-" removes a file.
func (tree groupTree) with(files map[string]string) groupTree {
	all := maps.Clone(tree.files)
	for name, text := range files {
		all[name] = text
		if text == "-" {
			delete(all, name)
		}
	}
	tree.files = all
	return tree
}

func groupWrite(t testing.TB, path, text string) {
	t.Helper()
	collectortest.Write(t, "", path, []byte(text))
}

// groupFile returns the path of a file of the fixture's group.
func groupFile(o Options, name string) string { return filepath.Join(o.Sys, "fs/cgroup", name) }

// groupSame compares two values; NaN equals NaN.
func groupSame(t *testing.T, what string, got, want any) {
	t.Helper()
	opts := cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-12, 0), cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })}
	diff := cmp.Diff(want, got, opts)
	check.True(t, diff == "", "%s (-want +got):\n%s", what, diff)
}

// groupMount returns a line of mountinfo.
func groupMount(root, point, kind, options string) string {
	return "31 23 0:28 " + root + " " + point + " rw,relatime shared:7 - " + kind + " " + kind + " rw," + options + "\n"
}

// groupPlaces returns the directories of p below /sys/fs/cgroup.
func groupPlaces(o Options, p *membership) []string {
	if p == nil {
		return nil
	}
	var dirs []string
	for _, d := range p.dirs {
		dirs = append(dirs, strings.TrimPrefix(strings.TrimPrefix(d, filepath.Join(o.Sys, "fs/cgroup")), "/"))
	}
	return dirs
}

// filesIn returns the files of folders.
func filesIn(folders map[string]map[string]string) map[string]string {
	files := map[string]string{}
	for folder, texts := range folders {
		for name, text := range texts {
			files[filepath.Join(folder, name)] = text
		}
	}
	return files
}

// groupV2 returns the tree of a container's group in pure v2, two levels below the top.
func groupV2() groupTree {
	return groupTree{
		cgroup: "0::/kube/pod/app\n",
		mounts: groupMount("/", "/sys/fs/cgroup", "cgroup2", "nsdelegate"),
		files: filesIn(map[string]map[string]string{
			"": {"cgroup.procs": "1\n2\n", "cpu.stat": "usage_usec 999000000\n", "cpuset.cpus.effective": "0-63\n",
				"../../dev/block/253:1/slaves/sda/uevent": ""},
			"kube": {
				"cgroup.procs": "", "cgroup.events": "populated 1\nfrozen 0\n", "cpu.max": "max 100000\n", "memory.max": "max\n"},
			"kube/pod": {"cgroup.procs": "", "cgroup.events": "populated 1\nfrozen 0\n", "cpu.max": "150000 100000\n",
				"cpu.stat":   "usage_usec 7000000\nuser_usec 1\nsystem_usec 2\nnr_periods 300\nnr_throttled 120\nthrottled_usec 4500000\n",
				"memory.max": "1073741824\n", "memory.current": "800000000\n", "memory.peak": "900000000\n",
				"memory.stat":         "anon 1\nfile 200000000\nshmem 0\ninactive_file 100000000\n",
				"memory.events":       "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n",
				"memory.events.local": "low 0\nhigh 0\nmax 8\noom 2\noom_kill 0\noom_group_kill 0\n"},
			"kube/pod/app": {
				"cgroup.procs": "42\n43\n", "cgroup.threads": "42\n43\n44\n", "cgroup.events": "populated 1\nfrozen 0\n",
				"cpu.max":               "200000 100000\n",
				"cpu.stat":              "usage_usec 5500000\nuser_usec 5000000\nsystem_usec 500000\nnr_periods 10\nnr_throttled 1\nthrottled_usec 2\n",
				"cpuset.cpus.effective": "0-3,7\n", "memory.max": "max\n", "memory.current": "500000000\n",
				"memory.peak": "600000000\n", "memory.swap.current": "70000000\n",
				"memory.stat":     "anon 300000000\nfile 150000000\nkernel 5000000\nsock 6000000\nshmem 30000000\nfile_mapped 4\ninactive_anon 6\nactive_anon 7\ninactive_file 90000000\nactive_file 30000000\n",
				"memory.events":   "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\n",
				"io.stat":         "254:0 rbytes=1000 wbytes=2000 rios=1 wios=2 dbytes=9 dios=9\n253:1 rbytes=1000 wbytes=2000 rios=1 wios=2 dbytes=0 dios=0\n7:0 rbytes=512 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n259:2 rbytes=5 wbytes=6 rios=1 wios=1 dbytes=0 dios=0\n8:0 \n",
				"pids.current":    "5\n",
				"cpu.pressure":    "some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n",
				"memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=30\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n",
				"io.pressure":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"},
			"kube/pod/app/worker": {"cgroup.procs": "50\n51\n52\n", "cgroup.threads": "50\n51\n52\n53\n"},
		}),
	}
}

// groupV1 returns the tree of a container's group in v1, with cpu and cpuacct mounted together.
func groupV1() groupTree {
	return groupTree{
		cgroup: "12:pids:/job/task\n5:memory:/job/task\n4:cpu,cpuacct:/job/task\n3:cpuset:/job\n2:blkio:/job/task\n1:name=systemd:/x\n",
		mounts: "30 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n" +
			groupMount("/", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct") +
			groupMount("/", "/sys/fs/cgroup/memory", "cgroup", "memory") +
			groupMount("/", "/sys/fs/cgroup/cpuset", "cgroup", "cpuset") +
			groupMount("/", "/sys/fs/cgroup/pids", "cgroup", "pids") +
			groupMount("/", "/sys/fs/cgroup/blkio", "cgroup", "blkio") +
			groupMount("/", "/sys/fs/cgroup/systemd", "cgroup", "xattr,name=systemd"),
		files: filesIn(map[string]map[string]string{
			"cpu,cpuacct": {
				"cgroup.procs": "1\n", "release_agent": "", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"},
			"cpu,cpuacct/job": {"cgroup.procs": "", "cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n",
				"cpu.stat": "nr_periods 40\nnr_throttled 30\nthrottled_time 1500000000\n"},
			"cpu,cpuacct/job/task": {
				"cgroup.procs": "42\n43\n", "tasks": "42\n43\n44\n", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n",
				"cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", "cpuacct.usage": "2500000000\n"},
			"memory": {"cgroup.procs": "1\n", "release_agent": "", "memory.limit_in_bytes": "9223372036854771712\n"},
			"memory/job": {"cgroup.procs": "", "memory.limit_in_bytes": "209715200\n", "memory.usage_in_bytes": "150000000\n",
				"memory.max_usage_in_bytes": "209715200\n",
				"memory.stat":               "cache 0\ntotal_cache 50000000\ntotal_shmem 0\ntotal_inactive_file 20000000\n",
				"memory.oom_control":        "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"},
			"memory/job/task": {"cgroup.procs": "42\n43\n", "memory.limit_in_bytes": "9223372036854771712\n",
				"memory.usage_in_bytes": "100000000\n", "memory.max_usage_in_bytes": "120000000\n",
				"memory.stat":        "cache 1\nrss 2\nshmem 3\ninactive_file 4\nhierarchical_memory_limit 104857600\ntotal_cache 50000000\ntotal_rss 40000000\ntotal_shmem 10000000\ntotal_swap 5000000\ntotal_inactive_file 30000000\n",
				"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"},
			"memory/job/task/sub": {"cgroup.procs": "", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"},
			"cpuset":              {"cgroup.procs": "1\n", "release_agent": ""},
			"cpuset/job":          {"cgroup.procs": "42\n", "cpuset.cpus": "0-7\n", "cpuset.effective_cpus": "0-1,4\n"},
			"pids":                {"cgroup.procs": "1\n", "release_agent": ""},
			"pids/job/task":       {"cgroup.procs": "42\n", "pids.current": "6\n"},
			"blkio":               {"cgroup.procs": "1\n", "release_agent": ""},
			"blkio/job/task": {"cgroup.procs": "42\n",
				"blkio.throttle.io_service_bytes_recursive": "254:0 Read 52527104\n254:0 Write 73408512\n254:0 Sync 1\n254:0 Async 2\n254:0 Discard 3\n254:0 Total 4\nTotal 4\n",
				"blkio.throttle.io_service_bytes":           "Total 0\n"},
		}),
	}
}

// groupAsNobody runs f on a thread without root privileges.
func groupAsNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}

	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		defer close(done)
		if _, _, e := unix.RawSyscall(unix.SYS_SETFSUID, 65534, 0, 0); e != 0 {
			done <- e
			return
		}
		f()
	}()

	must(t, <-done)
}

// must ends a test on an error.
var must = check.Must
