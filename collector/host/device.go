package host

import (
	"slices"
	"time"
)

// A Kind is a kind of devices that count bytes.
type Kind int

// The kinds. One more is a constant here, a row of kinds, and a file that reads it.
const (
	Disks Kind = iota // block devices
	NICs              // network interfaces
	NumKinds
)

// kinds says of each kind which source it is, how many bytes one count of its devices is, how it is read, and in which
// sums its devices stand.
var kinds = [NumKinds]struct {
	source   string
	unit     uint64
	read     func(*Reader) ([]Device, error)
	classify func(*Reader, []Device) []Class
}{
	Disks: {SourceDiskIO, diskUnit, (*Reader).readDiskIO, (*Reader).classifyBlocks},
	NICs:  {SourceNetwork, 1, (*Reader).readNet, (*Reader).classifyNICs},
}

// Source returns the source that the devices are read from.
func (k Kind) Source() string { return kinds[k].source }

// Unit returns how many bytes one count of a device is.
func (k Kind) Unit() uint64 { return kinds[k].unit }

// Device is a block device or a network interface with its counters, in the
// kernel's own unit: sectors of 512 bytes for a disk, bytes for an interface.
type Device struct {
	Name string
	// In is what was read from a disk or received by an interface; Out is what
	// was written or sent.
	In, Out uint64
	Class   Class
}

// Class says in which sums a device stands.
type Class uint8

// The classes, as bits: a device may be in several.
const (
	Counted  Class = 1 << iota // in our totals: each byte once
	Loopback                   // an interface that is lo
	PerfPy                     // in perf.py's totals (psutil's sum)
)

// topologyAge is how long a classification holds while the set of devices stays
// the same: a bond or a bridge can be built from devices that were there before.
const topologyAge = time.Minute

// topology remembers the classes of devices. Finding them takes a few look-ups
// in sysfs for each device, far more than reading all their counters.
type topology struct {
	names   []string
	classes []Class
	at      time.Duration
}

// apply sets the classes of devs, looking them up again only when the set of
// names changed or the last look-up is old.
func (t *topology) apply(devs []Device, now time.Duration, look func([]Device) []Class) {
	if !t.same(devs) || now-t.at >= topologyAge {
		t.names = t.names[:0]
		for _, d := range devs {
			t.names = append(t.names, d.Name)
		}
		t.classes = look(devs)
		t.at = now
	}
	for i := range devs {
		devs[i].Class = t.classes[i]
	}
}

func (t *topology) same(devs []Device) bool {
	return t.classes != nil && slices.EqualFunc(t.names, devs, func(name string, d Device) bool { return name == d.Name })
}
