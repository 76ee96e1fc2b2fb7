package collector

import (
	"math"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// CounterState is the state of the counters after a Reading. It is a value: Next does not change it. Percentages and
// rates are measured over a window, which begins when the previous window ended. If a Reading follows too soon, or a
// source fails for a while, the window becomes longer but remains valid.
type CounterState struct {
	start, last host.Instant // times of the first and of the newest Reading

	cpu      []host.CPUTimes // at the end of the last window
	cpuSince time.Duration
	cpuKnown bool // a window has been measured
	cpuTotal cpuTotals
	cpuModes [host.NumCPUModes]float64 // cpuTotal when the window began

	devices  [host.NumDeviceKinds][]host.Device // of the last good Reading; nil before the first
	moved    [NumColumns]uint64                 // bytes since the first good Reading, by counter column
	vm       [NumColumns]series.Counter         // by counter column
	optional optionalCounterState
	job      jobCounterState
	meters   [NumColumns]meter // for the columns that are rates
}

// A measurement is a Reading that is being converted to a Sample.
type measurement struct {
	*host.Reading
	now time.Duration // monotonic time of the values
	// minWindow is the shortest window that is measured.
	minWindow time.Duration
	sample    *Sample
}

// NewCounterState returns the CounterState after the baseline Reading.
func NewCounterState(r *host.Reading) CounterState {
	p := CounterState{start: r.At, last: r.At, cpu: r.CPU, cpuSince: r.At.Mono, job: jobCounterState{periods: math.NaN()}}
	p.cpuTotal.add(r.CPU, r.At.Boot)

	var none Sample
	st := measurement{Reading: r, now: r.At.Mono, sample: &none}
	p.measureDevices(st)
	p.measureVM(st)
	p.measurePressure(st, r.Pressure, ScopeHost)
	if r.Job != nil {
		p.measureJobCounters(st)
		p.measureGroup(st)
	}
	return p
}

// Next returns the state after the Reading r, and the Sample of r. minWindow is the shortest window of percentages and
// rates; the first window may be as short as FirstWindow.
func (p CounterState) Next(r *host.Reading, minWindow time.Duration) (CounterState, Sample) {
	var s Sample
	elapsed := max(0, (r.At.Mono - p.last.Mono).Seconds())
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), elapsed
	}
	p.last = r.At
	s.Values[Timestamp] = p.timestamp(r.At)

	st := measurement{Reading: r, now: r.At.Mono, minWindow: minWindow, sample: &s}
	takeGauges(st)
	p.measureCPU(st)
	p.measureDevices(st)
	p.measureVM(st)
	p.measurePressure(st, r.Pressure, ScopeHost)
	p.measureOptional(st)
	p.measureJob(st)
	return p, s
}

// refersTo reports whether p still uses slices of r.
func (p *CounterState) refersTo(r *host.Reading) bool {
	if isSame(p.cpu, r.CPU) || isSame(p.cpuTotal.highest, r.CPU) {
		return true
	}
	for kind, devs := range r.Devices {
		if isSame(p.devices[kind], devs) {
			return true
		}
	}
	return false
}

// isSame reports whether a and b share their first element.
func isSame[E any](a, b []E) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// timestamp returns the time of a sample in seconds since 1970, to the millisecond. It adds the boot clock since the
// start to the wall clock of the start, so a step of the wall clock does not distort the time axis.
func (p *CounterState) timestamp(at host.Instant) float64 {
	t := p.start.Wall.Add(max(0, at.Boot-p.start.Boot))
	return float64(t.UnixMilli()) / 1000
}

// takeGauges fills the columns that need no earlier Reading.
func takeGauges(st measurement) {
	v := &st.sample.Values
	if st.Memory != nil {
		v[MemPercent] = st.Memory.Percent()
		v[MemUsed] = float64(st.Memory.Used()) / MiB
	}

	for i, d := range st.Disk { // the fullest file system counts
		if percent := d.Percent(); i == 0 || percent > v[DiskPercent] {
			v[DiskPercent] = percent
			v[DiskUsed], v[DiskFree] = float64(d.Used)/MiB, float64(d.Available)/MiB
		}
	}

	if st.Load != nil {
		v[Load1], v[ProcsRunning] = st.Load.Load1, st.Load.Running
	}

	if st.GPUs == nil {
		return
	}
	for i, state := range st.GPUs.States[:min(len(st.GPUs.States), MaxGPUs)] {
		v[GPUColumn(i, GPUUtilization)] = state.UtilizationPct
		v[GPUColumn(i, GPUMemoryUsed)] = round3(state.MemoryUsedMB)
		v[GPUColumn(i, GPUPower)] = state.PowerWatts
		v[GPUColumn(i, GPUTemperature)] = state.TemperatureCelsius
	}
}

// The columns that are computed from a single number of a Reading.
var (
	vmColumns    = columnsOf(func(row *ColumnInfo) bool { return row.vm != nil })
	jobColumns   = columnsOf(func(row *ColumnInfo) bool { return row.job != nil })
	stallColumns = columnsOf(func(row *ColumnInfo) bool { return row.stall != nil })
)

// columnsOf returns the columns that satisfy is.
func columnsOf(is func(*ColumnInfo) bool) (list []Column) {
	for c := range NumColumns {
		if is(c.row()) {
			list = append(list, c)
		}
	}
	return list
}

// measureVM measures the counters of /proc/vmstat.
func (p *CounterState) measureVM(st measurement) {
	if st.VM == nil {
		return
	}
	for _, c := range vmColumns {
		// A stale reading gives no rate.
		p.measureCounter(st, c, float64(p.vm[c].Increase(c.row().vm(st.VM))), !st.VM.Stale)
	}
}

// measurePressure measures the share of time in which tasks of the host or of the job were stalled.
func (p *CounterState) measurePressure(st measurement, stalls *cgroup.Pressure, of Scope) {
	if stalls == nil {
		return
	}
	for _, c := range stallColumns {
		if row := c.row(); row.Scope == of {
			p.measureRate(st, c, row.stall(stalls), 100)
		}
	}
}
