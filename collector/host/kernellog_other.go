//go:build !linux

package host

import "github.com/perfagent/perfagent/collector/process"

// A kernelLog is not read on this system.
type kernelLog struct{}

func openKernelLog() *kernelLog { return nil }

func (*kernelLog) close() {}

func (*kernelLog) watch(Instant, *process.Tree) {}

func (*kernelLog) read(_, _ Instant) {}

func (*kernelLog) await() {}

func (*kernelLog) recognize(func(int) process.Relation) {}

func (*kernelLog) hasVictims() bool { return false }

func (*kernelLog) victims() []Victim { return nil }

func (*kernelLog) whole() bool { return false }

func (*kernelLog) samePIDs() bool { return false }
