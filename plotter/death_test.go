package plotter

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// killed returns the report of a job of ten seconds. The job, or a child of it, was killed at the limit of 256 MiB. Its
// memory grows by 20 MiB per second and falls after the kill.
func killed(cause string, at time.Duration) *reporter.Report {
	r := plottertest.Report(0, plottertest.Recording(10, time.Second, func(i int, s *collector.Sample) {
		plottertest.Set(s, i, 50, 25, 1)
		s.Values[collector.JobCPU] = 0.5
		s.Values[collector.JobMemory] = 20 * float64(i+1)
		if time.Duration(i+1)*time.Second >= at {
			s.Values[collector.JobMemory] = 5
		}
	}))
	n := r.Nodes["0"]
	n.Limits = &reporter.Limits{CPUs: 2, MemoryMB: 256, MemoryGroup: "/job"}
	n.Job.Signal, n.Job.Start = "SIGKILL", n.Sampling.Start
	n.Verdict = &reporter.Verdict{Cause: cause, Evidence: map[string]any{
		"time": plottertest.Start().Add(at).Format(time.RFC3339Nano), "limit_mb": 256.0, "peak_mb": 256.0,
	}}
	r.Run.Verdict = n.Verdict
	return r
}

// Samples taken after the kill of a job do not show its memory. So the curve ends before the kill, and continues as a
// dashed line to the limit at which the job was killed. The peak of any other kill is unknown. If only a child of the
// job was killed, the whole curve is drawn.
func TestTimeline_JobMemoryEndsAtKill(t *testing.T) {
	for name, c := range map[string]struct {
		cause  string
		at     time.Duration
		death  string // at, limit, words
		last   float64
		rise   string // the dashed line on the page
		exists bool
	}{
		"at the memory limit": {diagnosis.CauseOOMCgroup, 9500 * time.Millisecond, "10 256 killed", 180, "M900 72.2L1000 18.2", true},
		"at the last sample":  {diagnosis.CauseOOMCgroup, 10 * time.Second, "10 256 killed", 180, "M900 72.2L1000 18.2", true},
		"child killed":        {diagnosis.CauseOOMCgroup, 4500 * time.Millisecond, "4.5 256 killed", 5, "M400 143.2L450 18.2", true},
		"child of a successful job killed": {
			diagnosis.CauseExited, 4500 * time.Millisecond, "4.5 256 killed", 5, "M400 143.2L450 18.2", true,
		},
		"host out of memory": {diagnosis.CauseOOMHost, 9500 * time.Millisecond, "10 0 killed", 180, "", true},
		"SIGKILL":            {diagnosis.CauseSignal, 9500 * time.Millisecond, "10 0 killed", 180, "", true},
		"at the time limit":  {diagnosis.CauseTimeLimit, 9500 * time.Millisecond, "10 0 stopped", 180, "", true},
		"not killed":         {diagnosis.CauseExited, 9500 * time.Millisecond, "", 5, "", false},
		"kill after the end": {diagnosis.CauseOOMCgroup, time.Hour, "10 256 killed", 200, "M1000 58V18.2", true},
		"kill before start":  {diagnosis.CauseOOMCgroup, -time.Hour, "0 256 killed", 5, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := killed(c.cause, c.at)
			if name == "child of a successful job killed" {
				r.Nodes["0"].Verdict.Evidence = map[string]any{"limit_kills": 1.0, "time": r.Nodes["0"].Verdict.Evidence["time"]}
			}
			n := r.Nodes["0"]
			axis, charts := withSuspendGaps(&r.Run, n, Charts(n))
			got := ""
			if d := axis.Death; d != nil {
				got = fmt.Sprint(d.At, d.Limit, " ", d.Words)
				got = strings.ReplaceAll(got, "  ", " ")
			}
			check.Equal(t, got, c.death, "death")
			last := math.NaN()
			for _, v := range charts[1].Series[0].Band.Mean {
				if !math.IsNaN(v) {
					last = v
				}
			}
			check.Equal(t, last, c.last, "last memory value of the job")
			page := pageOf(t, r)
			check.Equal(t, strings.Count(page, `<path class="k"`) > 2, c.exists,
				"each chart has a line at the time of the kill")
			if rise := `<path class="un" d="` + c.rise; strings.Contains(page, rise) != (c.rise != "") {
				t.Errorf("dashed lines on the page: %q, want %q", regexp.MustCompile(`<path class="un" d="[^"]*`).FindAllString(page, -1), c.rise)
			}
			pictureWellFormed(t, r, PictureOptions{Width: 800})
			picturePNG(t, r, PictureOptions{Width: MinWidth})
		})
	}
}
