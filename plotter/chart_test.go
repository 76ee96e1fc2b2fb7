package plotter

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
)

// An hour in which the machine slept is not drawn as measured, and the values before and after keep their times.
func TestWithSuspendGaps_SuspendIsAGap(t *testing.T) {
	const at, slept = 30, 3600.0
	r := plottertest.Minute(0)
	n := r.Nodes["0"]
	times := n.Envelope[collector.Timestamp.Key()]
	for i := at; i < len(times.Max); i++ {
		times.Max[i] += slept
	}
	woke := reporter.Time{Time: plottertest.Start().Add(time.Duration(at+slept+1) * time.Second)}
	n.Sampling.Suspends = []reporter.ClockEvent{{At: woke, Seconds: slept}}
	axis, charts := withSuspendGaps(&r.Run, n, Charts(n))
	if len(axis.Ends) != 61 || axis.Ends[at-1] != at || axis.Ends[at] != at+slept || axis.Ends[at+1] != at+slept+1 {
		t.Fatalf("%d buckets, those around the suspend end at %v s; want 61, with a bucket of %v s", len(axis.Ends),
			axis.Ends[at-1:at+3], slept)
	}
	eachSeries(charts, func(s *Series) {
		if !math.IsNaN(s.Band.Max[at]) || math.IsNaN(s.Band.Max[at-1]) || math.IsNaN(s.Band.Max[at+1]) || len(s.Band.Max) != 61 {
			t.Errorf("%s: values around the suspend %v, want one NaN in the middle; %d values, want 61", s.Label,
				s.Band.Max[at-1:at+2], len(s.Band.Max))
		}
	})
}

// A page of some dozens of nodes keeps all points, rounded, and mentions that. For nodes that begin later it has the
// delay.
func TestPage_PacksBeforeItThins(t *testing.T) {
	r := plottertest.Report(0, plottertest.Recording(1000, time.Second, func(i int, s *collector.Sample) { plottertest.Set(s, i, float64(i%90), 20, 1) }))
	n := *r.Nodes["0"]
	p := NewPage(PageOptions{})
	for i := range 110 {
		if i == 7 {
			sampling := *n.Sampling
			sampling.Start = reporter.Time{Time: plottertest.Start().Add(-time.Hour)}
			n.Sampling = &sampling
		}
		p.Add(&r.Run, strconv.Itoa(i), &n)
	}
	var out bytes.Buffer
	if err := p.Write(&out, &r.Run); err != nil {
		t.Fatal(err)
	}
	if p.limit != 1000 || !strings.Contains(out.String(), "has its points rounded to 4 digits") {
		t.Errorf("%d points a node are kept, want 1000 packed ones; the page's note is %q", p.limit, p.note())
	}
	if !strings.Contains(out.String(), "1 h 00 min after the first node") {
		t.Error("page lacks that seven nodes began 1 h 00 min after the first")
	}
}

// A peak that is small for the axis is written in another unit.
func TestAxis_ShortLabel(t *testing.T) {
	axis := Axis{Scale: 1024, Unit: "GiB"}
	for v, want := range map[float64]string{37.3125: "37.31 MiB", 512: "0.5 GiB", 17234: "16.83 GiB"} {
		if got := axis.shortLabel(v, "MiB"); got != want {
			t.Errorf("label of %v MiB is %q, want %q", v, got, want)
		}
	}
}
