//go:build !linux

package process

// A UsageReader reads what single processes use, on Linux only.
type UsageReader struct{}

// Self returns nothing on this system.
func (*UsageReader) Self() Usage { return Usage{} }

// Family returns nothing on this system.
func (*UsageReader) Family(int) Usage { return Usage{} }
