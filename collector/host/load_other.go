//go:build !linux

package host

import "github.com/perfagent/perfagent/collector/cgroup"

// These sources exist on Linux only: elsewhere there is nothing to read, and nothing missing.

func (r *Reader) readLoad() (*Load, error)                { return nil, nil }
func (r *Reader) readVM() (*VMStat, error)                { return nil, nil }
func (r *Reader) readPressure() (*cgroup.Pressure, error) { return nil, nil }

func affinity(int) int { return 0 }
