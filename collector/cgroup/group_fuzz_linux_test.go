package cgroup

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/internal/procfile"
)

// FuzzGroupFind checks that, for any content of procfs, a group is found below a mount point or not at all.
func FuzzGroupFind(f *testing.F) {
	for _, tree := range []groupTree{groupV2(), groupV1()} {
		f.Add([]byte(tree.cgroup), []byte(tree.mounts))
	}
	f.Add([]byte("5:memory:/../../x\n0::/\n"), []byte(groupMount(`/..\040\134`, "/sys/fs/cgroup/memory", "cgroup", "memory")))
	f.Add([]byte("0::/a//b/\n"), []byte(groupMount("/a/", "/", "cgroup2", "rw")))
	f.Fuzz(func(t *testing.T, cgroup, mountinfo []byte) {
		v := view{entries: parseEntries(cgroup), mounts: parseMounts(mountinfo)}
		for _, m := range v.mounts {
			m.point = filepath.Join("/nowhere", m.point)
			for _, member := range v.entries {
				rest, ok := relativePath(member.path, m.root)
				if ok && !strings.HasPrefix(filepath.Clean(m.point+rest), filepath.Clean(m.point)) {
					t.Errorf("path %q below root %q leaves the mount point %q: %q", member.path, m.root, m.point, rest)
				}
				if p, err := m.locate(member.path, 42); err == nil {
					t.Errorf("locate = %v for a path that does not exist, want an error", p)
				}
			}
		}
		v.entry("")
		v.entry("memory")
	})
}

// FuzzGroupFiles checks that only text with a number is parsed as one, and that no number is negative or infinite.
func FuzzGroupFiles(f *testing.F) {
	for _, files := range []map[string]string{groupV1().files, groupV2().files} {
		for _, text := range files {
			f.Add([]byte(text))
		}
	}

	f.Add([]byte("max 100000\n"))
	f.Add([]byte("some avg10=0 total=18446744073709551616\n"))
	f.Add([]byte("0-65535,0-65535,1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		good := func(what string, values ...float64) {
			for _, v := range values {
				if v < 0 || math.IsInf(v, 0) {
					t.Errorf("%s = %v, want a finite number of at least 0, or NaN", what, v)
				}
			}
		}
		if v, ok := parseNumber(data); ok == math.IsNaN(v) {
			t.Errorf("parseNumber = %v, %v; want NaN if and only if false", v, ok)
		}
		quota, _ := parseQuota(data)
		limit, _ := parseLimit(data)
		good("limits", quota, limit)
		if n, ok := parseCPUs(data); n < 0 || ok && n > maxCPU {
			t.Errorf("parseCPUs = %d, %v; want 0 to maxCPU", n, ok)
		}
		s, err := ParseStall(data)
		if (err == nil) == math.IsNaN(s.Some) {
			t.Errorf("ParseStall = %v, error %v; want NaN if and only if there is an error", s, err)
		}
		good("stall", s.Some, s.Full)
		for _, line := range strings.Split(string(data), "\n") {
			if x, ok := parseIOStat([]byte(line)); ok {
				good("io.stat", x.reads, x.writes)
				if !isDevice([]byte(x.device)) {
					t.Errorf("device = %q, want MAJ:MIN", x.device)
				}
			}
			if x, ok := parseBlkio([]byte(line)); ok {
				good("blkio", x.reads, x.writes)
			}
		}
		v := [2]float64{nan, nan}
		parseKeys(data, []string{"usage_usec", "oom_kill"}, v[:])
		good("keys", v[:]...)
		for _, pid := range procfile.AppendPIDs(nil, data) {
			if pid < 0 {
				t.Errorf("process ID = %d, want at least 0", pid)
			}
		}
	})
}

// BenchmarkGroupSample measures one sample of a job in a separate group.
func BenchmarkGroupSample(b *testing.B) {
	m, err := NewJobGroup(fmt.Sprintf("perfagent-bench-%d", os.Getpid()))
	if err != nil {
		b.Skipf("cannot create a control group; run as root: %v", err)
	}
	defer m.Remove()
	g := m.Group()
	defer collectortest.CPUPerOp(b)()
	for b.Loop() {
		g.Read()
	}
}
