package collector

import (
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/testenv"
)

// sandwich is a Reading through gopsutil between two Readings of the kernel's files.
type sandwich struct{ before, through, after *host.Reading }

// open returns the time from the first to the last Reading.
func (s *sandwich) open() time.Duration { return s.after.At.Mono - s.before.At.Mono }

// Both readers read the same host, under load: gopsutil's result must lie between the values of the kernel's files just
// before and just after.
func TestReader_BothReadersAgreeOnLiveHost(t *testing.T) {
	testenv.SkipIfShort(t, "some windows under load")
	dir := t.TempDir()
	kernel := host.NewReader(host.Options{DiskPaths: []string{dir}})
	defer kernel.Close()
	gopsutil := host.NewReader(host.Options{DiskPaths: []string{dir}, Gopsutil: true})
	defer gopsutil.Close()
	same(t, "names of the readers", []string{kernel.Name(), gopsutil.Name()}, []string{"auto", "gopsutil"})
	load(t)

	var last *sandwich
	for range 6 {
		s := &sandwich{before: kernel.Read()}
		s.through = gopsutil.Read()
		s.after = kernel.Read()
		for _, r := range []*host.Reading{s.before, s.through, s.after} {
			delete(r.Failed, host.SourceDisk) // the load may delay the disk
			if len(r.Failed) > 0 {
				t.Fatal(r.Failed)
			}
		}
		checkGauges(t, s)
		checkCounters(t, s)
		if last != nil {
			checkWindow(t, last, s)
		}
		last = s
		time.Sleep(300 * time.Millisecond) // a window
	}
}

// between checks that v lies between the kernel's two values, in either order.
func between(t *testing.T, what string, v, before, after, slack float64) {
	t.Helper()
	if !(v >= min(before, after)-slack && v <= max(before, after)+slack) {
		t.Errorf("%s: %v, want it between %v before and %v after, from the kernel's files", what, v, before, after)
	}
}

// checkGauges checks memory and disk usage, which move both ways between the three Readings.
func checkGauges(t *testing.T, s *sandwich) {
	t.Helper()
	same(t, "memory", s.through.Memory.Total, s.before.Memory.Total)
	between(t, "memory percent", s.through.Memory.Percent(), s.before.Memory.Percent(), s.after.Memory.Percent(), 0.5)
	between(t, "load", s.through.Load.Load1, s.before.Load.Load1, s.after.Load.Load1, 0)
	if s.through.Load.Running < 1 {
		t.Errorf("gopsutil counts %v running tasks, want at least 1: this test is running", s.through.Load.Running)
	}
	if d := s.through.Disk; len(d) == 1 && len(s.before.Disk) == 1 && len(s.after.Disk) == 1 {
		between(t, "disk percent", d[0].Percent(), s.before.Disk[0].Percent(), s.after.Disk[0].Percent(), 0.1)
	}
}

// checkCounters checks that gopsutil's counters lie between the kernel's. They must, because counters only grow.
// gopsutil does not list disks that were idle since boot.
func checkCounters(t *testing.T, s *sandwich) {
	t.Helper()
	for _, kind := range []host.DeviceKind{host.Disks, host.NICs} {
		names := 0
		for i, before := range s.before.Devices[kind] {
			after := findDevice(s.after.Devices[kind], before.Name, i)
			through := findDevice(s.through.Devices[kind], before.Name, i)
			if after == nil || through == nil && kind == host.Disks && before.In+before.Out == 0 {
				continue
			}
			if through == nil {
				t.Errorf("gopsutil does not list %s", before.Name)
				continue
			}
			names++
			same(t, "class of "+before.Name, through.Class, before.Class)
			between(t, before.Name+" in", float64(through.In), float64(before.In), float64(after.In), 0)
			between(t, before.Name+" out", float64(through.Out), float64(before.Out), float64(after.Out), 0)
		}
		if names == 0 {
			t.Errorf("no device of %s was compared, want at least one", kind.Source())
		}
	}

	same(t, "CPUs", len(s.through.CPU), len(s.before.CPU))
	for i, c := range s.through.CPU {
		same(t, "name", c.Name, s.before.CPU[i].Name)
		for mode, v := range c.Seconds {
			slack := 0.0
			if m := host.CPUMode(mode); m == host.ModeIdle || m == host.ModeIowait { // the kernel moves time between the two
				slack = clockTick.Seconds()
			}
			between(t, c.Name+" "+host.CPUMode(mode).String(), v, s.before.CPU[i].Seconds[mode], s.after.CPU[i].Seconds[mode], slack)
		}
	}
}

// checkWindow checks that the window between two sandwiches through gopsutil lies in the outer window of the kernel's
// files, and contains the inner one.
func checkWindow(t *testing.T, a, b *sandwich) {
	t.Helper()
	_, inside := NewCounterState(a.after).Next(b.before, 0)
	_, through := NewCounterState(a.through).Next(b.through, 0)
	_, around := NewCounterState(a.before).Next(b.after, 0)
	for _, c := range Counters() {
		if c.Info().Scope == ScopeDevice && !around.Has(c) { // the host has no such device
			continue
		}
		between(t, c.Key(), through.Values[c], inside.Values[c], around.Values[c], 0)
	}

	// The windows of a percentage differ by the duration of the sandwiches and a tick.
	window := b.through.At.Mono - a.through.At.Mono
	slack := 100*float64(a.open()+b.open()+clockTick)/float64(window) + 0.1
	for _, c := range []Column{CPUAvg, CPUMin, CPUMax} {
		if math.Abs(through.Values[c]-around.Values[c]) > slack {
			t.Errorf("%s: %v from gopsutil, %v from the kernel's files; want a difference of at most %v in a window of %v", c.Key(),
				through.Values[c], around.Values[c], slack, window)
		}
	}
	if !through.Has(CPUAvg) {
		t.Error("gopsutil's window has no CPU percentages")
	}
}
