package collector

import (
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// disksAt returns a Reading of disks at the given number of seconds.
func disksAt(seconds int, disks ...host.Device) *host.Reading {
	r := &host.Reading{At: at(time.Duration(seconds) * time.Second)}
	r.Devices[host.Disks] = disks
	return r
}

// Bytes moved while a disk is unreadable count as soon as it is readable.
func TestCounterState_StaleDeviceCountsWhenReadableAgain(t *testing.T) {
	const mib = MiB / 512
	disk := func(n uint64, class host.DeviceClass) host.Device {
		return host.Device{Name: "sda", In: n * mib, Out: n * mib, Class: host.Counted | class}
	}

	p := NewCounterState(disksAt(0, disk(10, 0)))
	p, s := p.Next(disksAt(1, disk(12, 0)), 0)
	same(t, "bytes read at first", s.Values[DiskRead], 2.)
	p, s = p.Next(disksAt(2, disk(12, host.StaleIn)), 0)
	same(t, "bytes read while the disk is unreadable", s.Values[DiskRead], 2.)
	_, s = p.Next(disksAt(3, disk(19, 0)), 0)
	same(t, "bytes read and written at the end", [2]float64{s.Values[DiskRead], s.Values[DiskWrite]}, [2]float64{9, 9})
}

func TestFullCounters_NamesFullDevices(t *testing.T) {
	r := disksAt(0, host.Device{Name: "sda", Class: host.Counted},
		host.Device{Name: "sdb", Class: host.Counted | host.StaleOut | host.SaturatedOut},
		host.Device{Name: "sdc", Class: host.Counted | host.StaleOut | host.SaturatedOut})
	same(t, "missing entries of full counters", fullCounters(r), []series.Missing{{What: "disk_io_write_mb", Code: CounterFull,
		Why: "the counter of sdb, sdc is at the end of its 32-bit range: later traffic is not counted"}})
}

func TestColumnTable_RowsAreConsistent(t *testing.T) {
	for c := range Column(MaxColumns) {
		row := c.Info()
		if row.Unit == "" || row.Kind == 0 || row.Aggregation == 0 || row.Scope == 0 || row.Label == "" || row.Digits == 0 {
			t.Errorf("%s lacks a unit, kind, aggregation, scope, label or digits: %+v", row.Key, row)
		}
		if (row.Unit == Percent) != (row.Kind == Share) {
			t.Errorf("%s: unit %q, kind %d; want unit Percent if and only if the kind is Share", row.Key, row.Unit, row.Kind)
		}
		if rate := row.Rate.Info(); row.Rate != 0 && (row.Kind != Counter || rate.Kind != Rate || rate.Source != row.Source) {
			t.Errorf("%s: kind %d, source %s; its rate %s: kind %d, source %s; want a Counter and a Rate of the same source", row.Key,
				row.Kind, row.Source, rate.Key, rate.Kind, rate.Source)
		}
		if row.devices != (deviceSelector{}) && (row.Rate == 0 || row.devices.kind.Source() != row.Source) {
			t.Errorf("%s counts devices of %s, but has rate %d and source %s", row.Key, row.devices.kind.Source(),
				row.Rate, row.Source)
		}
	}
}

// portsAt returns a Reading of RDMA ports at the given number of seconds.
func portsAt(seconds int, ports ...host.Device) *host.Reading {
	r := &host.Reading{At: at(time.Duration(seconds) * time.Second)}
	r.Devices[host.RDMAPorts] = ports
	return r
}

// The bytes of ports are unknown until the host has ports, and then count from 0. A saturated counter makes the total
// unknown if there is no other port.
func TestCounterState_RDMAPortsCountFromTheirFirstReading(t *testing.T) {
	const mib = MiB / 4
	port := func(in, out uint64, class host.DeviceClass) host.Device {
		return host.Device{Name: "mlx5_0/1", In: in * mib, Out: out * mib, Class: host.Counted | class}
	}
	values := func(s Sample) [4]float64 {
		return [4]float64{s.Values[NetIBRecv], s.Values[NetIBSent], s.Values[NetIBRecvRate], s.Values[NetIBSentRate]}
	}

	nan := math.NaN()
	p := NewCounterState(portsAt(0))
	p, s := p.Next(portsAt(1), 0)
	same(t, "bytes and rates without ports", values(s), [4]float64{nan, nan, nan, nan})
	p, s = p.Next(portsAt(2, port(1000, 2000, 0)), 0)
	same(t, "bytes and rates at first", values(s), [4]float64{0, 0, nan, nan})
	p, s = p.Next(portsAt(4, port(1008, 2002, 0)), 0)
	same(t, "bytes and rates later", values(s), [4]float64{8, 2, 4, 1})
	p, s = p.Next(portsAt(5), 0)
	same(t, "bytes and rates while the ports are missing", values(s), [4]float64{nan, nan, nan, nan})
	p, s = p.Next(portsAt(6, port(1, 2004, host.StaleIn|host.SaturatedIn)), 0)
	same(t, "bytes and rates with a full counter", values(s), [4]float64{nan, 4, nan, 1})
	_, s = p.Next(portsAt(7, port(3, 2004, 0)), 0)
	same(t, "bytes and rates after a reset", values(s), [4]float64{10, 4, 0.666667, 0})
}

// A Recording gets the columns of devices with their first values, not before.
func TestRecording_AddsColumnsWithTheirDevices(t *testing.T) {
	rec := NewRecording(at(0), time.Second, 10)
	first := rec.NumColumns()
	if first != NetIBRecv || ColumnsUpTo(CPUAvg) != first {
		t.Fatalf("a new Recording has %d columns, ColumnsUpTo(CPUAvg) = %d; want %d for both", first, ColumnsUpTo(CPUAvg), NetIBRecv)
	}

	s := &Sampler{rec: rec}
	var sample Sample
	for c := range sample.Values {
		sample.Values[c] = math.NaN()
	}
	s.ensureDeviceColumns(&sample)
	same(t, "columns without a port", rec.NumColumns(), first)
	sample.Values[NetIBSent] = 0
	s.ensureDeviceColumns(&sample)
	same(t, "columns with a port", rec.NumColumns(), NetIBSentRate+1)
	rec.Add(&sample)
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
	for want, lives := range [][]Scope{
		{}, {ScopeHost}, {ScopeHost, ScopeJob, ScopeDevice}, {ScopeHost, ScopeDevice, ScopeJob, ScopeDevice, ScopeDevice}, {ScopeDevice, ScopeHost, ScopeDevice, ScopeHost},
	} {
		rows := make([]ColumnInfo, len(lives))
		for i, since := range lives {
			rows[i].Scope = since
		}
		if got := withoutLastDevices(rows); got != want {
			t.Errorf("withoutLastDevices of scopes %v = %d, want %d", lives, got, want)
		}
	}
}
