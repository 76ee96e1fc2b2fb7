package collector

import (
	"fmt"
	"slices"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// rareProgress is the part of a Progress of the sources that most hosts do not have.
type rareProgress struct {
	zones     []host.EnergyZone // as they were read last
	zonesAt   float64           // when, in seconds on the monotonic clock
	joules    float64           // since the first good Reading
	throttles []throttled
}

// throttled is a core or a package, as it was read last, with how often it has been clocked down since it
// was read first, and for how long.
type throttled struct {
	host.Throttle
	events, millis uint64
}

// WithLate takes what the baseline Reading has left out.
func (p Progress) WithLate(late *host.Reading) Progress {
	var none Sample
	st := step{Reading: late, now: late.At.Mono, sample: &none}
	p.measureDevices(st)
	p.measureRare(st)
	return p
}

func (p *Progress) measureRare(st step) {
	p.measureEnergy(st)
	p.measureHeat(st)
}

// measureEnergy measures the energy that the CPU packages and their memory took, and their power.
func (p *Progress) measureEnergy(st step) {
	e := st.Energy
	if e == nil {
		return
	}
	if !e.Held {
		at := e.At.Seconds()
		p.rare.joules += energyBetween(p.rare.zones, e.Zones, at-p.rare.zonesAt)
		p.rare.zones, p.rare.zonesAt = e.Zones, at
	}

	st.sample.Values[NodeEnergy] = round3(p.rare.joules)
	if !e.Held {
		st.now = e.At
		p.measureRate(st, NodePower, p.rare.joules, 1)
	}
}

// mostWatts is more than a CPU package takes. A counter that fell has started again at 0, unless the package
// would have taken more: then it was reset.
const mostWatts = 5000

// energyBetween returns the joules that zones took between two Readings of them, seconds apart. A zone that
// was not there before begins to count now.
func energyBetween(prev, cur []host.EnergyZone, seconds float64) (joules float64) {
	for i, z := range cur {
		before := named(prev, z.Name, i, func(o *host.EnergyZone) string { return o.Name })
		if before == nil {
			continue
		}
		most := uint64(mostWatts * 1e6 * (max(seconds, 0) + 1))
		joules += float64(series.RangeDelta(before.MicroJoules, z.MicroJoules, z.Range, most)) / 1e6
	}
	return joules
}

// measureHeat takes the temperature, and measures how often CPUs were clocked down and for how long.
func (p *Progress) measureHeat(st step) {
	h := st.Heat
	if h == nil {
		return
	}
	v := &st.sample.Values
	v[CPUTemperature] = h.Celsius
	if h.Throttles != nil {
		p.rare.throttles = throttledSince(p.rare.throttles, h.Throttles)
	}
	if len(p.rare.throttles) == 0 {
		return
	}

	events, longest, timed := uint64(0), uint64(0), false
	for _, t := range p.rare.throttles {
		events, longest, timed = events+t.events, max(longest, t.millis), timed || t.Timed
	}
	v[CPUThrottleEvents] = float64(events)
	if timed {
		v[CPUThrottleSeconds] = float64(longest) / 1000
	}
}

// throttledSince returns the cores and packages after another Reading, in which some may be missing.
func throttledSince(before []throttled, now []host.Throttle) []throttled {
	out := slices.Clone(before)
	for i, t := range now {
		o := named(out, t.Name, i, func(o *throttled) string { return o.Name })
		if o == nil {
			out = append(out, throttled{Throttle: t})
			continue
		}
		o.events += series.ResetDelta(o.Events, t.Events, 1)
		o.millis += series.ResetDelta(o.Millis, t.Millis, 1)
		o.Throttle = t
	}
	return out
}

// beginRare reads what the baseline has left out, now that the job runs.
func (s *Sampler) beginRare() {
	late := s.reader.Late(s.prev)
	if late == nil {
		return
	}
	s.noteFailures(late)
	s.progress = s.progress.WithLate(late)
	s.noteRare(late)
	for k, devs := range late.Devices {
		if devs != nil {
			s.prev.Devices[k] = devs
		}
	}
}

// noteRare brings the mounts up to the newest Reading, and notes what may not be read.
func (s *Sampler) noteRare(r *host.Reading) {
	for _, g := range r.Gaps {
		s.rec.addGap(g)
	}
	if r.Mounts == nil {
		return
	}
	list, beyond := noteMounts(s.rec.Mounts, s.mounts, r.Mounts)
	if beyond {
		s.rec.addGap(series.Gap{What: MountList, Code: MountsBeyond,
			Why: fmt.Sprintf("more than %d were used: what the others moved is in the totals", MaxMounts)})
	}
	s.rec.Mounts, s.mounts = list, keptMounts(s.mounts, r.Mounts)
}
