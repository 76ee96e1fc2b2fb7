package collector

import (
	"math"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// A deviceSum says which devices' bytes a column counts. The zero value is none.
type deviceSum struct {
	kind  host.Kind
	in    bool       // what came in, not what went out
	class host.Class // a device counts when its Counted and Loopback bits equal this
}

// A deviceCounter ties the bytes that devices of one kind have moved to their columns.
type deviceCounter struct {
	deviceSum
	total, rate Column
}

// deviceCounters lists the counters of devices in the order of their columns: perf.py's six first and
// in its order.
var deviceCounters = func() (list []deviceCounter) {
	for c, row := range columnTable {
		if row.devices != (deviceSum{}) {
			list = append(list, deviceCounter{row.devices, Column(c), row.Rate})
		}
	}
	return list
}()

// Counters returns the columns of the counters of devices, perf.py's first and in its order.
func Counters() []Column {
	out := make([]Column, len(deviceCounters))
	for i, c := range deviceCounters {
		out[i] = c.total
	}
	return out
}

// measureDevices adds up the bytes that devices have moved, and measures their rates.
func (p *Progress) measureDevices(st step) {
	for i := range deviceCounters {
		c := &deviceCounters[i]
		devs := st.Devices[c.kind]
		if devs == nil {
			continue
		}
		p.moved[c.total] += c.delta(p.devices[c.kind], devs)
		p.measureBytes(st, c.total, c.rate, float64(p.moved[c.total]))
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

// bootTotals sums the counters since boot, in MiB and in the order of Counters: over the devices
// that we count or, for perf.py, over all that psutil sums. NaN was not read.
func bootTotals(r *host.Reading, perfpy bool) []float64 {
	out := make([]float64, len(deviceCounters))
	for i := range out {
		out[i] = deviceCounters[i].bootTotal(r, perfpy)
	}
	return out
}

func (c *deviceCounter) bootTotal(r *host.Reading, perfpy bool) float64 {
	devs := r.Devices[c.kind]
	if devs == nil {
		return math.NaN()
	}
	sum := 0.0
	for i := range devs {
		if c.sums(&devs[i], perfpy) {
			sum += float64(c.counts(&devs[i])) * float64(c.kind.Unit())
		}
	}
	return sum / MiB
}

// sums reports whether a device is in the sum since boot: ours, or perf.py's.
func (c *deviceCounter) sums(d *host.Device, perfpy bool) bool {
	if perfpy {
		return d.Class&host.PerfPy != 0 && d.Class&host.Loopback == c.class&host.Loopback
	}
	return d.Class&(host.Counted|host.Loopback) == c.class
}
