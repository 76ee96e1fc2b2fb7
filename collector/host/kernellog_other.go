//go:build !linux

package host

// A kernelLog is not read on this system.
type kernelLog struct{}

func openKernelLog() *kernelLog { return nil }

func (*kernelLog) close() {}

func (*kernelLog) read(_, _ Instant, _ func(int) bool, _ int) {}

func (*kernelLog) victims() []Victim { return nil }

func (*kernelLog) whole() bool { return false }
