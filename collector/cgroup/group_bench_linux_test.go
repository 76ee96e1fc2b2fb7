package cgroup

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkGroupSample measures one sample of a job in a separate group.
func BenchmarkGroupSample(b *testing.B) {
	m, err := NewJobGroup(fmt.Sprintf("perfagent-bench-%d", os.Getpid()))
	if err != nil {
		b.Skipf("cannot create a control group; run as root: %v", err)
	}
	defer m.Remove()
	g := m.Group()
	b.ReportAllocs()
	before := groupCPU()
	for b.Loop() {
		g.Read()
	}

	b.ReportMetric(float64(groupCPU()-before)/float64(b.N), "cpu-ns/op")
}

// groupCPU returns the CPU time of this process, which is less affected by other load than elapsed time.
func groupCPU() int64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
