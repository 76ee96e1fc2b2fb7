package host

import (
	"errors"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// The sources that most hosts do not have: file systems of servers, counters of energy, sensors and
// throttling of CPUs. A run on a host without them pays for one look at each, after the job's start, and
// for another one each minute.
const (
	SourceNFS     = "nfs"
	SourceLustre  = "lustre"
	SourceEnergy  = "energy"
	SourceThermal = "thermal"
)

// RootOnly is the code for a source that is there and that only root may read.
const RootOnly series.ReasonCode = "root_only"

// OptionalDevices is the part of a Reading that rare sources make. What the host does not have, and what was read a
// moment ago, is nil.
type OptionalDevices struct {
	// Mounts are the file systems of servers, with what their clients count; nil if none was read.
	Mounts  []Mount
	Energy  *Energy
	Thermal *Thermal
	// Missing are the sources that are there and that we may not read.
	Missing []series.Missing
}

// A Mount is a file system of a server, with what its client has counted of it since it was mounted. If it
// is mounted at several places, they are one Mount.
type Mount struct {
	Kind   DeviceKind
	ID     string // the name of its Device: the number of its superblock, or its name
	Type   string // "nfs", "nfs4", "lustre"
	Source string // "server:/export", or the name of the file system; of several the first
	Paths  []string
	Added  bool // it was mounted since the Reading before
	// Read and Written count bytes.
	Read, Written uint64
	Unit          time.Duration // of the times
	Ops           []MountOp     // what was called at least once
}

// A MountOp is what a Mount's client has counted of one operation, such as READ or GETATTR. Times are in
// the Mount's unit, summed over the calls.
type MountOp struct {
	Name  string
	Calls uint64
	// Sent counts the times that the calls were sent, and Timeouts those that the server did not answer in
	// time. Of Lustre they are not known, and 0.
	Sent, Timeouts uint64
	// Queue is the time before a call was sent, RTT that until the answer came, and Execute all of it. Of
	// Lustre Execute alone is known.
	Queue, RTT, Execute uint64
}

// Energy is what the host's counters of energy say.
type Energy struct {
	At    time.Duration // when they were read, on the monotonic clock
	Stale bool          // these are an earlier Reading's
	Zones []EnergyZone
}

// An EnergyZone is a CPU package, or the memory of one. Its counter goes up to Range and starts again at 0.
type EnergyZone struct {
	Name        string // "intel-rapl:0"
	MicroJoules uint64
	Range       uint64 // in microjoules; 0 = unknown
}

// Thermal is how hot the host's CPUs are, and how often they were clocked down for that.
type Thermal struct {
	Celsius float64 // of the hottest package; NaN = unknown
	// Throttles are nil if they were not read now.
	Throttles []ThrottleCounter
}

// A ThrottleCounter is a core or a package with what the kernel has counted of its being clocked down.
type ThrottleCounter struct {
	Name   string // "package 0", "core 0/3"
	Events uint64
	Millis uint64 // for how long; 0 where the kernel does not tell
	Timed  bool   // it does
}

// errNotDue is for a rare source that was read a moment ago.
var errNotDue = errors.New("not due")

const (
	// optionalInterval is how often a rare source is read that is there. It is less than a second so that each
	// sample of a second has its own.
	optionalInterval = 900 * time.Millisecond
	// optionalCostRatio is the part of the time that reading a rare source may take: of a host with hundreds of
	// mounts the kernel writes them all anew each time.
	optionalCostRatio = 1000
)

// A pollTimer says when a rare source is read: at first and at the end, else each rareEvery at most while it is
// there, and each topologyAge while it is not.
type pollTimer struct {
	begun, there bool
	last         time.Duration // when it was read
	took         time.Duration
}

// due reports whether the source is to be read now.
func (p *pollTimer) due(now time.Duration, closing bool) bool {
	since := now - p.last
	switch {
	case !p.begun:
		return true
	case !p.there:
		return since >= rescanInterval || closing && since >= time.Second
	}
	return closing || since >= max(optionalInterval, optionalCostRatio*p.took)
}

// done notes that the source was read.
func (p *pollTimer) done(now, took time.Duration, there bool) {
	*p = pollTimer{begun: true, there: there, last: now, took: took}
}

// ReadDeferred returns what the baseline left out because the job was waiting: the rare sources. It is nil if
// somebody else measures the host.
func (r *Reader) ReadDeferred(base *Reading) *Reading {
	if r.jobOnly {
		return nil
	}
	late := &Reading{At: base.At}
	r.readOptional(late)
	return late
}
