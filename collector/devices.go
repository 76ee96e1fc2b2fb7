package collector

import (
	"math"
	"strings"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// CounterFull is the code for a device counter that is stuck at the end of its range.
const CounterFull series.ReasonCode = "counter_full"

// A deviceSelector selects the devices and the direction that a column counts. The zero value selects none.
type deviceSelector struct {
	kind  host.DeviceKind
	in    bool             // bytes received or read, rather than sent or written
	class host.DeviceClass // must equal a device's Counted and Loopback bits
}

// A deviceCounter maps the bytes moved by devices of one kind to their columns.
type deviceCounter struct {
	deviceSelector
	total, rate Column
	// optional reports that not every host has such devices. Without a readable device, the counter is unknown rather
	// than 0.
	optional bool
}

// deviceCounters lists the device counters in the order of their columns: perf.py's six first, in its order.
var deviceCounters = func() (list []deviceCounter) {
	for c := range NumColumns { // ranging over the rows would copy them at each start
		if row := c.row(); row.devices != (deviceSelector{}) {
			list = append(list, deviceCounter{row.devices, c, row.Rate, row.Scope == ScopeDevice})
		}
	}
	return list
}()

// Counters returns the columns of the device counters, perf.py's first and in its order.
func Counters() []Column {
	out := make([]Column, len(deviceCounters))
	for i, c := range deviceCounters {
		out[i] = c.total
	}
	return out
}

// measureDevices sums the bytes that devices have moved, and measures their rates.
func (p *CounterState) measureDevices(st measurement) {
	for i := range deviceCounters {
		c := &deviceCounters[i]
		devs := st.Devices[c.kind]
		if devs == nil {
			if st.Skipped[c.kind] && p.meters[c.rate].begun {
				st.sample.Values[c.total] = float64(p.moved[c.total]) / MiB
			}
			continue
		}
		moved, known := c.delta(p.devices[c.kind], devs)
		if !known {
			continue
		}
		p.moved[c.total] += moved
		p.measureCounter(st, c.total, float64(p.moved[c.total]), true)
	}

	for kind, devs := range st.Devices {
		if devs != nil {
			p.devices[kind] = devs
		}
	}
}

// delta returns the bytes that the counter's devices moved between two Readings. A device that is missing from prev
// counts from cur on; a device with the class Added counts from 0. It reports false if an optional counter includes no
// device of cur.
func (c *deviceCounter) delta(prev, cur []host.Device) (sum uint64, known bool) {
	known = !c.optional
	for i := range cur {
		d := &cur[i]
		if !c.includes(d, false) {
			continue
		}
		known = true
		before := findDevice(prev, d.Name, i)
		switch {
		case d.Class&host.Added != 0:
			sum += c.kind.Delta(0, c.counts(d))
		case before != nil:
			sum += c.kind.Delta(c.counts(before), c.counts(d))
		}
	}
	return sum, known
}

// counts returns the count of d in the counter's direction, in the kind's unit.
func (c *deviceCounter) counts(d *host.Device) uint64 { return pick(c.in, d.In, d.Out) }

// pick returns in if isIn, else out.
func pick[T any](isIn bool, in, out T) T {
	if isIn {
		return in
	}
	return out
}

// findDevice returns the device with the given name, or nil; hint is its likely index.
func findDevice(devs []host.Device, name string, hint int) *host.Device {
	return findByName(devs, name, hint, func(d *host.Device) string { return d.Name })
}

// findByName returns the element with the given name, or nil; hint is its likely index.
func findByName[T any](list []T, name string, hint int, nameOf func(*T) string) *T {
	if hint < len(list) && nameOf(&list[hint]) == name {
		return &list[hint]
	}
	for i := range list {
		if nameOf(&list[i]) == name {
			return &list[i]
		}
	}
	return nil
}

// bootTotals returns the sums of the counters since boot, in MiB and in the order of Counters. They include the counted
// devices or, if perfpy is set, all devices that psutil sums. NaN means not read.
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
	sum, known := 0.0, !c.optional
	for i := range devs {
		if c.includes(&devs[i], perfpy) {
			known = true
			sum += float64(c.counts(&devs[i])) * float64(c.kind.Unit())
		}
	}
	if !known {
		return math.NaN()
	}
	return sum / MiB
}

// includes reports whether d is in the counter's sum: in perf.py's sum if perfpy is set, else in perfagent's.
func (c *deviceCounter) includes(d *host.Device, perfpy bool) bool {
	if perfpy {
		return d.Class&host.PerfPy != 0 && d.Class&host.Loopback == c.class&host.Loopback
	}
	stale := pick(c.in, host.StaleIn, host.StaleOut) // the count is from an earlier Reading
	return d.Class&(host.Counted|host.Loopback|stale) == c.class
}

// full returns the names of the devices with a counter at the end of its range.
func (c *deviceCounter) full(devs []host.Device) (names []string) {
	bit := pick(c.in, host.SaturatedIn, host.SaturatedOut)
	for i := range devs {
		if devs[i].Class&bit != 0 {
			names = append(names, devs[i].Name)
		}
	}
	return names
}

// fullCounters returns an entry for each counter at the end of its range.
func fullCounters(r *host.Reading) (missing []series.Missing) {
	for i := range deviceCounters {
		c := &deviceCounters[i]
		if names := c.full(r.Devices[c.kind]); len(names) > 0 {
			missing = append(missing, series.Missing{What: c.total.Key(), Code: CounterFull, Why: "the counter of " +
				strings.Join(names, ", ") + " is at the end of its 32-bit range: later traffic is not counted"})
		}
	}
	return missing
}
