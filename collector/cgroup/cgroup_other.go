//go:build !linux

package cgroup

import (
	"fmt"
	"runtime"
)

// A Group is a process's membership in control groups. Only Linux has them.
type Group struct{}

// Find returns ErrNone on this system.
func Find(Options) (*Group, error) {
	return nil, fmt.Errorf("find control groups: %w on %s", ErrNone, runtime.GOOS)
}

func (g *Group) Version() string      { return "" }
func (g *Group) Count(bool)           {}
func (g *Group) Path() string         { return "" }
func (g *Group) MemoryPath() string   { return "" }
func (g *Group) Limits() Limits       { return noLimits() }
func (g *Group) Read() Counters       { return absent() }
func (g *Group) Held() Held           { return Held{} }
func (g *Group) Close()               {}
func (g *Group) Pids() ([]int, error) { return nil, ErrNone }

// MemoryPids returns ErrNone on this system.
func (g *Group) MemoryPids() ([]int, error) { return nil, ErrNone }

// TaskLimits returns nil on this system.
func (g *Group) TaskLimits() []TaskLimit { return nil }

// A Made is a group that was made for a job. Only Linux has them.
type Made struct{}

// Make returns ErrNone on this system.
func Make(string) (*Made, error) {
	return nil, fmt.Errorf("make a control group: %w on %s", ErrNone, runtime.GOOS)
}

func (m *Made) Group() *Group                        { return nil }
func (m *Made) Missing() map[string]error            { return nil }
func (m *Made) Enter(start func(fd int) error) error { return start(-1) }
func (m *Made) Kill() error                          { return ErrNone }
func (m *Made) Remove() error                        { return nil }
