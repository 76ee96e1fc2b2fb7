package collector

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
)

// Bytes moved while a disk is unreadable count as soon as it is readable.
func TestCounterState_StaleDeviceCountsWhenReadableAgain(t *testing.T) {
	const mib = MiB / 512
	disk := func(n uint64, class host.DeviceClass) host.Device {
		return host.Device{Name: "sda", In: n * mib, Out: n * mib, Class: host.Counted | class}
	}

	at := func(seconds float64, d host.Device) *host.Reading { return devicesAt(host.Disks, seconds, d) }
	checkSteps(t, NewCounterState(at(0, disk(10, 0))), []Column{DiskRead, DiskWrite},
		step{"at first", at(1, disk(12, 0)), []float64{2, 2}},
		step{"while the disk is unreadable", at(2, disk(12, host.StaleIn)), []float64{2, 2}},
		step{"at the end", at(3, disk(19, 0)), []float64{9, 9}})
}

func TestFullCounters_NamesFullDevices(t *testing.T) {
	const full = host.Counted | host.StaleOut | host.SaturatedOut
	r := devicesAt(host.Disks, 0, host.Device{Name: "sda", Class: host.Counted}, host.Device{Name: "sdb", Class: full},
		host.Device{Name: "sdc", Class: full})
	same(t, "missing entries of full counters", fullCounters(r), []series.Missing{{What: "disk_io_write_mb", Code: CounterFull,
		Why: "the counter of sdb, sdc is at the end of its 32-bit range: later traffic is not counted"}})
}

func TestColumnTable_RowsAreConsistent(t *testing.T) {
	for c := range Column(MaxColumns) {
		row := c.Info()
		check.True(t, row.Unit != "" && row.Kind != 0 && row.Aggregation != 0 && row.Scope != 0 && row.Label != "" && row.Digits != 0,
			"%s lacks a unit, kind, aggregation, scope, label or digits: %+v", row.Key, row)
		check.True(t, (row.Unit == Percent) == (row.Kind == Share),
			"%s: unit %q, kind %d; want unit Percent if and only if the kind is Share", row.Key, row.Unit, row.Kind)
		if rate := row.Rate.Info(); row.Rate != 0 && (row.Kind != Counter || rate.Kind != Rate || rate.Source != row.Source) {
			t.Errorf("%s: kind %d, source %s; its rate %s: kind %d, source %s; want a Counter and a Rate of the same source", row.Key,
				row.Kind, row.Source, rate.Key, rate.Kind, rate.Source)
		}
		check.True(t, row.devices == (deviceSelector{}) || row.Rate != 0 && row.devices.kind.Source() == row.Source,
			"%s counts devices of %s, but has rate %d and source %s", row.Key, row.devices.kind.Source(), row.Rate, row.Source)
	}
}

// The bytes of ports are unknown until the host has ports, and then count from 0. A saturated counter makes the total
// unknown if there is no other port.
func TestCounterState_RDMAPortsCountFromTheirFirstReading(t *testing.T) {
	const mib = MiB / 4
	port := func(in, out uint64, class host.DeviceClass) host.Device {
		return host.Device{Name: "mlx5_0/1", In: in * mib, Out: out * mib, Class: host.Counted | class}
	}
	at := func(seconds float64, ports ...host.Device) *host.Reading {
		return devicesAt(host.RDMAPorts, seconds, ports...)
	}
	n, full := absent, host.StaleIn|host.SaturatedIn
	checkSteps(t, NewCounterState(at(0)), []Column{NetIBRecv, NetIBSent, NetIBRecvRate, NetIBSentRate},
		step{"without ports", at(1), []float64{n, n, n, n}},
		step{"at first", at(2, port(1000, 2000, 0)), []float64{0, 0, n, n}},
		step{"later", at(4, port(1008, 2002, 0)), []float64{8, 2, 4, 1}},
		step{"while the ports are missing", at(5), []float64{n, n, n, n}},
		step{"with a full counter", at(6, port(1, 2004, full)), []float64{n, 4, n, 1}},
		step{"after a reset", at(7, port(3, 2004, 0)), []float64{10, 4, 0.666667, 0}})
}

// A Recording gets the columns of devices with their first values, not before.
func TestRecording_AddsColumnsWithTheirDevices(t *testing.T) {
	rec := NewRecording(at(0), time.Second, 10)
	first := rec.NumColumns()
	same(t, "columns of a new Recording, ColumnsUpTo(CPUAvg)", []Column{first, ColumnsUpTo(CPUAvg)}, []Column{NetIBRecv, NetIBRecv})
	s := &Sampler{rec: rec}
	sample := nothingBefore()
	s.ensureDeviceColumns(sample)
	same(t, "columns without a port", rec.NumColumns(), first)
	sample.Values[NetIBSent] = 0
	s.ensureDeviceColumns(sample)
	same(t, "columns with a port", rec.NumColumns(), NetIBSentRate+1)
	rec.Add(sample)
	rec.EnsureGPUColumns(2)
	same(t, "columns with GPUs", rec.NumColumns(), GPUColumn(2, 0))
	same(t, "number of values", rec.Summaries[NetIBSent].Count(), int64(1))
}

// Each Recording has all columns that do not need a device. The device columns at the end of the table take no space
// until there are devices.
func TestNumBaseColumns_ExcludesTrailingDeviceColumns(t *testing.T) {
	for c := range NumColumns {
		if c.OfDevice() != (c >= numBaseColumns()) {
			t.Errorf("%s: OfDevice = %v, but it is one of the first %d (base) columns: %v", c.Key(),
				c.OfDevice(), numBaseColumns(), c < numBaseColumns())
		}
	}
	const host, job, device = ScopeHost, ScopeJob, ScopeDevice
	for want, lives := range [][]Scope{
		{}, {host}, {host, job, device}, {host, device, job, device, device}, {device, host, device, host},
	} {
		rows := make([]ColumnInfo, len(lives))
		for i, since := range lives {
			rows[i].Scope = since
		}
		same(t, fmt.Sprintf("withoutLastDevices of scopes %v", lives), withoutLastDevices(rows), want)
	}
}

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
	held, n := energyAt(2.104, zone("0", 56.67115), zone("0:0", 30)), absent
	held.Energy.Stale = true
	first := energyAt(0.004, zone("0", 262_000), zone("0:0", 10))
	checkSteps(t, NewCounterState(energyAt(0)).WithDeferred(first), []Column{NodeEnergy, NodePower},
		step{"at first", energyAt(1.004, zone("0", 262_100), zone("0:0", 20)), []float64{110, 110}},
		// 43.32885 J to the end of the range
		step{"after a wrap", energyAt(2.004, zone("0", 56.67115), zone("0:0", 30)), []float64{220, 110}},
		step{"of a stale Reading", held, []float64{220, n}},
		step{"after a reset of the memory", energyAt(4.004, zone("0", 156.67115), zone("0:0", 5)), []float64{320, 50}},
		step{"that were not read", energyAt(5.004), []float64{n, n}},
		step{"of other packages", energyAt(6.004, zone("0:0", 25), zone("1", 9000)), []float64{340, 10}},
		step{"in another order", energyAt(7.004, zone("1", 9030), zone("0:0", 25)), []float64{370, 30}})
}

func TestCounterState_CountsThrottlesSinceFirstReading(t *testing.T) {
	reading := func(seconds int, celsius float64, throttles ...host.ThrottleCounter) *host.Reading {
		return &host.Reading{At: at(time.Duration(seconds) * time.Second), OptionalDevices: host.OptionalDevices{
			Thermal: &host.Thermal{Celsius: celsius, Throttles: throttles}}}
	}
	counter := func(name string, events, millis uint64) host.ThrottleCounter {
		return host.ThrottleCounter{Name: name, Events: events, Millis: millis, Timed: true}
	}
	pkg := func(events, millis uint64) host.ThrottleCounter { return counter("package 0", events, millis) }
	core := func(events, millis uint64) host.ThrottleCounter { return counter("core of CPU 1", events, millis) }
	n, columns := absent, []Column{CPUTemperature, CPUThrottleEvents, CPUThrottleSeconds}
	none := NewCounterState(&host.Reading{At: at(0)})
	checkSteps(t, none, columns,
		step{"without a sensor", &host.Reading{At: at(time.Second)}, []float64{n, n, n}},
		step{"with only a sensor", reading(2, 60), []float64{60, n, n}},
		step{"at first", reading(3, 70, pkg(100, 5000), core(20, 0)), []float64{70, 0, 0}},
		step{"without new counts", reading(4, 70), []float64{70, 0, 0}},
		step{"of packages only", reading(5, n, pkg(103, 5500)), []float64{n, 3, 0.5}},
		step{"of packages and cores", reading(6, 90, pkg(103, 5500), core(25, 800)), []float64{90, 8, 0.8}},
		step{"after a reset", reading(7, 90, core(1, 50), pkg(104, 5600)), []float64{90, 10, 0.85}})

	untimed := host.ThrottleCounter{Name: "package 0", Events: 1}
	checkSteps(t, none, columns, // a kernel without times
		step{"at first", reading(1, 50, untimed), []float64{50, 0, n}},
		step{"a second later", reading(2, 50, untimed), []float64{50, 0, n}})
}

// A file system mounted during the run counts from its first byte. In a Reading that skips mounts, totals do not
// change.
func TestCounterState_NewNFSMountCountsFromFirstByte(t *testing.T) {
	mount := func(name string, in, out uint64, class host.DeviceClass) host.Device {
		return host.Device{Name: name, In: in << 20, Out: out << 20, Class: host.Counted | class}
	}
	at := func(seconds float64, mounts ...host.Device) *host.Reading {
		return devicesAt(host.NFSMounts, seconds, mounts...)
	}
	held, n, added := at(1.5), absent, host.Added
	held.Skipped[host.NFSMounts] = true
	columns := []Column{NFSRead, NFSWrite, NFSReadRate, NFSWriteRate}
	checkSteps(t, NewCounterState(at(0)).WithDeferred(at(0, mount("0:45", 1000, 5000, 0))), columns,
		step{"at first", at(1, mount("0:45", 1010, 5001, 0)), []float64{10, 1, 10, 1}},
		step{"while mounts are skipped", held, []float64{10, 1, n, n}},
		step{"with another mount", at(3, mount("0:45", 1010, 5005, 0), mount("0:50", 30, 0, added)), []float64{40, 5, 15, 2}},
		// An unmount, and the first reading of an older mount.
		step{"of other mounts", at(4, mount("0:50", 40, 0, 0), mount("0:51", 700, 700, 0)), []float64{50, 5, 10, 0}},
		step{"after a remount with higher counters", at(5, mount("0:50", 50, 7, added)), []float64{100, 12, 50, 7}},
		step{"after a reset", at(6, mount("0:50", 3, 1, 0)), []float64{103, 13, 3, 1}},
		step{"without mounts", at(7), []float64{n, n, n, n}},
		step{"with a new mount", at(8, mount("0:60", 5, 5, added)), []float64{108, 18, 2.5, 2.5}})

	checkSteps(t, NewCounterState(at(0)), columns, // the first mount during the run
		step{"at first", at(1, mount("0:45", 5, 0, added)), []float64{5, 0, n, n}},
		step{"later", at(2, mount("0:45", 6, 0, 0)), []float64{6, 0, 1, 0}})
}

// rawMount returns an NFS mount as the Reader reads it.
func rawMount(id string, read uint64, ops ...host.MountOp) host.Mount {
	return host.Mount{Kind: host.NFSMounts, ID: id, Type: "nfs4", Source: "server:/" + id, Paths: []string{"/" + id},
		Read: read << 20, Unit: time.Millisecond, Ops: ops}
}

// written returns the JSON of mounts; unknown values are null.
func written(t *testing.T, list []Mount) string {
	t.Helper()
	text := check.Value(json.MarshalIndent(list, "", " "))(t)
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
	_, beyond = noteMounts(list, many(2), many(2))
	check.True(t, !beyond, "beyond = true for a mount that was not used, want false")
}

func TestColumnsUpTo_IncludesAllColumnsOfSource(t *testing.T) {
	for c, want := range map[Column]Column{
		NetIBRecv: CPUTemperature, CPUThrottleEvents: NodeEnergy, NodePower: NFSRead, NFSRead: LustreRead,
		LustreWriteRate: NumColumns, GPUColumn(0, 0): GPUColumn(1, 0),
	} {
		same(t, c.Key(), ColumnsUpTo(c), want)
	}
}
