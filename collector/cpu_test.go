package collector

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
)

// The expected values are psutil's results for differences of ticks, in the order of /proc/stat.
func TestBusyPercent_EqualsPsutil(t *testing.T) {
	for name, tt := range map[string]struct {
		delta []float64
		want  float64
		ok    bool
	}{
		"user":                            {[]float64{50, 0, 0, 50}, 50, true},
		"iowait is idle":                  {[]float64{50, 0, 0, 25, 25}, 50, true},
		"steal is busy":                   {[]float64{20, 0, 0, 50, 0, 0, 0, 30}, 50, true},
		"guest is part of user":           {[]float64{50, 0, 0, 50, 0, 0, 0, 0, 40}, 50, true},
		"guest_nice is part of nice":      {[]float64{0, 50, 0, 50, 0, 0, 0, 0, 0, 30}, 50, true},
		"interrupts are busy":             {[]float64{0, 0, 0, 90, 0, 4, 6}, 10, true},
		"no change":                       {[]float64{}, 0, false},
		"decreasing field counts as 0":    {[]float64{10, 0, 0, -10}, 100, true},
		"decreasing iowait hides no idle": {[]float64{10, -5, 0, 30, -20}, 25, true},
		"rounded to one decimal":          {[]float64{1, 0, 0, 2}, 33.3, true},
		"all fields decrease":             {[]float64{-10, -10, -10, -10, -10, -10, -10, -10, -10, -10}, 0, false},
		"all idle":                        {[]float64{0, 0, 0, 100}, 0, true},
		"all busy":                        {[]float64{0, 0, 100}, 100, true},
	} {
		before := []float64{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 500, 500}
		after := slices.Clone(before)
		for i, d := range tt.delta {
			after[i] += d
		}
		got, ok := busyPercent(ticks("cpu0", before...), ticks("cpu0", after...))
		check.True(t, got == tt.want && ok == tt.ok, "%s: busyPercent = %v, %v; want %v, %v", name, got, ok, tt.want, tt.ok)
	}
}

type spread struct {
	Avg, Least, Most float64
	OK               bool
}

func TestCPUSpread_MatchesCPUsByName(t *testing.T) {
	a0, a1, a2 := ticks("cpu0", 100, 0, 0, 900), ticks("cpu1", 500, 0, 0, 500), ticks("cpu2", 0, 0, 0, 1000)
	// In the window, cpu0 is 25 % busy, cpu1 75 % and cpu2 100 %.
	b0, b1, b2 := ticks("cpu0", 125, 0, 0, 975), ticks("cpu1", 575, 0, 0, 525), ticks("cpu2", 100, 0, 0, 1000)
	for name, tt := range map[string]struct {
		prev, cur []host.CPUTimes
		want      spread
	}{
		"all":                {[]host.CPUTimes{a0, a1, a2}, []host.CPUTimes{b0, b1, b2}, spread{200.0 / 3, 25, 100, true}},
		"one vanished":       {[]host.CPUTimes{a0, a1, a2}, []host.CPUTimes{b0, b2}, spread{62.5, 25, 100, true}},
		"the first vanished": {[]host.CPUTimes{a0, a1, a2}, []host.CPUTimes{b1, b2}, spread{87.5, 75, 100, true}},
		"one appeared":       {[]host.CPUTimes{a0, a2}, []host.CPUTimes{b0, b1, b2}, spread{62.5, 25, 100, true}},
		"the order changed":  {[]host.CPUTimes{a0, a1, a2}, []host.CPUTimes{b2, b0, b1}, spread{200.0 / 3, 25, 100, true}},
		"one did not move":   {[]host.CPUTimes{a0, a1}, []host.CPUTimes{a0, b1}, spread{75, 75, 75, true}},
		"one was reset":      {[]host.CPUTimes{a0, a1}, []host.CPUTimes{b0, ticks("cpu1", 1, 0, 0, 2)}, spread{25, 25, 25, true}},
		"none in common":     {[]host.CPUTimes{a0}, []host.CPUTimes{b1}, spread{}},
		"none before":        {nil, []host.CPUTimes{b0}, spread{}},
		"none moved":         {[]host.CPUTimes{a0, a1}, []host.CPUTimes{a0, a1}, spread{}},
	} {
		var got spread
		got.Avg, got.Least, got.Most, got.OK = cpuSpread(tt.prev, tt.cur)
		same(t, name+": cpuSpread", got, tt.want)
	}
}

// statAt returns a Reading of cpus at the given number of seconds.
func statAt(seconds float64, cpus ...host.CPUTimes) *host.Reading {
	return &host.Reading{At: at(time.Duration(seconds * float64(time.Second))), CPU: cpus}
}

// modesOf returns the CPU seconds, rounded to ticks because sums of seconds are not exact.
func modesOf(p *CounterState) (out [host.NumCPUModes]float64) {
	for m, v := range p.CPUSeconds() {
		out[m] = math.Round(v*100) / 100
	}
	return out
}

func TestCounterState_SumsCPUSecondsByMode(t *testing.T) {
	gap := statAt(1)
	for name, tt := range map[string]struct {
		readings []*host.Reading
		want     [host.NumCPUModes]float64 // user, nice, system, idle, iowait, irq, softirq, steal
	}{
		"each mode, over all CPUs": {[]*host.Reading{
			statAt(0, ticks("cpu0", 1000, 1, 2, 3000, 4, 5, 6, 7), ticks("cpu1", 9, 9, 9, 9, 9, 9, 9, 9)),
			statAt(9, ticks("cpu0", 1100, 3, 5, 3004, 9, 11, 13, 15), ticks("cpu1", 10, 11, 12, 13, 14, 15, 16, 17))},
			[8]float64{1.01, .04, .06, .08, .10, .12, .14, .16}},
		"guests are in user and nice": {[]*host.Reading{statAt(0, ticks("cpu0")), statAt(9, ticks("cpu0", 50, 20, 0, 0, 0, 0, 0, 0, 50, 20))},
			[8]float64{.5, .2}},
		"each reading counts once": {[]*host.Reading{statAt(0, ticks("cpu0", 10)), statAt(1, ticks("cpu0", 20)), statAt(2, ticks("cpu0", 50))}, [8]float64{.4}},
		"a reading is missing":     {[]*host.Reading{statAt(0, ticks("cpu0", 10)), gap, statAt(2, ticks("cpu0", 50))}, [8]float64{.4}},
		"the baseline is missing":  {[]*host.Reading{gap, statAt(1, ticks("cpu0", 10)), statAt(2, ticks("cpu0", 50))}, [8]float64{.4}},
		"one vanishes and returns": {[]*host.Reading{
			statAt(0, ticks("cpu0", 100), ticks("cpu1", 500)), statAt(1, ticks("cpu1", 510)),
			statAt(2, ticks("cpu1", 520), ticks("cpu0", 800)), statAt(3, ticks("cpu0", 801), ticks("cpu1", 530))}, [8]float64{.31}},
		// Time moves from iowait to idle and back: at most 0.02 s of idle time count twice.
		"time moves back and forth": {[]*host.Reading{
			statAt(0, ticks("cpu0", 0, 0, 0, 100, 50)), statAt(1, ticks("cpu0", 0, 0, 0, 200, 49)), statAt(2, ticks("cpu0", 0, 0, 0, 300, 50)),
			statAt(3, ticks("cpu0", 0, 0, 0, 400, 48)), statAt(4, ticks("cpu0", 0, 0, 0, 500, 50)), statAt(5, ticks("cpu0", 0, 0, 0, 600, 51))},
			[8]float64{3: 5, 4: .01}},
		"counters were reset":       {[]*host.Reading{statAt(0, ticks("cpu0", 90000)), statAt(1, ticks("cpu0", 7)), statAt(2, ticks("cpu0", 17))}, [8]float64{.1}},
		"a jump":                    {[]*host.Reading{statAt(0, ticks("cpu0", 10)), statAt(1, ticks("cpu0", 1e15)), statAt(2, ticks("cpu0", 1e15+20))}, [8]float64{.2}},
		"a long time is not a jump": {[]*host.Reading{statAt(0, ticks("cpu0", 10)), statAt(3600, ticks("cpu0", 350010))}, [8]float64{3500}},
	} {
		p, before := NewCounterState(tt.readings[0]), [host.NumCPUModes]float64{}
		for _, r := range tt.readings[1:] {
			earlier := p
			p, _ = p.Next(r, time.Second)
			again, _ := earlier.Next(r, time.Second)
			same(t, name+": CPU seconds of a second call of Next", modesOf(&again), modesOf(&p))
			for m, v := range modesOf(&p) {
				check.True(t, !(v < before[m]), "%s: seconds of %v fell from %v to %v", name, host.CPUMode(m), before[m], v)
			}
			before = modesOf(&p)
		}
		same(t, name+": CPU seconds", modesOf(&p), tt.want)
	}
}

func TestCounterState_CPUSecondsNeedTwoReadings(t *testing.T) {
	p := NewCounterState(statAt(0, ticks("cpu0", 10)))
	none := [host.NumCPUModes]float64(slices.Repeat([]float64{absent}, int(host.NumCPUModes)))
	same(t, "CPU seconds after the baseline", p.CPUSeconds(), none)
	p, _ = p.Next(statAt(1), time.Second)
	same(t, "CPU seconds without CPUs", p.CPUSeconds(), none)
	same(t, "CPU seconds of an empty Recording", NewRecording(at(0), time.Second, 10).CPUSeconds, none)
}
