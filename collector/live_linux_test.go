package collector

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// snap is a line of scripts/psutil_windows.py.
type snap struct {
	CPUTimes   [][]float64 `json:"cpu_times"`
	CPUPercent []float64   `json:"cpu_percent"`
	Memory     struct{ Total, Available, Percent float64 }
	Disk       struct{ Used, Free, Percent float64 }
	Disks      map[string]struct{ Read, Write uint64 }
	NICs       map[string]struct{ Sent, Recv uint64 }
}

// snapper is a child that reads the host through psutil on request.
type snapper struct {
	t    *testing.T
	to   io.Writer
	from *bufio.Scanner
}

func newSnapper(t *testing.T, path string) *snapper {
	cmd := exec.Command(collectortest.Python(t), filepath.Join(collectortest.Root(t), "scripts/psutil_windows.py"), path)
	cmd.Stderr = os.Stderr
	to := check.Value(cmd.StdinPipe())(t)
	from := check.Value(cmd.StdoutPipe())(t)
	must(t, cmd.Start())

	t.Cleanup(func() {
		to.Close()
		must(t, cmd.Wait())
	})

	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	return &snapper{t, to, lines}
}

func (s *snapper) snap() *snap {
	s.t.Helper()
	var out snap
	check.Value(io.WriteString(s.to, "snap\n"))(s.t)
	if !s.from.Scan() {
		s.t.Fatal("psutil_windows.py ended: ", s.from.Err())
	}
	must(s.t, json.Unmarshal(s.from.Bytes(), &out))
	return &out
}

// bracket is a Reading of perfagent between two readings of psutil.
type bracket struct {
	before, after *snap
	ours          *host.Reading
}

// load keeps a CPU, the disk and the loopback interface busy until the test ends.
func load(t *testing.T) {
	stop := make(chan struct{})
	var workers sync.WaitGroup
	listener := check.Value(net.Listen("tcp", "127.0.0.1:0"))(t)

	go func() { // returns when the connection is closed
		conn, err := listener.Accept()
		if err == nil {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()

	conn := check.Value(net.Dial("tcp", listener.Addr().String()))(t)
	file := check.Value(os.Create(filepath.Join(t.TempDir(), "data")))(t)
	block := make([]byte, 1<<18)
	work := func(step func()) {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					step()
				}
			}
		})
	}

	pace := time.NewTicker(time.Millisecond)
	sink := 0.0
	work(func() {
		for range 1000 {
			sink = math.Sqrt(sink + 1)
		}
	})

	work(func() {
		_, err := conn.Write(block[:4096])
		check.True(t, err == nil, "write to the connection: %v", err)
		<-pace.C
	})

	work(func() {
		_, err := file.WriteAt(block, 0)
		err = errors.Join(err, file.Sync())
		check.True(t, err == nil, "write to the file: %v", err)
	})

	t.Cleanup(func() {
		close(stop)
		workers.Wait()
		pace.Stop()
		conn.Close()
		listener.Close()
		file.Close()
	})
}

// psutil and perfagent read the same host, under load. perfagent's result must lie between psutil's results before and
// after it, and equal them if they are equal.
func TestReader_LiveHostAgreesWithPsutil(t *testing.T) {
	testenv.SkipIfShort(t, "several seconds")
	dir := t.TempDir()
	psutil := newSnapper(t, dir)
	r := host.NewReader(host.Options{DiskPaths: []string{dir}})
	defer r.Close()
	load(t)
	kinds := []string{"memory", "disk", "disk bytes", "network bytes", "disk delta", "network delta", "cpu times"}
	shut := map[string]int{} // number of exact comparisons
	var brackets []bracket
	moved := 0 // brackets in which other programs' memory came and went
	// With other load on the CPUs, psutil's two results are rarely equal: repeat until each kind was compared exactly.
	for begin := time.Now(); len(brackets) < 12 || time.Since(begin) < time.Minute &&
		slices.ContainsFunc(kinds, func(what string) bool { return shut[what] == 0 }); {
		next := bracket{before: psutil.snap(), ours: r.Read(), after: psutil.snap()}
		if next.ours.Failed[host.SourceDisk] != nil {
			continue // the load delayed the disk
		}
		if moved < 10 && !lies(next.ours.Memory.Percent(), next.before.Memory.Percent, next.after.Memory.Percent, 0.5) {
			moved++
			continue
		}
		brackets = append(brackets, next)
		i := len(brackets) - 1
		b := &brackets[i]
		if len(b.ours.Failed) > 0 {
			t.Fatal(b.ours.Failed)
		}
		compareGauges(t, b, shut)
		compareDevices(t, b, shut)
		if i > 0 {
			compareDeltas(t, &brackets[i-1], b, shut)
			comparePercents(t, &brackets[i-1], b, shut)
		}
		// Not a ticker: after a slow bracket, it would leave no window before the next one.
		time.Sleep(300 * time.Millisecond)
	}

	_, s := NewCounterState(brackets[0].ours).Next(brackets[len(brackets)-1].ours, 0)
	if s.Values[NetLoSent] == 0 || s.Values[CPUMax] == 0 {
		t.Errorf("sent %v MiB on loopback, busiest CPU %v %%; want both above 0: the test generates load", s.Values[NetLoSent],
			s.Values[CPUMax])
	}
	t.Logf("equal to the digit: %v", shut)
	for _, what := range kinds {
		check.True(t, shut[what] != 0, "no comparison of %s was exact in %d brackets", what, len(brackets))
	}
}

// lies reports whether v lies between before and after, in either order.
func lies(v, before, after, slack float64) bool {
	return v >= min(before, after)-slack && v <= max(before, after)+slack
}

// within checks that v lies between psutil's two results, in either order. It counts exact comparisons.
func within(t *testing.T, what, name string, v, before, after, slack float64, shut map[string]int) {
	t.Helper()
	check.True(t, lies(v, before, after, slack),
		"%s %s: %v, want it between psutil's %v before and %v after", what, name, v, before, after)
	if before == after && v == before {
		shut[what]++
	}
}

// compareGauges compares gauges: memory moves both ways between the three readings, by some MiB.
func compareGauges(t *testing.T, b *bracket, shut map[string]int) {
	m := b.ours.Memory
	within(t, "memory total", "", float64(m.Total), b.before.Memory.Total, b.before.Memory.Total, 0, shut)
	within(t, "memory", "", m.Percent(), b.before.Memory.Percent, b.after.Memory.Percent, 0.5, shut)
	d := b.ours.Disk[0]
	within(t, "disk", "", d.Percent(), b.before.Disk.Percent, b.after.Disk.Percent, 0.1, shut)
}

// compareDevices compares counters. They only grow, so perfagent's must lie between psutil's.
func compareDevices(t *testing.T, b *bracket, shut map[string]int) {
	if len(b.ours.Devices[host.Disks]) != len(b.before.Disks) || len(b.ours.Devices[host.NICs]) != len(b.before.NICs) {
		t.Errorf("%d disks and %d interfaces, want psutil's %d and %d", len(b.ours.Devices[host.Disks]),
			len(b.ours.Devices[host.NICs]), len(b.before.Disks), len(b.before.NICs))
	}

	for _, d := range b.ours.Devices[host.Disks] {
		before, after := b.before.Disks[d.Name], b.after.Disks[d.Name]
		within(t, "disk bytes", d.Name, float64(d.In*host.Disks.Unit()), float64(before.Read), float64(after.Read), 0, shut)
		within(t, "disk bytes", d.Name, float64(d.Out*host.Disks.Unit()), float64(before.Write), float64(after.Write), 0, shut)
	}

	for _, d := range b.ours.Devices[host.NICs] {
		before, after := b.before.NICs[d.Name], b.after.NICs[d.Name]
		within(t, "network bytes", d.Name, float64(d.In), float64(before.Recv), float64(after.Recv), 0, shut)
		within(t, "network bytes", d.Name, float64(d.Out), float64(before.Sent), float64(after.Sent), 0, shut)
	}

	for i, c := range b.ours.CPU {
		before, after := b.before.CPUTimes[i], b.after.CPUTimes[i]
		for f, v := range append(c.Seconds[:], c.Guest, c.GuestNice) {
			slack := 0.0
			if f == 3 || f == 4 { // the kernel moves time from iowait to idle and back
				slack = clockTick.Seconds()
			}
			within(t, "cpu times", fmt.Sprint(c.Name, " field ", f), v, before[f], after[f], slack, shut)
		}
	}
}

// compareDeltas checks that the bytes of a window are the differences of the kernel's counters, summed over the counted
// devices.
func compareDeltas(t *testing.T, a, b *bracket, shut map[string]int) {
	_, s := NewCounterState(a.ours).Next(b.ours, 0)
	for _, c := range deviceCounters {
		if c.kind != host.Disks && c.kind != host.NICs {
			continue // psutil has no others
		}
		what, devs := "disk delta", b.ours.Devices[host.Disks]
		if c.kind == host.NICs {
			what, devs = "network delta", b.ours.Devices[host.NICs]
		}
		counter := func(s *snap, name string) float64 {
			n := s.Disks[name].Write
			switch {
			case c.kind == host.NICs && c.in:
				n = s.NICs[name].Recv
			case c.kind == host.NICs:
				n = s.NICs[name].Sent
			case c.in:
				n = s.Disks[name].Read
			}
			return float64(n)
		}
		least, most := 0.0, 0.0
		for _, d := range devs {
			if c.includes(&d, false) {
				least += counter(b.before, d.Name) - counter(a.after, d.Name)
				most += counter(b.after, d.Name) - counter(a.before, d.Name)
			}
		}
		within(t, what, c.total.Key(), s.Values[c.total]*MiB, least, most, 0, shut)
	}
}

// comparePercents compares percentages. psutil's window lasts from the snap after the last Reading to the snap before
// this one; perfagent's is longer by the length of the brackets. So each CPU agrees within that length and one tick.
func comparePercents(t *testing.T, a, b *bracket, shut map[string]int) {
	for i, c := range b.ours.CPU {
		before, known := findCPU(a.ours.CPU, c.Name, i)
		got, ok := busyPercent(before, c)
		total := elapsed(a.after.CPUTimes[i], b.before.CPUTimes[i])
		if total == 0 { // the clock did not move: psutil returns 0 %, perfagent NaN
			continue
		}
		if !known || !ok {
			t.Errorf("%s: no percentage for a window of %.2f s, want one", c.Name, total)
			continue
		}
		open := elapsed(a.before.CPUTimes[i], a.after.CPUTimes[i]) + elapsed(b.before.CPUTimes[i], b.after.CPUTimes[i])
		want := b.before.CPUPercent[i]
		check.True(t, math.Abs(got-want) <= 100*(clockTick.Seconds()+open)/total+0.1,
			"%s: %v %% busy, want about psutil's %v %%: window %.2f s, brackets open for %.2f s", c.Name, got, want, total, open)
		if unmoved(before, a.after.CPUTimes[i]) && unmoved(c, b.before.CPUTimes[i]) && got == want {
			shut["cpu percent"]++
		}
	}
}

// unmoved reports whether a CPU's times are equal in a Reading and a snap.
func unmoved(c host.CPUTimes, snap []float64) bool {
	return slices.Equal(append(c.Seconds[:], c.Guest, c.GuestNice), snap)
}

// elapsed returns the time that passed on a CPU between two snaps.
func elapsed(a, b []float64) float64 {
	sum := 0.0
	for f := range 8 {
		sum += max(0, b[f]-a[f])
	}
	return sum
}

// A snap with empty fields would hide a change of the script.
func TestSnap_HasAllFields(t *testing.T) {
	s := newSnapper(t, "/").snap()
	if len(s.CPUTimes) == 0 || len(s.CPUPercent) != len(s.CPUTimes) || s.Memory.Total == 0 || s.Disk.Used+s.Disk.Free == 0 || len(s.NICs) == 0 {
		data, _ := json.Marshal(s)
		t.Errorf("psutil_windows.py printed %s, want CPUs, memory, disk and interfaces", strings.TrimSpace(string(data)))
	}
}

// While a CPU is busy, the CPU seconds of a run lie, for each mode, between the differences of /proc/stat read just
// inside and just outside the run.
func TestSampler_CPUSecondsAgreeWithProcStat(t *testing.T) {
	outside := procStat(t)
	reader := host.NewReader(host.Options{})
	defer reader.Close()
	sampler := NewSampler(reader, Options{Interval: 50 * time.Millisecond})
	inside := procStat(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	recorded := make(chan *Recording, 1)
	go func() { recorded <- sampler.Run(ctx) }()
	// Run for at least a second, and longer if the ticks show too little use.
	for begin, busy := time.Now(), 0.0; time.Since(begin) < time.Second || busy < 0.4 && time.Since(begin) < time.Minute; {
		for chunk := time.Now(); time.Since(chunk) < 20*time.Millisecond; {
		}
		now := procStat(t)
		busy = now[host.ModeUser] + now[host.ModeNice] - inside[host.ModeUser] - inside[host.ModeNice]
	}

	least := procStat(t)
	cancel()
	rec := <-recorded
	most := procStat(t)
	cpus := float64(rec.Host.CPUs)
	for m, got := range rec.CPUSeconds {
		lo, hi := least[m]-inside[m], most[m]-outside[m]
		below, above := 0.001, 0.001
		if mode := host.CPUMode(m); mode == host.ModeIdle || mode == host.ModeIowait {
			below += cpus * clockTick.Seconds() // the kernel moves time between the two modes and back
			above += 10                         // a whole wait, which a sample may divide
		}
		check.True(t, got >= lo-below && got <= hi+above,
			"%v: %.2f s, want %.2f to %.2f s as in /proc/stat", host.CPUMode(m), got, lo, hi)
	}

	busy := rec.CPUSeconds[host.ModeUser] + rec.CPUSeconds[host.ModeNice]
	check.True(t, busy >= 0.3, "%.2f s of user time while one CPU was busy for a second, want at least 0.3", busy)
}

// procStat sums the lines cpuN of /proc/stat by mode, in seconds.
func procStat(t *testing.T) (out [host.NumCPUModes]float64) {
	t.Helper()
	data := check.Value(os.ReadFile("/proc/stat"))(t)

	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if !strings.HasPrefix(line, "cpu") || f[0] == "cpu" {
			continue
		}
		for m := range out {
			n := check.Value(strconv.ParseUint(f[1+m], 10, 64))(t)
			out[m] += float64(n) / 100
		}
	}
	return out
}

// percentScript prints psutil's CPU percentages for the window between two trees.
const percentScript = `
import json, sys
import psutil
psutil.PROCFS_PATH = sys.argv[1]
psutil.cpu_percent(percpu=True)
psutil.PROCFS_PATH = sys.argv[2]
print(json.dumps(psutil.cpu_percent(percpu=True)))
`

// The test has thousands of CPUs with windows of all lengths. Many are at a rounding tie, where the last bit of
// psutil's sums decides.
func TestBusyPercent_EqualsPsutilToTheDigit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var trees [2]strings.Builder
	for i := range trees {
		trees[i].WriteString("cpu  0 0 0 0 0 0 0 0 0 0\n")
	}
	const cpus = 4000
	for n := range cpus {
		top := uint64(1) << (1 + rng.IntN(12))
		fmt.Fprintf(&trees[0], "cpu%d", n)
		fmt.Fprintf(&trees[1], "cpu%d", n)
		for range 10 {
			before := rng.Uint64N(1 << (1 + rng.IntN(34)))
			after := before + rng.Uint64N(top)
			if rng.IntN(20) == 0 {
				after = before - rng.Uint64N(1+min(before, 50))
			}
			fmt.Fprintf(&trees[0], " %d", before)
			fmt.Fprintf(&trees[1], " %d", after)
		}
		trees[0].WriteByte('\n')
		trees[1].WriteByte('\n')
	}

	var dirs []string
	var readings [][]host.CPUTimes
	for i := range trees {
		dir := t.TempDir()
		write(t, dir, "stat", []byte(trees[i].String()))
		dirs = append(dirs, dir)
		readings = append(readings, openTree(t, dir, dir).Read().CPU)
	}

	var want []float64
	collectortest.RunPython(t, &want, percentScript, dirs...)
	if len(want) != cpus || len(readings[0]) != cpus {
		t.Fatalf("psutil lists %d CPUs and the Reader %d, want %d", len(want), len(readings[0]), cpus)
	}
	wrong := 0
	for i := range want {
		got, ok := busyPercent(readings[0][i], readings[1][i])
		// In these random windows, guest can exceed user. The results of psutil are then not between 0 and 100, which no
		// kernel can cause.
		if want[i] < 0 || want[i] > 100 {
			continue
		}
		if !ok {
			got = 0
		}
		if got != want[i] {
			wrong++
			t.Errorf("cpu%d: %v %% busy, want psutil's %v: %+v, then %+v", i, got, want[i], readings[0][i], readings[1][i])
		}
		if wrong > 5 {
			t.Fatal("more than 5 CPUs differ from psutil")
		}
	}
}
