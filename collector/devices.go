package collector

import (
	"math"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// A deviceCounter ties the bytes that devices of one kind have moved to their columns.
type deviceCounter struct {
	total, rate Column
	kind        host.Kind
	in          bool       // what came in, not what went out
	class       host.Class // a device counts when its Counted and Loopback bits equal this
}

// deviceCounters lists the counters of devices, perf.py's six first and in its order. Another kind
// of devices is a row for each direction here, two columns each in sample.go, and a kind in package
// host.
var deviceCounters = [...]deviceCounter{
	{total: DiskRead, rate: DiskReadRate, kind: host.Disks, in: true, class: host.Counted},
	{total: DiskWrite, rate: DiskWriteRate, kind: host.Disks, in: false, class: host.Counted},
	{total: NetLoSent, rate: NetLoSentRate, kind: host.NICs, in: false, class: host.Counted | host.Loopback},
	{total: NetExtSent, rate: NetExtSentRate, kind: host.NICs, in: false, class: host.Counted},
	{total: NetLoRecv, rate: NetLoRecvRate, kind: host.NICs, in: true, class: host.Counted | host.Loopback},
	{total: NetExtRecv, rate: NetExtRecvRate, kind: host.NICs, in: true, class: host.Counted},
}

// NumCounters is the number of counters of devices: the length of Counters and of Recording.BootMB.
const NumCounters = len(deviceCounters)

// Counters returns the columns of the counters of devices, perf.py's first and in its order.
func Counters() []Column {
	out := make([]Column, NumCounters)
	for i, c := range deviceCounters {
		out[i] = c.total
	}
	return out
}

// measureDevices adds up the bytes that devices have moved, and measures their rates.
func (p *Progress) measureDevices(st step) {
	for i, c := range deviceCounters {
		devs := st.Devices[c.kind]
		if devs == nil {
			continue
		}
		p.moved[i] += c.delta(p.devices[c.kind], devs)
		p.measureBytes(st, c.total, c.rate, float64(p.moved[i]))
	}

	for kind, devs := range st.Devices {
		if devs != nil {
			p.devices[kind] = devs
		}
	}
}

// delta returns the bytes that the counter's devices moved between two Readings. A device that was
// not there before begins to count now.
func (c *deviceCounter) delta(prev, cur []host.Device) uint64 {
	var sum uint64
	unit := c.kind.Unit()
	for i := range cur {
		d := &cur[i]
		if d.Class&(host.Counted|host.Loopback) != c.class {
			continue
		}
		if before := deviceNamed(prev, d.Name, i); before != nil {
			sum += series.Delta(c.counts(before), c.counts(d), unit) * unit
		}
	}
	return sum
}

// counts returns what a device has counted, in the kind's unit.
func (c *deviceCounter) counts(d *host.Device) uint64 {
	if c.in {
		return d.In
	}
	return d.Out
}

// deviceNamed returns the device of a name, or nil if there is none; hint is where it most likely
// stands.
func deviceNamed(devs []host.Device, name string, hint int) *host.Device {
	if hint < len(devs) && devs[hint].Name == name {
		return &devs[hint]
	}
	for i := range devs {
		if devs[i].Name == name {
			return &devs[i]
		}
	}
	return nil
}

// bootTotals sums the counters since boot, in MiB: over the devices that we count or, for perf.py,
// over all that psutil sums. NaN was not read.
func bootTotals(r *host.Reading, perfpy bool) [NumCounters]float64 {
	var out [NumCounters]float64
	for i, c := range deviceCounters {
		devs := r.Devices[c.kind]
		if devs == nil {
			out[i] = math.NaN()
			continue
		}
		sum := 0.0
		for j := range devs {
			if c.sums(&devs[j], perfpy) {
				sum += float64(c.counts(&devs[j])) * float64(c.kind.Unit())
			}
		}
		out[i] = sum / MiB
	}
	return out
}

// sums reports whether a device is in the sum since boot: ours, or perf.py's.
func (c *deviceCounter) sums(d *host.Device, perfpy bool) bool {
	if perfpy {
		return d.Class&host.PerfPy != 0 && d.Class&host.Loopback == c.class&host.Loopback
	}
	return d.Class&(host.Counted|host.Loopback) == c.class
}
