package cgroup

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkGroupRead measures one sample of our groups, without the host's PSI.
func BenchmarkGroupRead(b *testing.B) {
	g, err := Find(Options{})
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Read()
	}
}

// BenchmarkGroupSample measures one sample of a job in a separate group.
func BenchmarkGroupSample(b *testing.B) {
	m, err := NewJobGroup(fmt.Sprintf("perfagent-bench-%d", os.Getpid()))
	if err != nil {
		b.Skipf("no group can be made here (run as root): %v", err)
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

// groupCPU is the CPU time of this process, which other load affects less than elapsed time.
func groupCPU() int64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkGroupLimits(b *testing.B) {
	g, err := Find(Options{})
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Limits()
	}
}

func BenchmarkGroupFind(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Find(Options{}); err != nil {
			b.Skip(err)
		}
	}
}

// BenchmarkGroupEnter measures a group's part in the start of a job: it is created, entered and left, and removed.
func BenchmarkGroupEnter(b *testing.B) {
	m, err := NewJobGroup(fmt.Sprintf("perfagent-bench-%d", os.Getpid()))
	if err != nil {
		b.Skipf("no group can be made here (run as root): %v", err)
	}
	defer m.Remove()
	for b.Loop() {
		if err := m.Enter(func(int) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
