package collector

import (
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
)

// A window of a few ticks is measured if it is the first. After longer windows it is not measured, because its peaks
// would exceed theirs by chance. Its bytes still count.
func TestCounterState_OnlyTheFirstWindowMayBeShort(t *testing.T) {
	reading := func(after time.Duration, idle float64, bytes uint64) *host.Reading {
		return &host.Reading{At: host.Instant{Wall: time.Unix(1000, 0).Add(after), Mono: after, Boot: after},
			CPU:     []host.CPUTimes{{Name: "cpu0", Seconds: [host.NumCPUModes]float64{host.ModeUser: after.Seconds() - idle, host.ModeIdle: idle}}},
			Devices: [host.NumDeviceKinds][]host.Device{host.NICs: {{Name: "eth0", In: bytes, Class: host.Counted}}}}
	}

	least := MinWindow(time.Second)
	_, first := NewCounterState(reading(0, 0, 0)).Next(reading(50*time.Millisecond, 0.03, MiB), least)
	if first.Values[CPUAvg] != 40 || first.Values[NetExtRecvRate] != 20 {
		t.Errorf("job of 50 ms: CPU %v, rate %v; want 40, 20", first.Values[CPUAvg], first.Values[NetExtRecvRate])
	}
	p, _ := NewCounterState(reading(0, 0, 0)).Next(reading(time.Second, 1, 0), least)
	p, short := p.Next(reading(1060*time.Millisecond, 1.02, MiB), least)
	if short.Has(CPUAvg) || short.Has(NetExtRecvRate) || short.Values[NetExtRecv] != 1 {
		t.Errorf("60 ms after a second: CPU %v, rate %v, received %v; want NaN, NaN, 1", short.Values[CPUAvg],
			short.Values[NetExtRecvRate], short.Values[NetExtRecv])
	}
	_, longer := p.Next(reading(1500*time.Millisecond, 1.25, 2*MiB), least)
	if longer.Values[CPUAvg] != 50 || longer.Weights[CPUAvg] != 0.5 || longer.Values[NetExtRecvRate] != 4 {
		t.Errorf("the next window: CPU %v over %v s, rate %v; want 50 over 0.5 s, 4", longer.Values[CPUAvg],
			longer.Weights[CPUAvg], longer.Values[NetExtRecvRate])
	}
}

// perf.py's first sample has no percentages, because there is no reading before it.
func TestPerfPySample_FirstHasNoPercentages(t *testing.T) {
	s := perfpySample(nil, &host.Reading{CPU: []host.CPUTimes{{Name: "cpu0", Seconds: [host.NumCPUModes]float64{host.ModeUser: 1}}}}, 1)
	if s.Has(CPUAvg) {
		t.Errorf("CPUAvg = %v after a single Reading, want no value", s.Values[CPUAvg])
	}
}
