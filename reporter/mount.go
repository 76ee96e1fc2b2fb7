package reporter

import (
	"cmp"
	"slices"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
)

// Mount is a network file system that any process on the node used during the run.
type Mount struct {
	Type      string   `json:"type"`   // "nfs", "nfs4", "lustre"
	Source    string   `json:"source"` // "server:/export", or the name of the file system
	MountedOn []string `json:"mounted_on,omitempty"`
	ReadMB    float64  `json:"read_mb"`
	WriteMB   float64  `json:"write_mb"`
	MountCalls
	// Operations are the operations that took the most time, slowest first.
	Operations []MountOperation `json:"operations,omitempty"`
}

// MountCalls holds the number of calls on a Mount and their waiting times: in the client's queue, for the server, and
// in total. The times are sums over all calls, and many calls may wait at the same time. Values that Lustre does not
// report are absent.
type MountCalls struct {
	Calls           float64  `json:"calls"`
	Retransmissions *float64 `json:"retransmissions,omitempty"`
	Timeouts        *float64 `json:"timeouts,omitempty"`
	QueueSeconds    *float64 `json:"queue_seconds,omitempty"`
	RTTSeconds      *float64 `json:"rtt_seconds,omitempty"`
	ExecuteSeconds  float64  `json:"execute_seconds"`
}

// MountOperation holds the calls of one kind, such as READ or GETATTR.
type MountOperation struct {
	Name string `json:"name"`
	MountCalls
}

// newMounts returns the mounts of rec, longest waiting time first.
func newMounts(rec *collector.Recording) []Mount {
	var out []Mount
	for i := range rec.Mounts {
		m := &rec.Mounts[i]
		mount := Mount{Type: m.Type, Source: m.Source, MountedOn: m.Paths, ReadMB: text.Round(m.ReadMB, 6),
			WriteMB: text.Round(m.WriteMB, 6), MountCalls: newMountCalls(&m.Total)}
		for _, op := range m.Slowest() {
			mount.Operations = append(mount.Operations, MountOperation{op.Name, newMountCalls(&op)})
		}
		out = append(out, mount)
	}
	sortMounts(out)
	return out
}

func newMountCalls(op *collector.MountOp) MountCalls {
	known := func(v series.Optional) *float64 {
		if !v.Known() {
			return nil
		}
		return new(text.Round(float64(v), 3))
	}
	return MountCalls{op.Calls, known(op.Retransmissions), known(op.Timeouts), known(op.Queue), known(op.RTT),
		text.Round(op.Execute, 3)}
}

func sortMounts(list []Mount) {
	slices.SortStableFunc(list, func(a, b Mount) int {
		return cmp.Or(cmp.Compare(b.ExecuteSeconds, a.ExecuteSeconds), cmp.Compare(a.Source, b.Source))
	})
}

// mounts adds up the mounts of ranks that measured the host one after the other.
func (c *combiner) mounts() []Mount {
	var out []Mount
	for _, h := range c.hostTotals {
		for _, m := range h.Mounts {
			i := slices.IndexFunc(out, m.same)
			if i < 0 {
				m.Operations = slices.Clone(m.Operations)
				out = append(out, m)
				continue
			}
			out[i].add(&m)
		}
	}
	sortMounts(out)
	return out
}

// same reports whether m and o describe the same mount.
func (m *Mount) same(o Mount) bool {
	return m.Type == o.Type && m.Source == o.Source && slices.Equal(m.MountedOn, o.MountedOn)
}

func (m *Mount) add(o *Mount) {
	m.ReadMB, m.WriteMB = m.ReadMB+o.ReadMB, m.WriteMB+o.WriteMB
	m.MountCalls.add(&o.MountCalls)
	for _, op := range o.Operations {
		i := slices.IndexFunc(m.Operations, func(have MountOperation) bool { return have.Name == op.Name })
		if i < 0 {
			m.Operations = append(m.Operations, op)
			continue
		}
		m.Operations[i].add(&op.MountCalls)
	}
	slices.SortStableFunc(m.Operations, func(a, b MountOperation) int {
		return cmp.Compare(b.ExecuteSeconds, a.ExecuteSeconds)
	})
	m.Operations = m.Operations[:min(len(m.Operations), collector.MaxMountOps)]
}

func (c *MountCalls) add(o *MountCalls) {
	*c = MountCalls{c.Calls + o.Calls, either(c.Retransmissions, o.Retransmissions, plus),
		either(c.Timeouts, o.Timeouts, plus), either(c.QueueSeconds, o.QueueSeconds, plus),
		either(c.RTTSeconds, o.RTTSeconds, plus), c.ExecuteSeconds + o.ExecuteSeconds}
}
