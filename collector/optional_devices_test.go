package collector

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// energyAt returns a Reading of zones at the given number of seconds.
func energyAt(seconds float64, zones ...host.EnergyZone) *host.Reading {
	d := time.Duration(seconds * float64(time.Second))
	r := &host.Reading{At: at(d)}
	if zones != nil {
		r.Energy = &host.Energy{At: at(d).Mono, Zones: zones}
	}
	return r
}

// The counter of a package wraps at the end of its range. If a wrap would mean more power than a package can draw, the
// counter was reset instead.
func TestCounterState_EnergySurvivesWrapsAndResets(t *testing.T) {
	const span = 262_143_328_850
	zone := func(name string, joules float64) host.EnergyZone {
		return host.EnergyZone{Name: name, MicroJoules: uint64(joules * 1e6), Range: span}
	}
	values := func(s Sample) [2]float64 { return [2]float64{s.Values[NodeEnergy], s.Values[NodePower]} }

	p := NewCounterState(energyAt(0)).WithDeferred(energyAt(0.004, zone("0", 262_000), zone("0:0", 10)))
	p, s := p.Next(energyAt(1.004, zone("0", 262_100), zone("0:0", 20)), 0)
	same(t, "energy and power at first", values(s), [2]float64{110, 110})
	p, s = p.Next(energyAt(2.004, zone("0", 56.67115), zone("0:0", 30)), 0) // 43.32885 J to the end of the range
	same(t, "energy and power after a wrap", values(s), [2]float64{220, 110})

	held := energyAt(2.104, zone("0", 56.67115), zone("0:0", 30))
	held.Energy.Stale = true
	p, s = p.Next(held, 0)
	same(t, "energy and power of a stale Reading", values(s), [2]float64{220, math.NaN()})

	p, s = p.Next(energyAt(4.004, zone("0", 156.67115), zone("0:0", 5)), 0) // the memory's counter was reset
	same(t, "energy and power after a reset", values(s), [2]float64{320, 50})
	p, s = p.Next(energyAt(5.004), 0)
	same(t, "energy and power that were not read", values(s), [2]float64{math.NaN(), math.NaN()})
	p, s = p.Next(energyAt(6.004, zone("0:0", 25), zone("1", 9000)), 0)
	same(t, "energy and power after one package disappeared and another appeared", values(s), [2]float64{340, 10})
	_, s = p.Next(energyAt(7.004, zone("1", 9030), zone("0:0", 25)), 0)
	same(t, "energy and power of zones in another order", values(s), [2]float64{370, 30})
}

func TestCounterState_CountsThrottlesSinceFirstReading(t *testing.T) {
	reading := func(seconds int, celsius float64, throttles ...host.ThrottleCounter) *host.Reading {
		return &host.Reading{At: at(time.Duration(seconds) * time.Second), OptionalDevices: host.OptionalDevices{
			Thermal: &host.Thermal{Celsius: celsius, Throttles: throttles}}}
	}
	values := func(s Sample) [3]float64 {
		return [3]float64{s.Values[CPUTemperature], s.Values[CPUThrottleEvents], s.Values[CPUThrottleSeconds]}
	}
	pkg := func(events, millis uint64) host.ThrottleCounter {
		return host.ThrottleCounter{Name: "package 0", Events: events, Millis: millis, Timed: true}
	}
	core := func(events, millis uint64) host.ThrottleCounter {
		return host.ThrottleCounter{Name: "core of CPU 1", Events: events, Millis: millis, Timed: true}
	}
	nan := math.NaN()

	p := NewCounterState(&host.Reading{At: at(0)})
	p, s := p.Next(&host.Reading{At: at(time.Second)}, 0)
	same(t, "temperature, throttle events and seconds without a sensor", values(s), [3]float64{nan, nan, nan})
	p, s = p.Next(reading(2, 60), 0)
	same(t, "temperature, throttle events and seconds with only a sensor", values(s), [3]float64{60, nan, nan})
	p, s = p.Next(reading(3, 70, pkg(100, 5000), core(20, 0)), 0)
	same(t, "temperature, throttle events and seconds at first", values(s), [3]float64{70, 0, 0})
	p, s = p.Next(reading(4, 70), 0)
	same(t, "temperature, throttle events and seconds without new counts", values(s), [3]float64{70, 0, 0})
	p, s = p.Next(reading(5, nan, pkg(103, 5500)), 0)
	same(t, "temperature, throttle events and seconds of packages only", values(s), [3]float64{nan, 3, 0.5})
	p, s = p.Next(reading(6, 90, pkg(103, 5500), core(25, 800)), 0)
	same(t, "temperature, throttle events and seconds of packages and cores", values(s), [3]float64{90, 8, 0.8})
	_, s = p.Next(reading(7, 90, core(1, 50), pkg(104, 5600)), 0)
	same(t, "temperature, throttle events and seconds after a counter was reset", values(s), [3]float64{90, 10, 0.85})

	untimed := host.ThrottleCounter{Name: "package 0", Events: 1}
	p, _ = NewCounterState(&host.Reading{At: at(0)}).Next(reading(1, 50, untimed), 0)
	_, s = p.Next(reading(2, 50, untimed), 0)
	same(t, "temperature, throttle events and seconds on a kernel without times", values(s), [3]float64{50, 0, nan})
}

// mountsAt returns a Reading of NFS mounts at the given number of seconds.
func mountsAt(seconds float64, devs ...host.Device) *host.Reading {
	r := &host.Reading{At: at(time.Duration(seconds * float64(time.Second)))}
	r.Devices[host.NFSMounts] = devs
	return r
}

// A file system mounted during the run counts from its first byte. In a Reading that skips mounts, totals do not
// change.
func TestCounterState_NewNFSMountCountsFromFirstByte(t *testing.T) {
	mount := func(name string, in, out uint64, class host.DeviceClass) host.Device {
		return host.Device{Name: name, In: in << 20, Out: out << 20, Class: host.Counted | class}
	}
	values := func(s Sample) [4]float64 {
		return [4]float64{s.Values[NFSRead], s.Values[NFSWrite], s.Values[NFSReadRate], s.Values[NFSWriteRate]}
	}
	nan := math.NaN()

	p := NewCounterState(mountsAt(0)).WithDeferred(mountsAt(0, mount("0:45", 1000, 5000, 0)))
	p, s := p.Next(mountsAt(1, mount("0:45", 1010, 5001, 0)), 0)
	same(t, "bytes and rates at first", values(s), [4]float64{10, 1, 10, 1})
	held := mountsAt(1.5)
	held.Skipped[host.NFSMounts] = true
	p, s = p.Next(held, 0)
	same(t, "bytes and rates of a Reading that skips mounts", values(s), [4]float64{10, 1, nan, nan})
	p, s = p.Next(mountsAt(3, mount("0:45", 1010, 5005, 0), mount("0:50", 30, 0, host.Added)), 0)
	same(t, "bytes and rates with another mount", values(s), [4]float64{40, 5, 15, 2})
	p, s = p.Next(mountsAt(4, mount("0:50", 40, 0, 0), mount("0:51", 700, 700, 0)), 0)
	same(t, "bytes and rates after an unmount and the first reading of an older mount", values(s), [4]float64{50, 5, 10, 0})
	p, s = p.Next(mountsAt(5, mount("0:50", 50, 7, host.Added)), 0)
	same(t, "bytes and rates after a remount with higher counters", values(s), [4]float64{100, 12, 50, 7})
	p, s = p.Next(mountsAt(6, mount("0:50", 3, 1, 0)), 0)
	same(t, "bytes and rates after counters were reset", values(s), [4]float64{103, 13, 3, 1})
	p, s = p.Next(mountsAt(7), 0)
	same(t, "bytes and rates without mounts", values(s), [4]float64{nan, nan, nan, nan})
	_, s = p.Next(mountsAt(8, mount("0:60", 5, 5, host.Added)), 0)
	same(t, "bytes read and written with a new mount", [2]float64{s.Values[NFSRead], s.Values[NFSWrite]}, [2]float64{108, 18})
}

func TestCounterState_FirstMountDuringRunCountsFromZero(t *testing.T) {
	p := NewCounterState(mountsAt(0))
	p, s := p.Next(mountsAt(1, host.Device{Name: "0:45", In: 5 << 20, Class: host.Counted | host.Added}), 0)
	same(t, "bytes read at first", s.Values[NFSRead], 5.)
	_, s = p.Next(mountsAt(2, host.Device{Name: "0:45", In: 6 << 20, Class: host.Counted}), 0)
	same(t, "bytes and rate later", []float64{s.Values[NFSRead], s.Values[NFSReadRate]}, []float64{6, 1})
}

// rawMount returns an NFS mount as the Reader reads it.
func rawMount(id string, read uint64, ops ...host.MountOp) host.Mount {
	return host.Mount{Kind: host.NFSMounts, ID: id, Type: "nfs4", Source: "server:/" + id, Paths: []string{"/" + id},
		Read: read << 20, Unit: time.Millisecond, Ops: ops}
}

// written returns the JSON of mounts; unknown values are null.
func written(t *testing.T, list []Mount) string {
	t.Helper()
	text, err := json.MarshalIndent(list, "", " ")
	must(t, err)
	return string(text)
}

func TestNoteMounts_ListsUsedMountsWithIncreases(t *testing.T) {
	var list []Mount
	var before []host.Mount
	take := func(now ...host.Mount) []Mount {
		list, _ = noteMounts(list, before, now)
		before = keptMounts(before, now)
		return list
	}
	get := func(calls, sent, timeouts, queue, rtt, execute uint64) host.MountOp {
		return host.MountOp{Name: "GETATTR", Calls: calls, Sent: sent, Timeouts: timeouts, Queue: queue, RTT: rtt, Execute: execute}
	}
	const below = math.MaxUint64 - 999 // a queue time of −1 s

	same(t, "mounts at first", take(rawMount("a", 100, get(10, 12, 1, 1000, 2000, 3000)), rawMount("b", 7)), []Mount(nil))
	same(t, "mounts that were not used", take(rawMount("a", 100, get(10, 12, 1, 1000, 2000, 3000)), rawMount("b", 7)), []Mount(nil))

	op := MountOp{"GETATTR", 10, 2, 1, 0.5, 1.5, 2.5}
	all := op
	all.Name = ""
	a := Mount{ID: "a", Type: "nfs4", Source: "server:/a", Paths: []string{"/a"}, ReadMB: 5, Total: all, Ops: []MountOp{op}}
	same(t, "mounts that were used", take(rawMount("b", 7), rawMount("a", 105, get(20, 24, 2, 1500, 3500, 5500))), []Mount{a})

	// The queue's time fell by 2.5 s, which does not count. There is a new operation and a new Lustre mount.
	llite := host.Mount{Kind: host.LustreMounts, ID: "scratch-1", Type: "lustre", Source: "scratch", Unit: time.Microsecond, Added: true,
		Written: 3 << 20, Ops: []host.MountOp{{Name: "open", Calls: 4, Execute: 2_500_000}}}
	take(rawMount("a", 105, host.MountOp{Name: "READ", Calls: 1, Sent: 1, Execute: 40}, get(21, 25, 2, below, 3600, 5600)), llite)
	u := series.Unknown()
	a.Ops = []MountOp{{"GETATTR", 11, 2, 1, 0.5, 1.6, 2.6}, {"READ", 1, 0, 0, 0, 0, 0.04}}
	a.Total = MountOp{"", 12, 2, 1, 0.5, 1.6, 2.64}
	lustre := Mount{ID: "scratch-1", Type: "lustre", Source: "scratch", WriteMB: 3, Total: MountOp{"", 4, u, u, u, u, 2.5},
		Ops: []MountOp{{"open", 4, u, u, u, u, 2.5}}}
	same(t, "mounts later", written(t, list), written(t, []Mount{a, lustre}))
	same(t, "slowest operation", a.Slowest()[0].Name, "GETATTR")

	// A Reading of one kind does not change the mounts of the other kind. Counters that were reset count from 0.
	llite.Added, llite.Written, llite.Ops = false, 1<<20, []host.MountOp{{Name: "open", Calls: 5, Execute: 2_500_000}}
	take(llite)
	lustre.WriteMB, lustre.Total.Calls, lustre.Ops[0].Calls = 4, 5, 5
	take(rawMount("a", 107, host.MountOp{Name: "READ", Calls: 1, Sent: 1, Execute: 40}, get(2, 2, 0, 0, 7, 9)))
	a.ReadMB, a.Ops[0].Calls, a.Total.Calls = 7, 13, 14
	a.Ops[0].RTT, a.Ops[0].Execute, a.Total.RTT, a.Total.Execute = 1.607, 2.609, 1.607, 2.649
	same(t, "mounts after a reset", written(t, list), written(t, []Mount{a, lustre}))
}

func TestNoteMounts_ListsAtMostMaxMounts(t *testing.T) {
	many := func(read uint64) (out []host.Mount) {
		for i := range MaxMounts + 1 {
			out = append(out, rawMount(string(rune('A'+i)), read))
		}
		return out
	}
	list, beyond := noteMounts(nil, many(1), many(2))
	same(t, "number of listed mounts", len(list), MaxMounts)
	same(t, "beyond with too many mounts", beyond, true)
	if _, beyond = noteMounts(list, many(2), many(2)); beyond {
		t.Error("beyond = true for a mount that was not used, want false")
	}
}

func TestColumnsUpTo_IncludesAllColumnsOfSource(t *testing.T) {
	for c, want := range map[Column]Column{
		NetIBRecv: CPUTemperature, CPUThrottleEvents: NodeEnergy, NodePower: NFSRead, NFSRead: LustreRead,
		LustreWriteRate: NumColumns, GPUColumn(0, 0): GPUColumn(1, 0),
	} {
		same(t, c.Key(), ColumnsUpTo(c), want)
	}
}
