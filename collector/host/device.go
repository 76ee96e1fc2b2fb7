package host

import (
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// A DeviceKind is a kind of device that counts bytes.
type DeviceKind int

// The kinds. To add one: a constant here, a row of deviceKinds, and a file that reads it.
const (
	Disks     DeviceKind = iota // block devices
	NICs                        // network interfaces
	RDMAPorts                   // ports of InfiniBand and other RDMA devices

	// Network file systems: optional sources, see OptionalDevices.
	NFSMounts
	LustreMounts
	NumDeviceKinds
)

// deviceKinds describes each kind: its source, the bytes of one count, the function that returns how far a counter went
// up between two Readings, the function that opens its reader, and the function that classifies its devices. classify
// is nil if the reader sets the classes itself.
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

// isOptional reports whether most hosts have no devices of the kind. They are first looked for after the job has
// started, and have their own interval.
func (k DeviceKind) isOptional() bool { return k >= NFSMounts }

// rdmaUnit is the bytes of one count of port_rcv_data and port_xmit_data
// (Documentation/ABI/stable/sysfs-class-infiniband).
const rdmaUnit = 4

// A deviceReader appends the devices of one kind to into, and keeps its own state between Readings. at is on the
// monotonic clock. The devices that it returns are valid even with an error, which names the unreadable ones.
type deviceReader func(at time.Duration, into []Device) ([]Device, error)

func openDisks(r *Reader) deviceReader {
	return func(_ time.Duration, into []Device) ([]Device, error) { return r.readDiskIO(into) }
}

func openNICs(r *Reader) deviceReader {
	return func(_ time.Duration, into []Device) ([]Device, error) { return r.readNet(into) }
}

// SourceInfiniBand is the source of the bytes of RDMA ports.
const SourceInfiniBand = "infiniband"

// Source returns the name of the kind's source.
func (k DeviceKind) Source() string { return deviceKinds[k].source }

// Unit returns the bytes of one count of a device.
func (k DeviceKind) Unit() uint64 { return deviceKinds[k].unit }

// Delta returns the bytes by which a counter of a device went up between two Readings.
func (k DeviceKind) Delta(prev, cur uint64) uint64 {
	unit := deviceKinds[k].unit
	return deviceKinds[k].delta(prev, cur, unit) * unit
}

// A Device is a block device, network interface, RDMA port or network file system with its counters, in the kernel's
// unit: sectors of 512 bytes for disks, 4 bytes for RDMA ports, bytes for the others.
type Device struct {
	Name string
	// In counts reads from a disk or file system, or what an interface or port received. Out counts writes, or what was
	// sent.
	In, Out uint64
	Class   DeviceClass
}

// A DeviceClass is a set of bits: the sums that a device counts in, and the state of its counters.
type DeviceClass uint8

// The bits. A device may have several.
const (
	Counted  DeviceClass = 1 << iota // in perfagent's totals: each byte once
	Loopback                         // a loopback interface
	PerfPy                           // in perf.py's totals (psutil's sum)

	// The counter could not be read: its value is from an earlier Reading, so that no bytes are lost once it can be
	// read again.
	StaleIn
	StaleOut
	// The counter is saturated: it stays at the end of its range. The bytes up to there belong to the first Reading
	// that finds it saturated; later Readings set StaleIn or StaleOut, too.
	SaturatedIn
	SaturatedOut

	// The device was added since the previous Reading: its counters began at 0 since then.
	Added
)

// rescanInterval is how long a classification is valid while the set of devices stays the same: a bond or bridge can be
// built from existing devices.
const rescanInterval = time.Minute

// A classCache caches the classes of devices. A classification takes several sysfs look-ups per device, far more than
// reading all counters.
type classCache struct {
	names   []string
	classes []DeviceClass
	at      time.Duration
}

// apply sets the classes of devs. It calls look only if the set of names has changed or the classification is older
// than rescanInterval.
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

// same reports whether devs have the names of the last classification.
func (t *classCache) same(devs []Device) bool {
	named := func(name string, d Device) bool { return name == d.Name }
	return t.classes != nil && slices.EqualFunc(t.names, devs, named)
}
