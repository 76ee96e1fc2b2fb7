package collector

import (
	"cmp"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

const (
	// MaxMounts is the largest number of network file systems in a Recording, and MaxMountOps the largest number of
	// operations that Slowest returns for each of them.
	MaxMounts   = 32
	MaxMountOps = 12
)

// MountList and MountsBeyond are the name and the code under which a truncated list of network file systems is
// reported.
const (
	MountList                      = "mounts"
	MountsBeyond series.ReasonCode = "mounts_beyond_bounds"
)

// A Mount is a network file system, with the increase of its client's counters on the node since the baseline.
type Mount struct {
	// ID distinguishes mounts of the same source.
	ID     string   `json:"id"`
	Type   string   `json:"type"`
	Source string   `json:"source"`
	Paths  []string `json:"mounted_on,omitempty"`
	// ReadMB and WriteMB are the bytes that the columns count, in MiB.
	ReadMB  float64 `json:"read_mb"`
	WriteMB float64 `json:"write_mb"`
	// Total sums all operations, and Ops lists them.
	Total MountOp   `json:"all"`
	Ops   []MountOp `json:"operations,omitempty"`
}

// A MountOp sums up the calls of one operation on a Mount: their number, and the time that they spent in the client's
// queue, waiting for the server, and in total. Times are summed over calls, which may run concurrently. Values that
// Lustre does not provide are unknown.
type MountOp struct {
	Name            string          `json:"name,omitempty"`
	Calls           float64         `json:"calls"`
	Retransmissions series.Optional `json:"retransmissions"` // requests sent again
	Timeouts        series.Optional `json:"timeouts"`        // requests without a response in time
	Queue           series.Optional `json:"queue_seconds"`
	RTT             series.Optional `json:"rtt_seconds"`
	Execute         float64         `json:"execute_seconds"`
}

// noteMounts adds the increases from before to now, two Readings of all mounts, to list and returns it. It appends
// mounts that are used for the first time. beyond reports whether list had no room for a mount.
func noteMounts(list []Mount, before, now []host.Mount) (out []Mount, beyond bool) {
	for k := range now {
		m := &now[k]
		var old host.Mount
		if !m.Added {
			i := slices.IndexFunc(before, func(o host.Mount) bool { return o.Kind == m.Kind && o.ID == m.ID })
			if i < 0 {
				continue
			}
			old = before[i]
		}
		if !used(&old, m) {
			continue
		}
		at := slices.IndexFunc(list, func(o Mount) bool { return o.ID == m.ID && o.Type == m.Type })
		if at < 0 {
			if len(list) >= MaxMounts {
				beyond = true
				continue
			}
			at = len(list)
			list = append(list, Mount{ID: m.ID, Type: m.Type, Source: m.Source, Total: newMountOp("", m.Kind)})
		}
		list[at].add(&old, m)
	}
	return list, beyond
}

// used reports whether the bytes or the calls of a mount changed from old to m.
func used(old, m *host.Mount) bool {
	if m.Read != old.Read || m.Written != old.Written {
		return true
	}
	for i, op := range m.Ops {
		if findOp(old.Ops, op.Name, i).Calls != op.Calls {
			return true
		}
	}
	return false
}

// keptMounts returns the newest mounts of each kind: now, plus the mounts of before if now has none of their kind.
func keptMounts(before, now []host.Mount) []host.Mount {
	out := slices.Clone(now)
	for _, m := range before {
		if !slices.ContainsFunc(now, func(o host.Mount) bool { return o.Kind == m.Kind }) {
			out = append(out, m)
		}
	}
	return out
}

// add adds the increase from old to m.
func (mount *Mount) add(old, m *host.Mount) {
	mount.Source, mount.Paths = m.Source, m.Paths
	mount.ReadMB += float64(series.ResetDelta(old.Read, m.Read, 1)) / MiB
	mount.WriteMB += float64(series.ResetDelta(old.Written, m.Written, 1)) / MiB

	for i := range m.Ops {
		now, was := &m.Ops[i], findOp(old.Ops, m.Ops[i].Name, i)
		if now.Calls == was.Calls {
			continue
		}
		if now.Calls < was.Calls { // reset
			was = host.MountOp{}
		}
		mount.op(now.Name, m.Kind).add(now, &was, m.Unit)
		mount.Total.add(now, &was, m.Unit)
	}
}

// findOp returns the operation with the given name, or an empty one; hint is its likely index.
func findOp(ops []host.MountOp, name string, hint int) host.MountOp {
	if op := findByName(ops, name, hint, func(o *host.MountOp) string { return o.Name }); op != nil {
		return *op
	}
	return host.MountOp{}
}

// op returns the operation with the given name. It adds the operation if mount does not have it.
func (mount *Mount) op(name string, kind host.DeviceKind) *MountOp {
	if op := findByName(mount.Ops, name, 0, func(o *MountOp) string { return o.Name }); op != nil {
		return op
	}
	mount.Ops = append(mount.Ops, newMountOp(name, kind))
	return &mount.Ops[len(mount.Ops)-1]
}

func newMountOp(name string, kind host.DeviceKind) MountOp {
	op := MountOp{Name: name}
	if kind != host.NFSMounts {
		u := series.Unknown()
		op.Retransmissions, op.Timeouts, op.Queue, op.RTT = u, u, u, u
	}
	return op
}

// add adds the increase from was to now, with times in the given unit.
func (o *MountOp) add(now, was *host.MountOp, unit time.Duration) {
	o.Calls += counterIncrease(was.Calls, now.Calls)
	o.Execute += counterIncrease(was.Execute, now.Execute) * unit.Seconds()
	if o.Queue.Known() {
		o.Retransmissions += series.Optional(max(0,
			counterIncrease(was.Sent, now.Sent)-counterIncrease(was.Calls, now.Calls)))
		o.Timeouts += series.Optional(counterIncrease(was.Timeouts, now.Timeouts))
		o.Queue += series.Optional(counterIncrease(was.Queue, now.Queue) * unit.Seconds())
		o.RTT += series.Optional(counterIncrease(was.RTT, now.RTT) * unit.Seconds())
	}
}

// counterIncrease returns the increase of a counter, or 0 if it fell: some kernels report negative queue times.
func counterIncrease(was, now uint64) float64 { return float64(max(0, int64(now-was))) }

// cloneMounts returns a copy for another goroutine.
func cloneMounts(list []Mount) []Mount {
	out := slices.Clone(list)
	for i := range out {
		out[i].Ops = slices.Clone(list[i].Ops)
	}
	return out
}

// Slowest returns the operations that took the longest, at most MaxMountOps.
func (mount *Mount) Slowest() []MountOp {
	ops := slices.Clone(mount.Ops)
	slices.SortStableFunc(ops, func(a, b MountOp) int {
		return cmp.Or(cmp.Compare(b.Execute, a.Execute), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	return ops[:min(len(ops), MaxMountOps)]
}
