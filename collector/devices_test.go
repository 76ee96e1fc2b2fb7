package collector

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// disksAt returns a Reading of disks after some seconds.
func disksAt(seconds int, disks ...host.Device) *host.Reading {
	r := &host.Reading{At: at(time.Duration(seconds) * time.Second)}
	r.Devices[host.Disks] = disks
	return r
}

// What a disk moves while it cannot be read is counted once it can be.
func TestProgress_CountsWhatAHeldDeviceMoved(t *testing.T) {
	const mib = MiB / 512
	disk := func(n uint64, class host.Class) host.Device {
		return host.Device{Name: "sda", In: n * mib, Out: n * mib, Class: host.Counted | class}
	}

	p := Begin(disksAt(0, disk(10, 0)))
	p, s := p.Next(disksAt(1, disk(12, 0)), 0)
	same(t, "read", s.Values[DiskRead], 2.)
	p, s = p.Next(disksAt(2, disk(12, host.HeldIn)), 0)
	same(t, "read while it cannot be read", s.Values[DiskRead], 2.)
	_, s = p.Next(disksAt(3, disk(19, 0)), 0)
	same(t, "read and written at the end", [2]float64{s.Values[DiskRead], s.Values[DiskWrite]}, [2]float64{9, 9})
}

func TestFullCounters(t *testing.T) {
	r := disksAt(0, host.Device{Name: "sda", Class: host.Counted},
		host.Device{Name: "sdb", Class: host.Counted | host.HeldOut | host.FullOut},
		host.Device{Name: "sdc", Class: host.Counted | host.HeldOut | host.FullOut})
	same(t, "gaps", fullCounters(r), []series.Gap{{What: "disk_io_write_mb", Code: CounterFull,
		Why: "the counter of sdb, sdc stands at the end of its 32 bits: what has moved since is not counted"}})
}

// Rows of the table agree with themselves.
func TestColumnTable(t *testing.T) {
	fixed := true
	for c := range Column(MaxColumns) {
		row := c.Info()
		if row.Unit == "" || row.Kind == 0 || row.Across == 0 || row.Since == 0 || row.Label == "" || row.Digits == 0 {
			t.Errorf("%s lacks something: %+v", row.Key, row)
		}
		if (row.Unit == Percent) != (row.Kind == Share) {
			t.Errorf("%s: unit %q, kind %d", row.Key, row.Unit, row.Kind)
		}
		if row.Since != Device && !fixed {
			t.Errorf("%s comes after a column of a device", row.Key)
		}
		fixed = row.Since != Device
		if rate := row.Rate.Info(); row.Rate != 0 && (row.Kind != Counter || rate.Kind != Rate || rate.Source != row.Source) {
			t.Errorf("%s has the rate %s", row.Key, rate.Key)
		}
		if row.devices != (deviceSum{}) && (row.Rate == 0 || row.devices.kind.Source() != row.Source) {
			t.Errorf("%s: rate %d, kind of %s", row.Key, row.Rate, row.devices.kind.Source())
		}
	}
}
