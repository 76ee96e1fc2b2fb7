package collector

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// pair holds the results of the two readers for a column: from the kernel's files, then from gopsutil. NaN means
// missing.
type pair [2]float64

// anything is a value that the tree does not determine.
var anything = math.Inf(1)

// departures holds, for each tree, the columns in which gopsutil differs from the kernel's files. All other columns are
// equal.
var departures = map[string]map[string]pair{
	// gopsutil reads the number of running tasks from stat, at another time. Without that line, it has no load.
	"healthy":                   {"procs_running": {3, 1}},
	"damaged-stat-empty":        {"procs_running": {1, absent}, "load_1m": {0.2, absent}},
	"damaged-stat-without-cpus": {"procs_running": {1, absent}, "load_1m": {0.2, absent}},
	"damaged-stat-nonsense":     {"procs_running": {1, absent}, "load_1m": {0.2, absent}},
	"damaged-loadavg-nonsense":  {"procs_running": {absent, 1}, "load_1m": {absent, 0.2}},
	// Without the file, gopsutil returns the load of the machine that runs perfagent.
	"container": {"procs_running": {absent, 1}, "load_1m": {absent, anything}},
	// The kernel reader skips a CPU with a damaged line.
	"damaged-stat-short-line": {
		"procs_running": {1, absent}, "load_1m": {0.2, absent}, "cpu_iowait_pct": {absent, 0}, "cpu_steal_pct": {absent, 0},
		"cpu_pct_per_cpu_avg": {absent, 33.3}, "cpu_pct_per_cpu_max": {absent, 33.3}, "cpu_pct_per_cpu_min": {absent, 33.3},
	},

	// gopsutil does not notice that more memory is available than the total.
	"memavailable-above-total": {"mem_percent": {87.5, absent}, "mem_used_mb": {6835.9375, absent}},

	// gopsutil cannot distinguish an empty list from an unreadable one.
	"loopback-names": noDisks(),
	// gopsutil does not list unused devices, so their first window is lost. Without the drive, it cannot recognize that
	// the hidden path counts the same bytes.
	"quiet-disks": {
		"disk_io_read_mb": {0.15625, 0.046875}, "disk_io_read_mb_per_second": {0.15625, 0.046875},
		"disk_io_write_mb": {0.3125, 0.09375}, "disk_io_write_mb_per_second": {0.3125, 0.09375},
	},

	// gopsutil mistakes the first two lines for headings.
	"netdev-without-headings": {
		"net_io_ext_recv_mb": {2.0 / (1 << 16), absent}, "net_io_ext_recv_mb_per_second": {3.1e-05, absent},
		"net_io_ext_sent_mb": {4.0 / (1 << 16), absent}, "net_io_ext_sent_mb_per_second": {6.1e-05, absent},
		"net_io_lo_recv_mb": {1.0 / (1 << 16), absent}, "net_io_lo_recv_mb_per_second": {1.5e-05, absent},
		"net_io_lo_sent_mb": {2.0 / (1 << 16), absent}, "net_io_lo_sent_mb_per_second": {3.1e-05, absent},
	},
}

// noDisks returns the departures of a host with idle disks, for which gopsutil has no values.
func noDisks() map[string]pair {
	return map[string]pair{
		"disk_io_read_mb": {0, absent}, "disk_io_read_mb_per_second": {0, absent},
		"disk_io_write_mb": {0, absent}, "disk_io_write_mb_per_second": {0, absent},
	}
}

// Over one window of each tree, the two readers measure the same values, except for departures.
func TestReader_BothReadersAgreeOnTrees(t *testing.T) {
	trees, err := os.ReadDir(filepath.Join(collectortest.Root(t), "testdata/proc"))
	must(t, err)

	for _, tree := range trees {
		t.Run(tree.Name(), func(t *testing.T) {
			proc, sys := writableTree(t, tree.Name())
			now := at(0)
			var readers [2]*host.Reader
			var states [2]CounterState
			for i := range readers {
				readers[i] = host.NewReader(host.Options{Proc: proc, Sys: sys, Gopsutil: i == 1,
					Now: func() host.Instant { return now }, Statfs: fullDisk})
				defer readers[i].Close()
				states[i] = NewCounterState(readers[i].Read())
			}

			advance(t, proc)
			now = at(time.Second)
			var samples [2]Sample
			for i, r := range readers {
				_, samples[i] = states[i].Next(r.Read(), FirstWindow)
			}
			got, want := differences(samples), departures[tree.Name()]
			for key, v := range want {
				if v[1] == anything && !math.IsNaN(got[key][1]) {
					got[key] = pair{got[key][0], anything}
				}
			}
			same(t, "columns that differ through gopsutil", got, want)
		})
	}
}

func fullDisk(path string) (host.DiskUsage, error) {
	return host.DiskUsage{Path: path, Used: 30, Available: 70}, nil
}

// differences returns the columns in which two samples differ; nil if there are none.
func differences(s [2]Sample) map[string]pair {
	var out map[string]pair
	for c := range NumColumns {
		v := pair{absent, absent}
		for i := range s {
			if s[i].Has(c) {
				v[i] = s[i].Values[c]
			}
		}
		if v[0] != v[1] && !(math.IsNaN(v[0]) && math.IsNaN(v[1])) {
			if out == nil {
				out = make(map[string]pair)
			}
			out[c.Key()] = v
		}
	}
	return out
}

// writableTree copies a host's procfs. Trees with one damaged file get the other files from the healthy host. Trees
// that are not about the load get a loadavg that agrees with /proc/stat.
func writableTree(t *testing.T, name string) (proc, sys string) {
	t.Helper()
	from, sys := collectortest.Tree(t, name)
	proc = t.TempDir()
	if strings.HasPrefix(name, "damaged-") {
		proc, sys = collectortest.CopyOfTree(t)
	}
	if name != "container" {
		write(t, proc, "loadavg", []byte("0.20 0.18 0.12 1/80 11206\n"))
	}
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			write(t, proc, strings.TrimPrefix(path, from), data)
		}
		return err
	})
	must(t, err)
	return proc, sys
}

// advance simulates a second: it increases every counter that is read.
func advance(t *testing.T, proc string) {
	t.Helper()
	for name, columns := range map[string][]int{"stat": {1, 4}, "diskstats": {3, 5, 7, 9}, "net/dev": {1, 9}, "1/net/dev": {1, 9}} {
		data, err := os.ReadFile(filepath.Join(proc, name))
		if err != nil {
			continue
		}
		var out bytes.Buffer
		number := 0
		for line := range bytes.Lines(data) {
			number++
			counted := name == "diskstats" || bytes.HasPrefix(line, []byte("cpu")) || strings.HasSuffix(name, "dev") && bytes.ContainsRune(line, ':')
			if counted {
				line = raise(line, columns, uint64(number))
			}
			out.Write(line)
		}
		write(t, proc, name, out.Bytes())
	}
}

// raise adds a different number to each of some fields of a line, if they are counts.
func raise(line []byte, columns []int, by uint64) []byte {
	fields := strings.Fields(string(line))
	for i, column := range columns {
		if column >= len(fields) {
			continue
		}
		if n, err := strconv.ParseUint(fields[column], 10, 64); err == nil {
			fields[column] = fmt.Sprint(n + by*uint64(16*(i+1)))
		}
	}
	return []byte(strings.Join(fields, " ") + "\n")
}

// A pressure is unknown only if its own file is damaged.
func TestColumn_PressureIsAffectedByItsOwnFileOnly(t *testing.T) {
	proc, sys := collectortest.CopyOfTree(t)
	for _, file := range []string{"cpu", "memory", "io"} {
		write(t, proc, "pressure/"+file, []byte("lots\n"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec := NewSampler(openTree(t, proc, sys), Options{Interval: time.Hour}).Run(ctx)

	for c, file := range map[Column]string{PSICPUSome: "cpu", PSIMemorySome: "memory", PSIMemoryFull: "memory",
		PSIIOSome: "io", PSIIOFull: "io"} {
		var why []string
		for _, f := range rec.Failures {
			if c.AffectedBy(f) {
				why = append(why, f.Why)
			}
		}
		if len(why) != 1 || !strings.Contains(why[0], filepath.Join(proc, "pressure", file)) {
			t.Errorf("%s is affected by failures %q, want one that names pressure/%s", c.Key(), why, file)
		}
	}
}

// A stall that is unknown in one Reading keeps its earlier value.
func TestAccountTracker_KeepsStallsMissingFromOneReading(t *testing.T) {
	reading := func(seconds int, memory float64) *host.Reading {
		p := &cgroup.Pressure{CPU: cgroup.Stall{Some: float64(seconds), Full: absent},
			Memory: cgroup.Stall{Some: memory, Full: memory}, IO: cgroup.Stall{Some: absent, Full: absent}}
		return &host.Reading{At: at(time.Duration(seconds) * time.Second), Pressure: p}
	}
	l, a := newAccountTracker(reading(0, 10), host.JobOptions{}), NoAccount()
	l, a = l.next(a, reading(1, 12), trackerInput{})
	_, a = l.next(a, reading(2, absent), trackerInput{})
	stall := &a.HostStall
	got := []float64{float64(stall.CPUSome), float64(stall.MemoryFull), float64(stall.IOFull)}
	same(t, "stalls", got, []float64{2, 2, absent})
}
