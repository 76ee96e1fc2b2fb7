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

	// Network file systems. They are optional sources, see OptionalDevices.
	NFSMounts
	LustreMounts
	NumDeviceKinds
)

// deviceKinds describes each kind: its source, the number of bytes that a count of 1 stands for, and three functions.
// delta returns the increase of a counter between two Readings. open returns the kind's reader. classify returns the
// classes of the kind's devices; it is nil if the reader sets them.
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

// isOptional reports whether most hosts have no devices of this kind. The search for optional devices begins after the
// job has started, and they are read at an interval of their own (pollTimer).
func (k DeviceKind) isOptional() bool { return k >= NFSMounts }

// rdmaUnit is the unit of port_rcv_data and port_xmit_data, in bytes (Documentation/ABI/stable/sysfs-class-infiniband).
const rdmaUnit = 4

// A deviceReader appends the devices of one kind to into. It keeps state between Readings. at is the time on the
// monotonic clock. The returned devices are valid even with an error, which names the unreadable devices.
type deviceReader func(at time.Duration, into []Device) ([]Device, error)

func openDisks(r *Reader) deviceReader { return r.readDiskIO }
func openNICs(r *Reader) deviceReader  { return r.readNet }

// SourceInfiniBand is the name of the source of RDMAPorts.
const SourceInfiniBand = "infiniband"

// Source returns the name of the kind's source.
func (k DeviceKind) Source() string { return deviceKinds[k].source }

// Unit returns the number of bytes that a count of 1 of a device stands for.
func (k DeviceKind) Unit() uint64 { return deviceKinds[k].unit }

// Delta returns the increase of a device's counter between two Readings, in bytes.
func (k DeviceKind) Delta(prev, cur uint64) uint64 {
	unit := deviceKinds[k].unit
	return deviceKinds[k].delta(prev, cur, unit) * unit
}

// A Device is a block device, network interface, RDMA port or network file system with its counters, in the kernel's
// unit: sectors of 512 bytes for disks, 4 bytes for RDMA ports, bytes for the others.
type Device struct {
	Name string
	// In counts data read from the disk or file system, or received by the interface or port. Out counts data written or
	// sent.
	In, Out uint64
	Class   DeviceClass
}

// A DeviceClass is a set of bits for the sums that include a device and for the state of its counters.
type DeviceClass uint8

// The bits. A device may have several.
const (
	Counted  DeviceClass = 1 << iota // in perfagent's totals, which count each byte once
	Loopback                         // a loopback interface
	PerfPy                           // in perf.py's totals (psutil's sum)

	// The counter could not be read, so its value is from an earlier Reading. No bytes are lost: the next Reading that can
	// read the counter includes them.
	StaleIn
	StaleOut
	// The counter is saturated: it stays at the end of its range. In the first Reading that finds it saturated, its value
	// is still correct; later Readings also set StaleIn or StaleOut.
	SaturatedIn
	SaturatedOut

	// The device was added since the previous Reading, with counters that began at 0.
	Added
)

// rescanInterval is the time for which a classification is used while the set of devices stays the same. A
// classification may become wrong, because a bond or bridge can be built from existing devices.
const rescanInterval = time.Minute

// A classCache caches the classes of devices. A classification needs several sysfs look-ups per device, which cost far
// more than reading all counters.
type classCache struct {
	names   []string
	classes []DeviceClass
	at      time.Duration
}

// apply sets the classes of devs. It calls look to classify them only if their names have changed or the last
// classification is older than rescanInterval.
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

// same reports whether devs have the same names as in the last classification.
func (t *classCache) same(devs []Device) bool {
	named := func(name string, d Device) bool { return name == d.Name }
	return t.classes != nil && slices.EqualFunc(t.names, devs, named)
}
