package collectortest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// CPUPerOp reports the CPU time per operation, which is less affected by other load on the machine than wall time. The
// returned function ends the measurement.
func CPUPerOp(b *testing.B) (end func()) {
	b.ReportAllocs()
	before := cpuTime(b)
	return func() { b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op") }
}

func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
