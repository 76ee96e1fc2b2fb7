package collector

import (
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// optionalCounterState is the part of a CounterState for sources that most hosts do not have.
type optionalCounterState struct {
	zones     []host.EnergyZone // at the last good Reading
	zonesAt   float64           // time of zones, in seconds on the monotonic clock
	joules    float64           // since the first good Reading
	throttles []throttleCounter
}

// A throttleCounter is the last reading of a core or a package, with the throttle events and milliseconds since its
// first reading.
type throttleCounter struct {
	host.ThrottleCounter
	events, millis uint64
}

// WithDeferred returns the state after late, the Reading of the sources that the baseline skipped.
func (p CounterState) WithDeferred(late *host.Reading) CounterState {
	var none Sample
	st := measurement{Reading: late, now: late.At.Mono, sample: &none}
	p.measureDevices(st)
	p.measureOptional(st)
	return p
}

func (p *CounterState) measureOptional(st measurement) {
	p.measureEnergy(st)
	p.measureThermal(st)
}

// measureEnergy measures the energy and the power of the CPU packages and their memory.
func (p *CounterState) measureEnergy(st measurement) {
	e := st.Energy
	if e == nil {
		return
	}
	if !e.Stale {
		at := e.At.Seconds()
		p.optional.joules += energyBetween(p.optional.zones, e.Zones, at-p.optional.zonesAt)
		p.optional.zones, p.optional.zonesAt = e.Zones, at
	}

	st.sample.Values[NodeEnergy] = round3(p.optional.joules)
	if !e.Stale {
		st.now = e.At
		p.measureRate(st, NodePower, p.optional.joules, 1)
	}
}

// mostWatts is more power than a CPU package draws. A counter that fell has wrapped or, if a wrap would mean more power
// than mostWatts, was reset.
const mostWatts = 5000

// energyBetween returns the energy, in joules, that zones used between two readings. seconds is the time between the
// readings. A zone that is missing from prev counts from cur on.
func energyBetween(prev, cur []host.EnergyZone, seconds float64) (joules float64) {
	for i, z := range cur {
		before := findByName(prev, z.Name, i, func(o *host.EnergyZone) string { return o.Name })
		if before == nil {
			continue
		}
		most := uint64(mostWatts * 1e6 * (max(seconds, 0) + 1))
		joules += float64(series.RangeDelta(before.MicroJoules, z.MicroJoules, z.Range, most)) / 1e6
	}
	return joules
}

// measureThermal measures the temperature, and the number and duration of CPU throttling events.
func (p *CounterState) measureThermal(st measurement) {
	h := st.Thermal
	if h == nil {
		return
	}
	v := &st.sample.Values
	v[CPUTemperature] = h.Celsius
	if h.Throttles != nil {
		p.optional.throttles = throttledSince(p.optional.throttles, h.Throttles)
	}
	if len(p.optional.throttles) == 0 {
		return
	}

	events, longest, timed := uint64(0), uint64(0), false
	for _, t := range p.optional.throttles {
		events, longest, timed = events+t.events, max(longest, t.millis), timed || t.Timed
	}
	v[CPUThrottleEvents] = float64(events)
	if timed {
		v[CPUThrottleSeconds] = float64(longest) / 1000
	}
}

// throttledSince returns the cores and packages of before, updated with now. now may lack some of them.
func throttledSince(before []throttleCounter, now []host.ThrottleCounter) []throttleCounter {
	out := slices.Clone(before)
	for i, t := range now {
		o := findByName(out, t.Name, i, func(o *throttleCounter) string { return o.Name })
		if o == nil {
			out = append(out, throttleCounter{ThrottleCounter: t})
			continue
		}
		o.events += series.ResetDelta(o.Events, t.Events, 1)
		o.millis += series.ResetDelta(o.Millis, t.Millis, 1)
		o.ThrottleCounter = t
	}
	return out
}

// beginOptional reads the sources that the baseline skipped, now that the job runs.
func (s *Sampler) beginOptional() {
	late := s.reader.ReadDeferred(s.prev)
	if late == nil {
		return
	}
	s.noteFailures(late)
	s.counters = s.counters.WithDeferred(late)
	s.noteOptional(late)
	for k, devs := range late.Devices {
		if devs != nil {
			s.prev.Devices[k] = devs
		}
	}
}

// noteOptional updates the mounts with a Reading, and notes sources that are missing.
func (s *Sampler) noteOptional(r *host.Reading) {
	for _, g := range r.Missing {
		s.rec.addMissing(g)
	}
	if r.Mounts == nil {
		return
	}
	list, beyond := noteMounts(s.rec.Mounts, s.mounts, r.Mounts)
	if beyond {
		s.rec.addMissing(series.Missing{What: MountList, Code: MountsBeyond,
			Why: fmt.Sprintf("more than %d were used: the others' traffic is in the totals", MaxMounts)})
	}
	s.rec.Mounts, s.mounts = list, keptMounts(s.mounts, r.Mounts)
}
