package host

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// same compares two values. write replaces a file of a tree. must ends a test on an error.
var same, write, must = collectortest.Same, collectortest.Write, check.Must

// nan is an unknown number.
var nan = math.NaN()

// cpuTicks makes CPUTimes from the columns of /proc/stat.
func cpuTicks(name string, n ...float64) CPUTimes {
	var f [NumCPUModes + 2]float64
	for i, v := range n {
		f[i] = v / 100
	}
	return CPUTimes{name, [NumCPUModes]float64(f[:NumCPUModes]), f[NumCPUModes], f[NumCPUModes+1]}
}

// instant returns the moment d after an arbitrary start, on clocks that agree.
func instant(d time.Duration) Instant {
	return Instant{Wall: time.Unix(1_767_225_600, 0).Add(d), Mono: time.Hour + d, Boot: time.Hour + d}
}

// openFixture opens a tree of testdata as a separate host.
func openFixture(t testing.TB, name string) *Reader {
	t.Helper()
	proc, sys := collectortest.Tree(t, name)
	return openHost(t, proc, sys)
}

func openHost(t testing.TB, proc, sys string) *Reader {
	t.Helper()
	r := NewReader(Options{Proc: proc, Sys: sys, DiskPaths: []string{t.TempDir()}, Now: eachSecond()})
	r.disks.timeout = time.Minute // these file systems respond, even on a busy machine
	t.Cleanup(r.Close)
	return r
}

// openJob opens a Reader of only a job, with now as its monotonic clock.
func openJob(t *testing.T, job JobOptions, now *time.Duration) *Reader {
	t.Helper()
	r := NewReader(Options{Job: job, JobOnly: true, Now: func() Instant { return Instant{Mono: *now} }})
	t.Cleanup(r.Close)
	return r
}

// eachSecond returns a clock that advances by a second per call, so that every source is due in each Reading.
func eachSecond() func() Instant {
	now := Now()
	return func() Instant {
		now.Mono, now.Boot, now.Wall = now.Mono+time.Second, now.Boot+time.Second, now.Wall.Add(time.Second)
		return now
	}
}

// wantError fails the test unless err contains all words.
func wantError(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		check.True(t, err != nil && strings.Contains(err.Error(), word), "failure of %s = %v, want one that contains %q", what, err, word)
	}
}

// namesOf returns the names of the devices with all bits of class.
func namesOf(devs []Device, class DeviceClass) []string {
	names := []string{}
	for _, d := range devs {
		if d.Class&class == class {
			names = append(names, d.Name)
		}
	}
	return names
}

// failedOf returns the failures of the sources that every tree has.
func failedOf(r *Reading) map[string]error {
	failed := maps.Clone(r.Failed)
	for _, source := range []string{SourceLoad, SourceSwap, SourcePressure} {
		delete(failed, source)
	}
	return failed
}
