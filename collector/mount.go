package collector

import (
	"cmp"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

const (
	// MaxMounts is how many file systems of servers a Recording lists, and MaxMountOps how many operations
	// of each.
	MaxMounts   = 32
	MaxMountOps = 12
)

// MountList names the list of file systems of servers where it is cut, and MountsBeyond is the code for that.
const (
	MountList                      = "mounts"
	MountsBeyond series.ReasonCode = "mounts_beyond_bounds"
)

// A Mount is a file system of a server with what its client has counted on the node since the baseline.
type Mount struct {
	// ID tells it from others of the same source.
	ID     string   `json:"id"`
	Type   string   `json:"type"`
	Source string   `json:"source"`
	Paths  []string `json:"mounted_on,omitempty"`
	// ReadMB and WriteMB are what the metrics have of it.
	ReadMB  float64 `json:"read_mb"`
	WriteMB float64 `json:"write_mb"`
	// Total is what all operations did together, and Ops what each did.
	Total MountOp   `json:"all"`
	Ops   []MountOp `json:"operations,omitempty"`
}

// A MountOp is what operations of a Mount did: how often they were called, and for how long calls waited in
// the queue, for the server's answer, and in all. Times are summed over the calls, of which many may be
// under way at once. What Lustre does not tell is unknown.
type MountOp struct {
	Name            string          `json:"name,omitempty"`
	Calls           float64         `json:"calls"`
	Retransmissions series.Optional `json:"retransmissions"` // that were sent again
	Timeouts        series.Optional `json:"timeouts"`        // that the server did not answer in time
	Queue           series.Optional `json:"queue_seconds"`
	RTT             series.Optional `json:"rtt_seconds"`
	Execute         float64         `json:"execute_seconds"`
}

// noteMounts returns the mounts after another Reading of them. A mount is listed once it was used; it reports
// whether there was no room for one.
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

// used reports whether any counter of a mount went up.
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

// keptMounts returns the newest of each kind: a Reading may have only one kind.
func keptMounts(before, now []host.Mount) []host.Mount {
	out := slices.Clone(now)
	for _, m := range before {
		if !slices.ContainsFunc(now, func(o host.Mount) bool { return o.Kind == m.Kind }) {
			out = append(out, m)
		}
	}
	return out
}

// add adds what has been counted between two Readings.
func (mount *Mount) add(old, m *host.Mount) {
	mount.Source, mount.Paths = m.Source, m.Paths
	mount.ReadMB += float64(series.ResetDelta(old.Read, m.Read, 1)) / MiB
	mount.WriteMB += float64(series.ResetDelta(old.Written, m.Written, 1)) / MiB

	for i := range m.Ops {
		now, was := &m.Ops[i], findOp(old.Ops, m.Ops[i].Name, i)
		if now.Calls == was.Calls {
			continue
		}
		if now.Calls < was.Calls { // they were reset
			was = host.MountOp{}
		}
		mount.op(now.Name, m.Kind).add(now, &was, m.Unit)
		mount.Total.add(now, &was, m.Unit)
	}
}

// findOp returns the operation of a name, or an empty one; hint is where it most likely stands.
func findOp(ops []host.MountOp, name string, hint int) host.MountOp {
	if op := findByName(ops, name, hint, func(o *host.MountOp) string { return o.Name }); op != nil {
		return *op
	}
	return host.MountOp{}
}

// op returns the operation of a name, which begins if it is not there.
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

// add adds the increase between two Readings.
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

// counterIncrease returns the increase of a counter. Some kernels have counted times in the queue that are below 0.
func counterIncrease(was, now uint64) float64 { return float64(max(0, int64(now-was))) }

// cloneMounts returns a copy for another goroutine.
func cloneMounts(list []Mount) []Mount {
	out := slices.Clone(list)
	for i := range out {
		out[i].Ops = slices.Clone(list[i].Ops)
	}
	return out
}

// Slowest returns the operations that took the longest, as many as are listed.
func (mount *Mount) Slowest() []MountOp {
	ops := slices.Clone(mount.Ops)
	slices.SortStableFunc(ops, func(a, b MountOp) int {
		return cmp.Or(cmp.Compare(b.Execute, a.Execute), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
	return ops[:min(len(ops), MaxMountOps)]
}
