//go:build !linux

package process

import (
	"fmt"
	"math"
	"runtime"
)

// Tree is the processes of a job. Only Linux has them.
type Tree struct{}

// NewTree gives a Tree whose Read fails.
func NewTree(Options) *Tree { return &Tree{} }

// Read says that processes are not read on this system.
func (t *Tree) Read() (Use, error) {
	nan := math.NaN()
	return Use{CPUSeconds: nan, Processes: nan, Threads: nan, Memory: nan, ReadBytes: nan, WriteBytes: nan},
		fmt.Errorf("read the job's processes: perfagent does so on Linux only, and this is %s", runtime.GOOS)
}

// Memory has nothing to say.
func (t *Tree) Memory(bool) {}

// Hurry has nothing to do.
func (t *Tree) Hurry() {}

// Foreign is not known.
func (t *Tree) Foreign(int) bool { return false }

// Close has nothing to do.
func (t *Tree) Close() error { return nil }
