package collector

import (
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// same compares two values. write replaces a file of a tree. must ends a test on an error.
var same, write, must = collectortest.Same, collectortest.Write, check.Must

// ticks returns the times of a CPU from the columns of /proc/stat.
func ticks(name string, n ...float64) host.CPUTimes {
	var f [10]float64
	for i, v := range n {
		f[i] = v / 100
	}
	return host.CPUTimes{Name: name, Seconds: [host.NumCPUModes]float64(f[:host.NumCPUModes]), Guest: f[8], GuestNice: f[9]}
}

// at returns the time d after an arbitrary start, on clocks that agree.
func at(d time.Duration) host.Instant {
	return host.Instant{Wall: time.Unix(1_767_225_600, 0).Add(d), Mono: time.Hour + d, Boot: time.Hour + d}
}

// fixture opens a tree of testdata as a host.
func fixture(t testing.TB, name string) *host.Reader {
	t.Helper()
	proc, sys := collectortest.Tree(t, name)
	return openTree(t, proc, sys)
}

func openTree(t testing.TB, proc, sys string) *host.Reader {
	t.Helper()
	r := host.NewReader(host.Options{Proc: proc, Sys: sys, Statfs: func(path string) (host.DiskUsage, error) {
		return host.DiskUsage{Path: path, Used: 30, Available: 70}, nil
	}})
	t.Cleanup(r.Close)
	return r
}

// summary is a summary of a column.
type summary struct {
	Count        int64
	Seconds, Max float64
}

func summaryOf(rec *Recording, c Column) summary {
	st := rec.Summaries[c].Stat()
	return summary{st.Count, st.Weight, st.Max}
}

// counted returns the names of the devices with all bits of class.
func counted(devs []host.Device, class host.DeviceClass) []string {
	names := []string{}
	for _, d := range devs {
		if d.Class&class == class {
			names = append(names, d.Name)
		}
	}
	return names
}

// devicesAt returns a Reading of devices of one kind at the given number of seconds.
func devicesAt(kind host.DeviceKind, seconds float64, devs ...host.Device) *host.Reading {
	r := &host.Reading{At: at(time.Duration(seconds * float64(time.Second)))}
	r.Devices[kind] = devs
	return r
}

// step is a Reading, and the expected values of its Sample.
type step struct {
	what string
	r    *host.Reading
	want []float64
}

// checkSteps compares the values of columns after each Reading, and checks that Next does not change the CounterState.
func checkSteps(t *testing.T, p CounterState, columns []Column, steps ...step) {
	t.Helper()
	for _, st := range steps {
		_, first := p.Next(st.r, 0)
		next, s := p.Next(st.r, 0)
		same(t, "Sample of a second call of Next", s, first)
		var got []float64
		for _, c := range columns {
			got = append(got, s.Values[c])
		}
		same(t, "values "+st.what, got, st.want)
		p = next
	}
}

// absent is the value of a column that was not measured.
var absent = math.NaN()
