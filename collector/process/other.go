//go:build !linux

package process

import (
	"fmt"
	"math"
	"runtime"
	"time"
)

// A Tree is the processes of a job. Only Linux has them.
type Tree struct{}

// NewTree returns a Tree whose Read fails.
func NewTree(Options) *Tree { return &Tree{} }

// Read returns an error: processes are not read on this system.
func (t *Tree) Read() (Use, error) {
	return nothing(),
		fmt.Errorf("read the job's processes: perfagent does so on Linux only, and this is %s", runtime.GOOS)
}

// Memory does nothing.
func (t *Tree) Memory(bool) {}

// Storage does nothing.
func (t *Tree) Storage(bool) {}

// Table returns nothing.
func (t *Tree) Table() []Process { return nil }

// Settle does nothing.
func (t *Tree) Settle() {}

// Final does nothing.
func (t *Tree) Final() {}

// LeftShared returns NaN: it is not known.
func (t *Tree) LeftShared() float64 { return math.NaN() }

// Seen, Look and LookAbove return NotKnown.
func (t *Tree) Seen(int) Relation { return NotKnown }
func (t *Tree) Look(int) Relation { return NotKnown }

func (t *Tree) LookAbove(int, int) Relation { return NotKnown }

// Workers returns nothing.
func (t *Tree) Workers() []int { return nil }

// Ours reports false: nothing is known.
func (t *Tree) Ours(int) bool { return false }

// Newest does nothing.
func (t *Tree) Newest(int64) {}

// Close does nothing.
func (t *Tree) Close() error { return nil }

// Anew and Copy return Trees whose Read fails, too.
func (t *Tree) Anew() *Tree { return &Tree{} }
func (t *Tree) Copy() *Tree { return &Tree{} }

// Living returns an error: processes are not read on this system.
func (t *Tree) Living() (int, error) {
	_, err := t.Read()
	return 0, err
}

// Kill returns an error: processes are not read on this system.
func (t *Tree) Kill() (int, error) { return t.Living() }

// CPUTime reports false: the clocks of processes are read on Linux only.
func CPUTime(int) (time.Duration, bool) { return 0, false }

// A UsageReader reads what single processes use, on Linux only.
type UsageReader struct{}

// Self returns nothing on this system.
func (*UsageReader) Self() Usage { return Usage{} }

// Family returns nothing on this system.
func (*UsageReader) Family(int) Usage { return Usage{} }
