package plotter

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Only measured charts take room; the five are always there.
func TestCharts_OmitUnmeasuredCharts(t *testing.T) {
	for name, c := range map[string]struct {
		report *reporter.Report
		want   []string
	}{
		"nothing":    {plottertest.Absent(), plottertest.HostCharts()},
		"host":       {plottertest.Minute(0), plottertest.HostCharts()},
		"job":        {plottertest.Limited(0, 10, 0), plottertest.AllCharts()[3:]},
		"job, GPUs":  {plottertest.Limited(0, 10, 3), plottertest.AllCharts()},
		"no samples": {plottertest.Limited(0, 0, 3), plottertest.HostCharts()},
	} {
		var got []string
		for _, chart := range Charts(c.report.Nodes["0"]) {
			got = append(got, chart.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: charts %q, want %q", name, got, c.want)
		}
	}
}

// The job's limit is drawn if it is in sight, and in the title in any case.
func TestChart_DrawsLimitInSightAndTitlesAnyLimit(t *testing.T) {
	for limit, drawn := range map[float64]bool{1.5: true, 2: true, 8: true, 8.1: false, 1e12: false, math.Inf(1): false, 0: false, -1: false} {
		r := plottertest.Limited(0, 60, 0)
		r.Nodes["0"].Limits.CPUs = limit
		i := slices.IndexFunc(Charts(r.Nodes["0"]), func(c Chart) bool { return c.ID == "cpu" })
		chart := Charts(r.Nodes["0"])[i]
		if axis := chart.valueAxis(4); (chart.Bound > 0 && axis.Max >= limit) != drawn {
			t.Errorf("limit of %v: the axis ends at %v, want the limit on it: %v", limit, axis.Max, drawn)
		}
		said := "may use " + text.CPUs(limit)
		if finite := limit > 0 && !math.IsInf(limit, 0); strings.Contains(string(pictureSVG(t, r, PictureOptions{Width: 800})), "CPU, CPUs ("+said+" of 8)") != finite {
			t.Errorf("limit of %v: the title has %q: %v, want %v", limit, said, !finite, finite)
		}
		pictureWellFormed(t, r, PictureOptions{Width: 800})
	}

	l := &reporter.Limits{CPUs: .5, MemoryMB: 100, CPUsRange: &reporter.LimitRange{Min: .5, Max: 2},
		MemoryRange: &reporter.LimitRange{Min: 100, Max: 200}}
	if v, said := jobBound(collector.BoundCPUs, l); v != 2 || said != "may use 0.5 to 2" {
		t.Errorf("bound of CPUs that changed: %v, %q; want 2, may use 0.5 to 2", v, said)
	}
	if v, said := jobBound(collector.BoundMemory, l); v != 200 || said != "limit 100 MiB to 200 MiB" {
		t.Errorf("bound of memory that changed: %v, %q; want 200, limit 100 MiB to 200 MiB", v, said)
	}
}

// GPUs are distinguishable: three by the colour of their lines, more by lanes.
func TestCharts_GPUsAreDistinguishable(t *testing.T) {
	for gpus, want := range map[int][]string{3: plottertest.GPUCharts(), 4: plottertest.GPUCharts()[:1], collector.MaxGPUs: plottertest.GPUCharts()[:1]} {
		r := plottertest.Limited(0, 20, gpus)
		var got []string
		for _, c := range Charts(r.Nodes["0"])[:len(want)+1] {
			if !c.gpu() { // the first chart that is not about GPUs comes right after them
				break
			}
			got = append(got, c.ID)
			seen := make(map[[2]int]bool)
			for _, s := range c.Series {
				seen[[2]int{s.Color, s.Dash}] = true
			}
			if len(seen) != gpus || len(c.Series) != gpus {
				t.Errorf("%s: %d lines in %d styles, want %d of each", c.ID, len(c.Series), len(seen), gpus)
			}
			for _, l := range c.Lanes {
				if l.Busy == nil || l.Memory == nil || l.Power == nil || l.memory != 40960 || l.power != 400 {
					t.Errorf("%d GPUs: lane %s is %+v, want all series, 40960 MiB and 400 W", gpus, l.Label, l)
				}
			}
			if lanes := len(c.Lanes); lanes != gpus && gpus > 3 || lanes > 0 && gpus == 3 {
				t.Errorf("%d GPUs have %d lanes, want one for each GPU if there are more than 3", gpus, lanes)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d GPUs: first charts %q, want %q", gpus, got, want)
		}

		svg := string(pictureSVG(t, r, PictureOptions{Width: 800}))
		for i := range gpus {
			if !strings.Contains(svg, fmt.Sprintf(">GPU %d<", i)) {
				t.Errorf("%d GPUs: the picture does not name GPU %d", gpus, i)
			}
		}
		if heat := strings.Contains(svg, `class="heat h10"`); heat != (gpus > 3) {
			t.Errorf("%d GPUs: the picture has a row of colors: %v, want %v", gpus, heat, gpus > 3)
		}
		pictureWellFormed(t, r, PictureOptions{Width: 800})
		picturePNG(t, r, PictureOptions{Width: 800})
	}
}

// BenchmarkJobView_Page makes the page of a job with limits on one node, of a thousand buckets, without GPUs and with
// four.
func BenchmarkJobView_Page(b *testing.B) {
	for _, gpus := range []int{0, 4} {
		b.Run(strconv.Itoa(gpus)+"GPUs", func(b *testing.B) {
			r, size := plottertest.Limited(0, 1000, gpus), 0
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
func TestPage_BoundsTextsOfReport(t *testing.T) {
	n := &reporter.Node{}
	for i := range maxPageLines + 100 {
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
		t.Errorf("page has %d reasons, %d findings, %d bytes of text; want %d, %d, at most %d", len(p.missing),
			len(p.advice), size, maxPageLines+1, maxPageLines, maxPageText+maxPageLines*2*(cutPageText+8))
	}
	if first := p.missing[0].Why; len(first) != 1<<16 {
		t.Errorf("first reason is cut to %d bytes, want all %d", len(first), 1<<16)
	}
}
