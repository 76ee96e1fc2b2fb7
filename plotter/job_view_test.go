package plotter

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// jobViewReport is the report of a job of so many seconds in a container with limits, on
// a node with so many GPUs of which the first half are the job's.
func jobViewReport(node, seconds, gpus int) *reporter.Report {
	rec := browserRecording(0, time.Second, nil)
	rec.Widen(gpus)
	rec.Account = collector.NoAccount()
	rec.Account.Source, rec.Account.Group, rec.Account.MemoryKind = host.JobFromGroup, "/docker/3f5a", host.MemoryGroup
	rec.Account.Limits = host.Limits{CPUs: 2, Quota: 2, CPUSet: 8, Affinity: 8, MemoryMB: 1024, CPUGroup: "/docker/3f5a", MemoryGroup: "/docker"}
	rec.Account.CPUSeconds, rec.Account.Periods, rec.Account.Throttled, rec.Account.ThrottledSeconds = 90, 600, 186, 12.1
	for i := range gpus {
		rec.GPUs = append(rec.GPUs, collector.GPU{Device: gpu.Device{Index: i, UUID: "GPU-" + strings.Repeat("0a", 16), Name: "NVIDIA A100-SXM4-40GB", MemoryMB: 40960, PowerLimitWatts: 400},
			OfJob: i < (gpus+1)/2, ClockMHz: 1410, EnergyJoules: 15_000, Throttle: []string{"sw_power_cap"}})
	}
	for i := range seconds {
		s := jobViewSample(i, node, gpus)
		rec.Add(&s)
		end := time.Duration(i+1) * time.Second
		rec.End.Mono, rec.End.Boot, rec.End.Wall = end, end, browserStart().Add(end)
	}
	r := browserReport(node, rec)
	n := r.Nodes[strconv.Itoa(node)]
	n.Verdict = &reporter.Verdict{Cause: diagnosis.CauseOOMCgroup, Text: "out of memory: the group /docker reached its limit of 1.0 GiB",
		Evidence: map[string]any{"exit_code": 137.0}, Conditions: []string{"throttled"}}
	n.Findings = []reporter.Finding{
		{ID: "memory_tight", Severity: diagnosis.SeverityWarning, Text: "The job reached 97 % of its memory limit: ask for 1.5 GiB instead of 1 GiB."},
		{ID: "throttled", Severity: diagnosis.SeverityInfo, Text: "The CPU quota stopped the job in 31 % of the periods: ask for 3 CPUs instead of 2."}}
	r.Run.Verdict = n.Verdict
	return r
}

// jobViewSample is second i of the job.
func jobViewSample(i, node, gpus int) collector.Sample {
	var s collector.Sample
	for c := range s.Values {
		s.Values[c], s.Weights[c] = math.NaN(), 1
	}
	s.Values[collector.Timestamp] = float64(browserStart().Unix() + int64(i) + 1)
	browserSet(&s, i, float64((i*7+node*13)%40)+10, 20+float64(i%50)/4, float64(i%9)*1.5)
	wave := 0.5 + 0.5*math.Sin(float64(i)/9+float64(node))
	for c, v := range map[collector.Column]float64{
		collector.JobCPU: 0.5 + 1.5*wave, collector.JobMemory: 300 + 650*wave, collector.JobProcesses: 4, collector.JobThreads: 12 + float64(i%3),
		collector.JobRead: float64(i), collector.JobWrite: float64(2 * i), collector.JobReadRate: 1, collector.JobWriteRate: 2 + wave,
		collector.JobPageCache: 120 * wave, collector.JobThrottled: 31, collector.LimitMemory: 320 + 660*wave, collector.LimitMemoryPercent: 31 + 64*wave,
		collector.CPUIowait: wave, collector.CPUSteal: 0, collector.Load1: 3, collector.ProcsRunning: 4,
		collector.PSICPUSome: 40 * wave, collector.PSIMemorySome: 3 * wave, collector.PSIMemoryFull: 2 * wave, collector.PSIIOSome: 22 * wave, collector.PSIIOFull: 15 * wave,
		collector.JobPSICPUSome: 60 * wave, collector.JobPSICPUFull: 50 * wave, collector.JobPSIMemorySome: 6 * wave, collector.JobPSIMemoryFull: 5 * wave,
		collector.JobPSIIOSome: 12 * wave, collector.JobPSIIOFull: 9 * wave,
	} {
		s.Values[c] = v
	}
	for g := range gpus {
		busy := 0.5 + 0.5*math.Sin(float64(i)/6+float64(g))
		s.Values[collector.GPUColumn(g, collector.GPUUtilization)] = math.Round(100 * busy)
		s.Values[collector.GPUColumn(g, collector.GPUMemoryUsed)] = 1024 * float64(g+2)
		s.Values[collector.GPUColumn(g, collector.GPUPower)] = 60 + 300*busy
		s.Values[collector.GPUColumn(g, collector.GPUTemperature)] = 40 + 20*busy
	}
	return s
}

// jobViewCharts are all charts that a page can have, in their order.
func jobViewCharts() []string {
	return []string{"cpu", "job_cpu", "memory", "job_memory", "disk_io", "network", "disk_space", "pressure", "gpu_utilization", "gpu_memory", "gpu_power"}
}

// jobViewNodes is a report of nodes with other numbers of GPUs: 0, 2, none of a job, and 16.
func jobViewNodes() *reporter.Report {
	r := jobViewReport(0, 60, 0)
	r.Nodes["1"] = jobViewReport(1, 60, 2).Nodes["1"]
	r.Nodes["2"] = browserMinute(2).Nodes["2"]
	r.Nodes["3"] = jobViewReport(3, 60, collector.MaxGPUs).Nodes["3"]
	return r
}

// Only what was measured takes room; the five charts are always there.
func TestJobView_ChartsOfWhatIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		report *reporter.Report
		want   []string
	}{
		"nothing":    {browserAbsent(), browserCharts()},
		"host":       {browserMinute(0), browserCharts()},
		"job":        {jobViewReport(0, 10, 0), jobViewCharts()[:8]},
		"job, GPUs":  {jobViewReport(0, 10, 3), jobViewCharts()},
		"no samples": {jobViewReport(0, 0, 3), browserCharts()},
	} {
		var got []string
		for _, chart := range Charts(c.report.Nodes["0"]) {
			got = append(got, chart.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What the job may use is drawn where it is in sight, and said in any case.
func TestJobView_Bounds(t *testing.T) {
	for limit, drawn := range map[float64]bool{1.5: true, 2: true, 7.9: true, 8.1: false, 1e12: false, math.Inf(1): false, 0: false, -1: false} {
		r := jobViewReport(0, 60, 0)
		r.Nodes["0"].Limits.CPUs = limit
		i := slices.IndexFunc(Charts(r.Nodes["0"]), func(c Chart) bool { return c.ID == "job_cpu" })
		chart := Charts(r.Nodes["0"])[i]
		if axis := chart.valueAxis(4); (chart.Bound > 0 && axis.Max >= limit) != drawn {
			t.Errorf("a limit of %v: the axis goes to %v", limit, axis.Max)
		}
		said := "may use " + strconv.FormatFloat(limit, 'f', -1, 64)
		if finite := limit > 0 && !math.IsInf(limit, 0); strings.Contains(string(pictureSVG(t, r, PictureOptions{Width: 800})), "Job CPU, CPUs ("+said+")") != finite {
			t.Errorf("a limit of %v: the picture does not say %q", limit, said)
		}
		pictureWellFormed(t, r, PictureOptions{Width: 800})
	}
}

// Sixteen GPUs are told apart: no two lines have the same colour and kind.
func TestJobView_GPUsAreToldApart(t *testing.T) {
	r := jobViewReport(0, 20, collector.MaxGPUs)
	for _, c := range Charts(r.Nodes["0"])[8:] {
		seen := make(map[[2]int]bool)
		for _, s := range c.Series {
			seen[[2]int{s.Color, s.Dash}] = true
		}
		if len(seen) != collector.MaxGPUs || len(c.Series) != collector.MaxGPUs {
			t.Errorf("%s: %d kinds of %d lines", c.ID, len(seen), len(c.Series))
		}
	}
	svg := string(pictureSVG(t, r, PictureOptions{Width: 800}))
	for _, class := range []string{"line s0", "line s3 dash", "line s1 dot", "line s2 dashdot"} {
		if !strings.Contains(svg, `class="`+class+`"`) {
			t.Errorf("no %q", class)
		}
	}
	picturePNG(t, r, PictureOptions{Width: 800})
}

// TestJobView_Browser opens pages with all that there can be of a job: each value is told,
// the texts are there, and a chart that a node does not have takes no room.
func TestJobView_Browser(t *testing.T) {
	t.Run("one node", func(t *testing.T) {
		r := jobViewReport(0, 60, 3)
		n := r.Nodes["0"]
		b := browserOpen(t, r, "")
		for _, chart := range jobViewCharts() {
			b.bucket(chart, r, n, 25)
			b.says(browserReading(t, n, chart, 25)...)
		}
		b.metrics(n)
		b.is(`document.querySelectorAll("[data-chart]").length === 11`)
		b.is(`document.querySelector("#about #advice .verdict.bad").innerText.startsWith("out of memory: the group /docker") && document.querySelectorAll("#advice li").length === 2`)
		b.is(`document.querySelector("[data-chart=job_cpu] .bar b").innerText === "Job CPU, CPUs (may use 2)"`)
		b.is(`document.querySelector("[data-chart=job_memory] .bar b").innerText === "Job memory, GiB (limit 1.0 GiB)"`)
		b.is(`document.body.innerText.includes("31.0 %") && document.body.innerText.includes("A100-SXM4-40GB")`)
		b.contrast()
		b.narrow()
		b.media("print", "light")
		b.is(`[...document.querySelectorAll("[data-chart]")].every(e => ` + browserShown(`e.querySelector("svg")`) + `) && ` + browserShown(`document.querySelector("#advice")`))
	})
	t.Run("nodes", func(t *testing.T) {
		r := jobViewNodes()
		b := browserOpen(t, r, "")
		b.is(`[...document.querySelectorAll("[data-heatmap]")].map(e => e.dataset.heatmap).join() === "cpu,job_cpu,memory"`)
		for node, charts := range map[string]int{"1": 11, "2": 5, "3": 11, "0": 8} {
			b.do(chromedp.Evaluate(`location.hash = "#node=`+node+`"`, nil))
			b.shows(r, node)
			b.is(`[...document.querySelectorAll("[data-chart]")].filter(e => ` + browserShown("e") + `).length === ` + strconv.Itoa(charts))
			b.is(`document.querySelectorAll("#advice li").length === ` + strconv.Itoa(len(r.Nodes[node].Findings)))
			chart := browserCharts()[0]
			if charts > 5 {
				chart = jobViewCharts()[charts-1]
			}
			b.bucket(chart, r, r.Nodes[node], 25)
			b.says(browserReading(t, r.Nodes[node], chart, 25)...)
		}
		b.is(`document.querySelector("#alladvice .verdict.bad").innerText.startsWith("node 0, 1 and 1 more: out of memory")`)
		at := b.box("[data-heatmap=job_cpu] .map")
		b.point(at, 0.4, 0.1)
		if tip := b.tip(); !strings.Contains(tip, "busy for the job: ") || !strings.Contains(tip, "CPUs") {
			t.Errorf("the map tells %q", tip)
		}
	})
	t.Run("JavaScript off", func(t *testing.T) {
		b := browserNew(t)
		b.scripts(false)
		b.visit(browserFile(t, browserHTML(t, jobViewNodes())))
		b.is(`document.querySelectorAll(".verdict.bad").length === 2 && document.body.innerText.includes("ask for 1.5 GiB")`)
		b.is(`[...document.querySelectorAll("[data-chart]")].filter(e => ` + browserShown("e") + `).length === 8`)
	})
}

// TestJobView_LivePageGetsCharts: what is measured for the first time while the run goes
// on, a GPU that was slow to answer, gets its chart.
func TestJobView_LivePageGetsCharts(t *testing.T) {
	var seconds atomic.Int64
	seconds.Store(2)
	soFar := func(n int) *reporter.Report {
		gpus := 0
		if n > 5 {
			gpus = 2
		}
		r := jobViewReport(0, n, gpus)
		r.Run.ExitCode, r.Run.Incomplete, r.Run.Verdict = nil, "running", nil
		r.Nodes["0"].Verdict = nil
		return r
	}
	server := browserServing(t, func() *reporter.Report { return soFar(int(seconds.Load())) })
	b := browserNew(t)
	b.visit(server.URL + "/")
	b.is(`document.querySelectorAll("[data-chart]").length === 8`)
	seconds.Store(30)
	b.until(`document.querySelectorAll("[data-chart]").length === 11 && Number(document.querySelector("[data-chart=gpu_power]").dataset.to) === 30`)
	b.whole()
	r := soFar(30)
	b.tells("gpu_memory", r, r.Nodes["0"], 20)
}

// BenchmarkJobView_Page makes the page of a job with limits on one node, of a thousand
// buckets, without GPUs and with four.
func BenchmarkJobView_Page(b *testing.B) {
	for _, gpus := range []int{0, 4} {
		b.Run(strconv.Itoa(gpus)+"GPUs", func(b *testing.B) {
			r, size := jobViewReport(0, 1000, gpus), 0
			for b.Loop() {
				var out bytes.Buffer
				if err := WritePage(&out, r, PageOptions{}); err != nil {
					b.Fatal(err)
				}
				size = out.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// A report may have texts without a bound; its page has one.
func TestJobView_PageHasBounds(t *testing.T) {
	n := &reporter.Node{}
	for i := range 2000 {
		n.Missing = append(n.Missing, reporter.Missing{What: "w" + strings.Repeat("w", i%7), Why: strings.Repeat("x", 1<<16)})
		n.Findings = append(n.Findings, reporter.Finding{ID: "x", Severity: "warning", Text: strings.Repeat("y", 1<<16)})
	}
	p := newPageNode(&reporter.Run{}, "0", n)
	size := 0
	for _, m := range p.missing {
		size += len(m.Why)
	}
	for _, s := range p.advice {
		size += len(s.Text)
	}
	if len(p.missing) != maxPageLines+1 || len(p.advice) != maxPageLines || size > maxPageText+maxPageLines*2*(cutPageText+8) {
		t.Errorf("%d reasons, %d findings, %d bytes", len(p.missing), len(p.advice), size)
	}
	if first := p.missing[0].Why; len(first) != 1<<16 {
		t.Errorf("the first reason was cut to %d bytes", len(first))
	}
}
