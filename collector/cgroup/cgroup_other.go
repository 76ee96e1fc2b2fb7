//go:build !linux

package cgroup

import (
	"fmt"
	"runtime"
)

// A Group is a process's membership in control groups. Only Linux has control groups.
type Group struct{}

// Find returns ErrNoGroups on this system.
func Find(Options) (*Group, error) {
	return nil, fmt.Errorf("find control groups: %w on %s", ErrNoGroups, runtime.GOOS)
}

func (g *Group) Version() string      { return "" }
func (g *Group) CountTasks(bool)      {}
func (g *Group) Path() string         { return "" }
func (g *Group) MemoryPath() string   { return "" }
func (g *Group) Limits() Limits       { return noLimits() }
func (g *Group) Read() Counters       { return unknownCounters() }
func (g *Group) Reclaim() Reclaim     { return Reclaim{} }
func (g *Group) Close()               {}
func (g *Group) PIDs() ([]int, error) { return nil, ErrNoGroups }

// MemoryPIDs returns ErrNoGroups on this system.
func (g *Group) MemoryPIDs() ([]int, error) { return nil, ErrNoGroups }

// TaskLimits returns nil on this system.
func (g *Group) TaskLimits() []TaskLimit { return nil }

// A JobGroup is a control group that was created for a job. Only Linux has control groups.
type JobGroup struct{}

// NewJobGroup returns ErrNoGroups on this system.
func NewJobGroup(string) (*JobGroup, error) {
	return nil, fmt.Errorf("make a control group: %w on %s", ErrNoGroups, runtime.GOOS)
}

func (m *JobGroup) Group() *Group                        { return nil }
func (m *JobGroup) Missing() map[string]error            { return nil }
func (m *JobGroup) Enter(start func(fd int) error) error { return start(-1) }
func (m *JobGroup) Kill() error                          { return ErrNoGroups }
func (m *JobGroup) Remove() error                        { return nil }
