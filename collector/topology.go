package collector

import (
	"slices"
	"time"
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
