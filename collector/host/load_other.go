//go:build !linux

package host

import "github.com/perfagent/perfagent/collector/cgroup"

// These sources exist on Linux only: elsewhere there is nothing to read, and nothing missing.

func (r *Reader) readLoad() (l Load, known bool, err error)                { return l, false, nil }
func (r *Reader) readVM() (v VMStat, known bool, err error)                { return v, false, nil }
func (r *Reader) readPressure() (p cgroup.Pressure, known bool, err error) { return p, false, nil }

func affinity(int) int { return 0 }

func (j *jobTree) readBound([]int, treeQuestion) bound { return bound{} }
