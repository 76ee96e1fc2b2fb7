package host

import (
	"errors"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// The optional sources, which most hosts do not have: network file systems, energy counters, sensors and throttling of
// CPUs. On a host without them, a run searches for them after the job's start and once a minute.
const (
	SourceNFS     = "nfs"
	SourceLustre  = "lustre"
	SourceEnergy  = "energy"
	SourceThermal = "thermal"
)

// RootOnly is the reason code for a source that only root may read.
const RootOnly series.ReasonCode = "root_only"

// OptionalDevices is the part of a Reading that comes from optional sources. The field of a source that the host does
// not have is nil.
type OptionalDevices struct {
	// Mounts are the network file systems; nil if none was read.
	Mounts  []Mount
	Energy  *Energy
	Thermal *Thermal
	// Missing lists the sources that exist but that perfagent may not read.
	Missing []series.Missing
}

// A Mount is a network file system, with the counters that its client has kept since it was mounted. A file system that
// is mounted in several places is one Mount.
type Mount struct {
	Kind   DeviceKind
	ID     string // name of its Device: for NFS the superblock "0:45", for Lustre the directory
	Type   string // "nfs", "nfs4", "lustre"
	Source string // "server:/export" or the name of the file system; the first of several
	Paths  []string
	Age    uint64 // seconds since it was mounted; 0 = unknown, as for Lustre (all mounts are visible)
	Added  bool   // mounted since the previous Reading
	// Read and Written are bytes.
	Read, Written uint64
	Unit          time.Duration // unit of the times in Ops
	Ops           []MountOp     // operations that were called at least once
}

// A MountOp holds the client's counters of one operation on a Mount, such as READ or GETATTR. Times are in the Mount's
// Unit, summed over the calls.
type MountOp struct {
	Name  string
	Calls uint64
	// Sent counts the transmissions of calls, Timeouts the calls that the server did not answer in time. Both are 0 for
	// Lustre, which has no such counters.
	Sent, Timeouts uint64
	// Queue is the time until calls were sent, RTT the time from there to the reply, and Execute the total. Lustre reports
	// only Execute.
	Queue, RTT, Execute uint64
}

// Energy holds the host's energy counters.
type Energy struct {
	At    time.Duration // time of the reading on the monotonic clock
	Stale bool          // from an earlier Reading
	Zones []EnergyZone
}

// An EnergyZone is the energy counter of a CPU package, or of its memory. It wraps to 0 after Range.
type EnergyZone struct {
	Name        string // "intel-rapl:0"
	MicroJoules uint64
	Range       uint64 // in microjoules; 0 = unknown
}

// Thermal holds the temperature of the host's CPUs, and how often they were throttled because of heat.
type Thermal struct {
	Celsius float64 // of the hottest package; NaN = unknown
	// Throttles is nil if the counters were not due.
	Throttles []ThrottleCounter
}

// A ThrottleCounter counts how often a core or package was throttled.
type ThrottleCounter struct {
	Name   string // "package 0", "core of CPU 3"
	Events uint64
	Millis uint64 // duration; 0 if the kernel does not report it
	Timed  bool   // the kernel reports Millis
}

// errNotDue is the error of an optional source that is not due, because it was read a moment ago.
var errNotDue = errors.New("not due")

const (
	// optionalInterval is the interval at which the optional sources of the host are read. It is less than a second, so
	// that each one-second sample has a new value.
	optionalInterval = 900 * time.Millisecond
	// optionalCostRatio times the duration of a read is the shortest pause until the next read. On a host with hundreds of
	// mounts, the kernel formats the counters of all mounts for each read.
	optionalCostRatio = 1000
)

// A pollTimer schedules the reads of an optional source. The source is due in the first and the last Reading. Between
// them, it is due every rescanInterval if the host does not have it, and otherwise every optionalInterval or less
// often.
type pollTimer struct {
	polled, present bool
	last            time.Duration // when it was last read
	took            time.Duration
}

// due reports whether to read the source now.
func (p *pollTimer) due(now time.Duration, closing bool) bool {
	since := now - p.last
	switch {
	case !p.polled:
		return true
	case !p.present:
		return since >= rescanInterval || closing && since >= time.Second
	}
	return closing || since >= max(optionalInterval, optionalCostRatio*p.took)
}

// done records that the source was read.
func (p *pollTimer) done(now, took time.Duration, there bool) {
	*p = pollTimer{polled: true, present: there, last: now, took: took}
}

// ReadDeferred reads the optional sources, which Baseline skipped because the job was waiting. It returns nil if
// another perfagent measures the host.
func (r *Reader) ReadDeferred(base *Reading) *Reading {
	if r.job.jobOnly {
		return nil
	}
	deferred := &Reading{At: base.At}
	r.readOptional(deferred)
	return deferred
}
