//go:build !linux

package process

import (
	"fmt"
	"math"
	"runtime"
	"time"
)

// A Tree tracks the processes of a job, on Linux only.
type Tree struct{ Next Request }

// NewTree returns a Tree that cannot be read.
func NewTree(Options) *Tree { return &Tree{} }

// Read returns an error, because processes are not read on this system.
func (t *Tree) Read() (TreeUsage, error) {
	return unknownUsage(),
		fmt.Errorf("read the job's processes: perfagent can do so on Linux only, and this is %s", runtime.GOOS)
}

// Table returns nothing.
func (t *Tree) Table() []Process { return nil }

// Deaths returns nil.
func (t *Tree) Deaths() *Deaths { return nil }

// A DeathWatch learns how processes end, on Linux only.
type DeathWatch struct{}

// OpenDeathWatch returns a DeathWatch that learns nothing.
func OpenDeathWatch(*Tree) *DeathWatch { return &DeathWatch{} }

// Start reports false.
func (w *DeathWatch) Start(func(pid, parent int, relation Relation)) bool { return false }

// Close does nothing.
func (w *DeathWatch) Close() {}

// FinishTable does nothing.
func (t *Tree) FinishTable() {}

// LeftoverShared returns NaN, for unknown.
func (t *Tree) LeftoverShared() float64 { return math.NaN() }

// ScannedRelation, CurrentRelation and RelationByParent return UnknownRelation.
func (t *Tree) ScannedRelation(int) Relation { return UnknownRelation }
func (t *Tree) CurrentRelation(int) Relation { return UnknownRelation }

func (t *Tree) RelationByParent(int, int) Relation { return UnknownRelation }

// Workers returns nothing.
func (t *Tree) Workers() []int { return nil }

// Contains returns false.
func (t *Tree) Contains(int) bool { return false }

// Close does nothing.
func (t *Tree) Close() {}

// CloneEmpty and Clone return Trees that cannot be read, either.
func (t *Tree) CloneEmpty() *Tree { return &Tree{} }
func (t *Tree) Clone() *Tree      { return &Tree{} }

// CountLiving returns an error, because processes are not read on this system.
func (t *Tree) CountLiving() (int, error) {
	_, err := t.Read()
	return 0, err
}

// Kill returns an error, because processes are not read on this system.
func (t *Tree) Kill() (int, error) { return t.CountLiving() }

// CPUTime reports false, because process clocks are read on Linux only.
func CPUTime(int) (time.Duration, bool) { return 0, false }

// A UsageReader reads the usage of single processes, on Linux only.
type UsageReader struct{}

// Self returns the zero Usage on this system.
func (*UsageReader) Self() Usage { return Usage{} }

// Subtree returns the zero Usage on this system.
func (*UsageReader) Subtree(int) Usage { return Usage{} }
