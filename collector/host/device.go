package host

import (
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// A DeviceKind is a kind of devices that count bytes.
type DeviceKind int

// The kinds. Another one is a constant here, a row of kinds, and a file that reads it.
const (
	Disks     DeviceKind = iota // block devices
	NICs                        // network interfaces
	RDMAPorts                   // of InfiniBand and other RDMA devices

	// The file systems of servers. What they are read from most hosts do not have: see rare.
	NFSMounts
	LustreMounts
	NumDeviceKinds
)

// deviceKinds describes each kind: its source, the bytes of one count, by how many counts a counter went up
// between two Readings, what reads its devices, and in which sums they count. A kind that sets the
// classes when it reads needs no classify.
var deviceKinds = [NumDeviceKinds]struct {
	source   string
	unit     uint64
	delta    func(prev, cur, unit uint64) uint64
	open     func(*Reader) deviceReader
	classify func(*Reader, []Device) []DeviceClass
}{
	Disks: {SourceDiskIO, diskUnit, series.Delta, openDisks, (*Reader).classifyBlocks},
	NICs:  {SourceNetwork, 1, series.Delta, openNICs, (*Reader).classifyNICs},

	RDMAPorts: {SourceInfiniBand, rdmaUnit, series.ResetDelta, openRDMA, nil},

	NFSMounts:    {SourceNFS, 1, series.ResetDelta, openNFS, nil},
	LustreMounts: {SourceLustre, 1, series.ResetDelta, openLustre, nil},
}

// isOptional reports whether most hosts have no devices of the kind. They are looked for when the job runs
// already, and read at a pace of their own.
func (k DeviceKind) isOptional() bool { return k >= NFSMounts }

// rdmaUnit is the bytes of one count of port_rcv_data and port_xmit_data
// (Documentation/ABI/stable/sysfs-class-infiniband).
const rdmaUnit = 4

// A deviceReader reads the devices of one kind, and has what it must keep from one Reading to the
// next. Its argument is the time on the monotonic clock. Its error says what it cannot read; the
// rest counts.
type deviceReader func(at time.Duration, into []Device) ([]Device, error)

func openDisks(r *Reader) deviceReader {
	return func(_ time.Duration, into []Device) ([]Device, error) { return r.readDiskIO(into) }
}

func openNICs(r *Reader) deviceReader {
	return func(_ time.Duration, into []Device) ([]Device, error) { return r.readNet(into) }
}

// SourceInfiniBand is the source of the bytes of RDMA ports.
const SourceInfiniBand = "infiniband"

// Source returns the name of the source that the devices are read from.
func (k DeviceKind) Source() string { return deviceKinds[k].source }

// Unit returns the bytes of one count of a device.
func (k DeviceKind) Unit() uint64 { return deviceKinds[k].unit }

// Delta returns the bytes by which a counter of a device went up between two Readings.
func (k DeviceKind) Delta(prev, cur uint64) uint64 {
	unit := deviceKinds[k].unit
	return deviceKinds[k].delta(prev, cur, unit) * unit
}

// A Device is a block device, a network interface, an RDMA port or a file system with its counters, in
// the kernel's own unit: sectors of 512 bytes for a disk, 4 bytes for a port, bytes for the others.
type Device struct {
	Name string
	// In counts what was read from a disk or file system or received by an interface or port, Out what
	// was written or sent.
	In, Out uint64
	Class   DeviceClass
}

// A DeviceClass says in which sums a device counts.
type DeviceClass uint8

// The classes, as bits: a device may be in several.
const (
	Counted  DeviceClass = 1 << iota // our totals: each byte once
	Loopback                         // a loopback interface
	PerfPy                           // perf.py's totals (psutil's sum)

	// What of a device is not known at this Reading. Its count is that of an earlier one, so that
	// nothing is lost once it can be read again.
	StaleIn
	StaleOut
	// The counter is at the end of its range, where it stays. What it counted until then is in the
	// Reading that finds it there first; in the later ones it is held, too.
	SaturatedIn
	SaturatedOut

	// The device was made since the Reading before: what it has counted, it has counted since then.
	Added
)

// rescanInterval is how long a classification holds while the set of devices stays the same: a bond or
// a bridge can be built from devices that were there before.
const rescanInterval = time.Minute

// A classCache caches the classes of devices. Finding them takes a few look-ups in sysfs for each
// device, far more than reading all their counters.
type classCache struct {
	names   []string
	classes []DeviceClass
	at      time.Duration
}

// apply sets the classes of devs. It looks them up again only when the set of names has changed or
// the last look-up is old.
func (t *classCache) apply(devs []Device, now time.Duration, look func([]Device) []DeviceClass) {
	if !t.same(devs) || now-t.at >= rescanInterval {
		t.names = t.names[:0]
		for _, d := range devs {
			t.names = append(t.names, d.Name)
		}
		t.classes = look(devs)
		t.at = now
	}
	for i := range devs {
		devs[i].Class |= t.classes[i]
	}
}

// same reports whether devs have the names of the last look-up.
func (t *classCache) same(devs []Device) bool {
	named := func(name string, d Device) bool { return name == d.Name }
	return t.classes != nil && slices.EqualFunc(t.names, devs, named)
}
