package terminal

import (
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
)

// wideScreen returns a run with limits and two GPUs, the second of which reports only its memory.
func wideScreen() (*reporter.Report, Options) {
	r, o := screenReport(1), screenOptions(1, 79, 30)
	n := r.Nodes["0"]
	n.Limits = &reporter.Limits{CPUs: 4, MemoryMB: 2048}
	n.GPUs = []reporter.GPU{{MemoryMB: 81920}, {Index: 1}}
	newest := append(screenNewest(), make([]float64, 2*collector.NumGPUKeys)...)
	for c := int(collector.NumColumns); c < len(newest); c++ {
		newest[c] = math.NaN()
	}
	set := func(c collector.Column, now, peak float64) {
		newest[c] = now
		n.Summaries[c.Key()] = reporter.Summary{Mean: now, Max: peak}
		band := reporter.Band{}
		for range n.Samples.Len() {
			band.Min, band.Mean, band.Max = append(band.Min, now), append(band.Mean, now), append(band.Max, peak)
		}
		n.Envelope[c.Key()] = band
	}
	set(collector.JobCPU, 2, 2)
	set(collector.JobMemory, 1536, 2048)
	set(collector.LimitMemoryPercent, 75, 100)
	set(collector.JobThrottled, 12.5, 50)
	set(collector.GPUColumn(0, collector.GPUUtilization), 93, 100)
	set(collector.GPUColumn(0, collector.GPUMemoryUsed), 40960, 40960)
	set(collector.GPUColumn(1, collector.GPUMemoryUsed), 512, 512)
	o.Live["0"] = LiveNode{State: "running for 1 min 30 s", Newest: newest}
	return r, o
}

// The measured rows of the job and its GPUs come first; sparklines are scaled to their peaks.
func TestScreen_ShowsJobAndGPUsAboveNode(t *testing.T) {
	r, o := wideScreen()
	screenIs(t, "the rows", Screen(r, o)[4:13], `
CPU        █████·····  2.00 of 4 CPUs         2.00 CPUs   █████████████████████
memory     ███████▌··  1.5 GiB of 2 GiB         2.0 GiB   █████████████████████
mem limit  ███████▌··  75 %                       100 %   █████████████████████
throttled  █▎········  12 %                        50 %   █████████████████████
GPU 0      █████████▎  93 %                       100 %   █████████████████████
GPU 0 mem  █████·····  40.0 GiB of 80 GiB      40.0 GiB   █████████████████████
GPU 1 mem              512 MiB                  512 MiB   █████████████████████

NODE       vm, 2 CPUs, 23.5 GiB memory`)
	check.Contains(t, "screen", screenText(r, o), "GPU 1 mem")
	wantNone(t, "screen", screenText(r, o), "GPU 1  ") // its utilization was not measured
	line := Line(r, o)
	check.Contains(t, "line", line,
		"CPU 2.00 of 4 CPUs", "memory 1.5 GiB of 2 GiB", "throttled 12 %", "GPU 0 93 %", "node CPU 25 %")
}

// A small screen keeps the job's CPU and memory, and no line is wider than the screen.
func TestScreen_KeepsCPUAndMemoryIfSmall(t *testing.T) {
	r, o := wideScreen()
	for height := 3; height < 30; height++ {
		for _, width := range []int{11, 24, 30, 45, 79, 200} {
			o.Width, o.Height = width, height
			wantFits(t, Screen(r, o), width, height)
			if all := screenText(r, o); height == 10 && width >= 24 && (!strings.Contains(all, "\nCPU ") || !strings.Contains(all, "\nmemory ") || strings.Contains(all, "GPU 1 mem")) {
				t.Errorf("screen of %d × %d: want CPU and memory of the job, and not GPU 1 mem:\n%s", width, height,
					all)
			}
		}
	}
}

// The report has more GPUs than there are columns, and invalid numbers.
func TestScreen_FitsWithHostileReport(t *testing.T) {
	r, o := wideScreen()
	n := r.Nodes["0"]
	n.GPUs = make([]reporter.GPU, 40)
	n.Limits.CPUs, n.Limits.MemoryMB, n.GPUs[0].MemoryMB = math.Inf(1), series.Unknown(), -1
	live := o.Live["0"]
	for c := range live.Newest {
		live.Newest[c] = []float64{math.Inf(1), -1e300, 1e300, math.NaN()}[c%4]
	}
	for _, width := range []int{11, 24, 79} {
		o.Width = width
		wantFits(t, Screen(r, o), width, o.Height)
	}
}
