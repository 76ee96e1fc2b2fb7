// Package plottertest makes reports for tests that draw them.
package plottertest

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// The simulated week has a sample each second, and one burst of two seconds. During the burst all CPUs are busy, and
// the disk is read and written at BurstRate each. The burst is in the middle of a kept sample's bucket, so that only
// the envelope shows it.
const (
	WeekSeconds = 7 * 24 * 3600
	BurstAt     = 345_678 // index of the first sample of the burst
	BurstLength = 2       // number of samples in the burst
	BurstRate   = 100     // MiB/s
	WeekLength  = 1000    // maximum number of kept samples: the default of --max-length
)

// WeekStart returns the start of the week.
func WeekStart() time.Time { return time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC) }

// Week returns the report of a simulated week on one node: CPU usage between 2 and 35 %, memory between 20 and 30 %, an
// almost idle disk and network, no loopback traffic, and the burst. The caller may change the report.
func Week(tb testing.TB) *reporter.Report {
	tb.Helper()
	data, err := encodedWeek()
	if err != nil {
		tb.Fatal(err)
	}
	var r reporter.Report
	if err := json.Unmarshal(data, &r); err != nil {
		tb.Fatal(err)
	}
	return &r
}

// encodedWeek returns the encoded report of the week. All callers share it, because under the race detector a week
// takes seconds.
var encodedWeek = sync.OnceValues(func() ([]byte, error) { return reporter.Encode(newWeek()) })

// newWeek returns the report of all samples of the week.
func newWeek() *reporter.Report {
	rec := collector.NewRecording(host.Instant{Wall: WeekStart()}, time.Second, WeekLength)
	rec.Host = host.Info{Hostname: "week", BootID: "b", OS: "linux", Kernel: "6.1", Arch: "amd64", CPUModel: "CPU",
		CPUs: 4, MemoryMB: 16384}
	rec.Disks, rec.NICs = []string{"sda"}, []string{"lo", "eth0"}
	rec.LongestGap = time.Second
	s := collector.Sample{}
	rec.Account.Limits.CPUs, rec.Account.HostStall, rec.Account.HostOOMKills = 4, collector.Stalls{}, 0
	for c := range s.Weights {
		s.Weights[c] = 1
		if c >= int(collector.JobCPU) { // nothing is known about the job itself
			s.Values[c] = math.NaN()
		}
	}

	for _, c := range []collector.Column{
		collector.CPUIowait, collector.CPUSteal, collector.Load1,
		collector.ProcsRunning, collector.SwapIn, collector.SwapOut,
		collector.MajorFaults,
	} {
		s.Values[c] = 0
	}

	for n := range WeekSeconds {
		weekSample(&s, n)
		rec.Add(&s)
	}

	length := WeekSeconds * time.Second
	rec.End = host.Instant{Wall: WeekStart().Add(length), Mono: length, Boot: length}
	exit := 0
	return diagnosis.New(diagnosis.Input{Input: reporter.Input{
		Run: reporter.Run{
			ID:          "week",
			Command:     []string{"sleep", "604800"},
			ExitCode:    &exit,
			Start:       reporter.Time{Time: WeekStart()},
			End:         reporter.Time{Time: WeekStart().Add(length)},
			WallSeconds: WeekSeconds,
		},
		Recording: rec,
		Agent:     reporter.Agent{Version: "test", CPUSeconds: 390, MaxRSSMB: 14},
		Job: &reporter.Job{
			PID:           1,
			ExitCode:      new(0),
			Start:         reporter.Time{Time: WeekStart()},
			End:           reporter.Time{Time: WeekStart().Add(length)},
			UserSeconds:   250_000,
			SystemSeconds: 9000,
			MaxRSSMB:      812.5,
		},
	}})
}

// weekSample turns s, the previous sample, into sample n of the week.
func weekSample(s *collector.Sample, n int) {
	v := &s.Values
	day := math.Sin(2 * math.Pi * float64(n) / 86400)
	cpu, rate := tenths(20+10*day+float64(n*7%50)/10), 0.004
	least, most := tenths(cpu/2), tenths(min(100, cpu*1.6))
	if n >= BurstAt && n < BurstAt+BurstLength {
		cpu, least, most, rate = 100, 100, 100, BurstRate
	}

	v[collector.CPUAvg], v[collector.CPUMin], v[collector.CPUMax] = cpu, least, most
	v[collector.MemPercent] = tenths(25 + 5*day)
	v[collector.MemUsed] = v[collector.MemPercent] / 100 * 16384
	v[collector.DiskPercent] = tenths(30 + 10*float64(n)/WeekSeconds)
	v[collector.DiskUsed], v[collector.DiskFree] = 1000*v[collector.DiskPercent], 1000*(100-v[collector.DiskPercent])
	v[collector.DiskReadRate], v[collector.DiskWriteRate] = rate, rate
	v[collector.DiskRead] += rate
	v[collector.DiskWrite] += rate
	v[collector.NetExtRecvRate], v[collector.NetExtSentRate] = 0.002, 0.001
	v[collector.NetExtRecv] += 0.002
	v[collector.NetExtSent] += 0.001
	v[collector.Timestamp] = float64(WeekStart().Unix() + int64(n) + 1)
}

func tenths(v float64) float64 { return math.Round(v*10) / 10 }

// WeekFile writes the report of the week into a new directory of the test and returns its path.
func WeekFile(tb testing.TB) string {
	tb.Helper()
	return Write(tb, Week(tb))
}

// Write writes r as node-0.json into a new directory of the test and returns the path of the file.
func Write(tb testing.TB, r *reporter.Report) string {
	tb.Helper()
	data, err := reporter.Encode(r)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "node-0.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}
