package collector

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/collectortest"
)

var updateSequence = flag.Bool("update", false, "write the golden files anew")

// sequence is a host that changes from one Reading to the next, with a group that holds a job.
type sequence struct {
	t         *testing.T
	proc      string
	group     string
	mono      time.Duration
	step      time.Duration // of the wall clock
	suspended time.Duration
	samples   []Sample
}

func (q *sequence) now() host.Instant {
	wall := time.Unix(1_767_225_600, 0).Add(q.mono + q.step + q.suspended)
	return host.Instant{Wall: wall, Mono: time.Hour + q.mono, Boot: time.Hour + q.mono + q.suspended}
}

// statfs returns a file system that fills up.
func (q *sequence) statfs(path string) (host.DiskUsage, error) {
	used := uint64(q.mono / time.Microsecond)
	return host.DiskUsage{Path: path, Used: used, Available: 1<<30 - used}, nil
}

// sequenceJob returns the control group of the job.
func (q *sequence) sequenceJob() host.JobOptions {
	root := q.t.TempDir()
	q.group = filepath.Join(root, "sys/fs/cgroup/job")
	for name, text := range map[string]string{
		"proc/42/cgroup":                  "0::/job\n",
		"proc/42/mountinfo":               "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/cgroup.procs":      "1\n",
		"sys/fs/cgroup/job/cgroup.procs":  "7\n8\n",
		"sys/fs/cgroup/job/cgroup.events": "populated 1\n",
		"sys/fs/cgroup/job/cpu.max":       "150000 100000\n",
		"sys/fs/cgroup/job/memory.max":    "1073741824\n",
	} {
		write(q.t, root, name, []byte(text))
	}
	q.put(0)

	group, err := cgroup.Find(cgroup.Options{Proc: root + "/proc", Sys: root + "/sys", PID: 42})
	must(q.t, err)
	return host.JobOptions{Source: host.JobFromCreated, Group: group, PID: 1}
}

// put writes the kernel's counters at step n. Some counters are reset, and some files and devices are missing for a
// while.
func (q *sequence) put(n int) {
	count := func(each int) int { return 1000 + each*n*(n+3)/2 }
	again := func(at, each int) int { return count(each) - min(n/at, 1)*count(each)*9/10 } // a reset at step at
	swapped := func(each int) int { return each * n * (64 << 10) / os.Getpagesize() }      // pages of any size
	cpus := fmt.Sprintf("cpu 0\ncpu0 %d 20 %d %d 80 0 6 4 0 0\n", count(7)+9*(n%3), count(3), count(11)+5*(n%4))
	nics := fmt.Sprintf("a|b\nc|d\n lo: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n", count(70_000), count(70_000))
	disks := fmt.Sprintf(" 8 0 vda %d 0 %d 9 %d 0 %d 9 0 9 9\n", count(3), count(800), count(5), again(8, 9_000))
	if n != 5 && n != 6 {
		cpus += fmt.Sprintf("cpu1 %d 0 %d %d 40 1 9 0 %d 0\n", count(2), count(4), count(17), count(1))
		nics += fmt.Sprintf(" eth0: %d 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\n", again(9, 3<<20), count(1<<19))
	}
	stall := func(each int) string {
		const line = "%s avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"
		return fmt.Sprintf(line+line, "some", count(each), "full", count(each/2))
	}

	for name, text := range map[string]string{
		"stat": cpus, "net/dev": nics, "diskstats": disks,
		"meminfo":      fmt.Sprintf("MemTotal: 8000000 kB\nMemAvailable: %d kB\n", 6_000_000-count(30_000)),
		"vmstat":       fmt.Sprintf("nr_free_pages 1\npswpin %d\npswpout %d\npgmajfault %d\noom_kill 2\n", swapped(5), swapped(n), 3*n),
		"loadavg":      fmt.Sprintf("%d.25 0.18 0.12 %d/80 11206\n", n%4, 1+n%3),
		"pressure/cpu": stall(40_000), "pressure/memory": stall(9_000), "pressure/io": stall(20_000),
	} {
		if n == 10 && (name == "vmstat" || name == "meminfo" || name == "stat") {
			text = "nothing of use\n"
		}
		write(q.t, q.proc, name, []byte(text))
	}
	cpu, memory := count(9_000), count(3<<20)
	for name, text := range map[string]string{
		"cpu.stat": fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\n",
			cpu, count(4), count(1), count(3_000)),
		"memory.current": fmt.Sprintln(memory), "memory.peak": fmt.Sprintln(memory + 4096),
		"pids.current":  fmt.Sprintln(2 + n%5),
		"memory.events": fmt.Sprintf("max %d\noom 0\noom_kill 0\n", n),
		"memory.stat": fmt.Sprintf("anon %d\nfile %d\nshmem 0\nactive_file %d\ninactive_file %d\n",
			memory/2, memory/3, memory/8, memory/9),
		"io.stat":      fmt.Sprintf("8:0 rbytes=%d wbytes=%d rios=1 wios=2 dbytes=0 dios=0\n", count(50_000), count(90_000)),
		"cpu.pressure": stall(30_000), "memory.pressure": stall(5_000), "io.pressure": stall(10_000),
	} {
		write(q.t, q.group, name, []byte(text))
	}
}

// run takes a sample after each change.
func (q *sequence) run() *Recording {
	sys := filepath.Join(collectortest.Root(q.t), "testdata", "sys", "healthy")
	reader := host.NewReader(host.Options{Proc: q.proc, Sys: sys, Now: q.now, Statfs: q.statfs, Job: q.sequenceJob()})
	s := NewSampler(reader, Options{Interval: 100 * time.Millisecond, MaxLength: 4,
		Observe: func(sample *Sample, _ *Recording) { q.samples = append(q.samples, *sample) }})
	s.completeBaseline()
	for n, after := range []int{100, 100, 20, 180, 100, 100, 100, 1000, 100, 100, 30_000, 100, 70} { // ms
		q.mono += time.Duration(after) * time.Millisecond
		switch n + 1 {
		case 4:
			q.step += 3 * time.Second
		case 12:
			q.suspended += 5 * time.Second
		}
		q.put(n + 1)
		s.takeSample(false)
	}

	ended, cancel := context.WithCancel(q.t.Context())
	cancel()
	return s.Run(ended) // the closing Reading
}

// table has a line for each measured column: the samples, then the results in the Recording.
func (q *sequence) table(rec *Recording) string {
	number := func(v float64) string {
		if math.IsNaN(v) {
			return "-"
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	var b strings.Builder
	for c := Column(0); c < rec.NumColumns(); c++ {
		st := rec.Summaries[c].Stat()
		if st.Count == 0 {
			continue
		}
		b.WriteString(c.Key())
		for _, s := range q.samples {
			b.WriteString(" " + number(s.Values[c]))
		}
		fmt.Fprintf(&b, " | %d in %s s: %s to %s, mean %s\n",
			st.Count, number(st.Weight), number(st.Min), number(st.Max), number(st.Mean()))
	}

	a := rec.Account
	b.WriteString("account")
	for _, v := range []series.Optional{a.CPUSeconds, a.PeakMB, a.Periods, a.ThrottledPeriods, a.ThrottledSeconds,
		a.LimitReachedPct, series.Optional(a.LimitCPUSeconds)} {
		b.WriteString(" " + number(float64(v)))
	}
	fmt.Fprintln(&b, "", rec.ClockEvents)
	return b.String()
}

// The golden file holds the numbers of an earlier version for a host with growing, reset and missing counters. Update
// it only for new columns.
func TestSampler_NumbersEqualPreviousVersion(t *testing.T) {
	proc, _ := collectortest.CopyOfTree(t)
	q := &sequence{t: t, proc: proc}
	got := q.table(q.run())

	const name = "testdata/sequence.golden"
	if *updateSequence {
		write(t, ".", name, []byte(got))
	}
	want, err := os.ReadFile(name)
	must(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("numbers differ from the previous version (-previous +now):\n%s", diff)
	}
}
