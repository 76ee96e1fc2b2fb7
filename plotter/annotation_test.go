package plotter

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/plottertest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// phased returns a one-minute report with marks and phases.
func phased() *reporter.Report {
	r := plottertest.Minute(0)
	shift := float64(plottertest.Start().Unix() - reportertest.RunStart.Unix())
	n := reportertest.AddMarks(r).Nodes["0"]
	for i := range n.Marks {
		n.Marks[i].Timestamp += shift
	}
	for i := range n.Phases {
		n.Phases[i].Start += shift
		for k := range n.Phases[i].Spans {
			n.Phases[i].Spans[k][0] += shift
		}
	}
	return r
}

func TestPicture_DrawsPhasesOnEveryChart(t *testing.T) {
	got := pictureSVG(t, phased(), PictureOptions{Width: 800, Metric: "mem_percent"})
	reportertest.CompareGolden(t, filepath.Join("testdata", "phases.svg"), got, *update)

	all := string(pictureSVG(t, phased(), PictureOptions{Width: 800}))
	charts := strings.Count(all, `class="base"`)
	check.Equal(t, strings.Count(all, `data-phase="`), 4*charts, "number of bands on %d charts", charts)
	for _, want := range []string{`data-mark="epoch 1"`, `data-phase="train &lt;b&gt;&amp;\x1b[31m"`} {
		if n := strings.Count(all, want); n < charts {
			t.Errorf("%d charts have %s %d times, want at least once each", charts, want, n)
		}
	}
}

// A mark in the middle of the run is drawn in the middle of the time axis.
func TestPicture_DrawsMarksAtTheirTimes(t *testing.T) {
	r := phased()
	n := r.Nodes["0"]
	time := NewTimeline(&r.Run, n)
	n.Marks = []reporter.Mark{{Timestamp: time.Start + time.Length()/2, Text: "half"}}
	svg := string(pictureSVG(t, r, PictureOptions{Width: 800, Metric: "mem_percent"}))
	found := regexp.MustCompile(`data-mark="half" d="M([0-9.]+) `).FindStringSubmatch(svg)
	if found == nil {
		t.Fatal("the SVG has no line for the mark")
	}
	var x float64
	fmt.Sscan(found[1], &x)
	if want := marginLeft + (800.0-marginLeft-marginRight)/2; math.Abs(x-want) > 0.2 {
		t.Errorf("mark at x = %v, want %v", x, want)
	}
}

// The PNG, like the SVG, shows the phases as bands.
func TestWritePNG_DrawsPhases(t *testing.T) {
	with := picturePNG(t, phased(), PictureOptions{Width: 400, Metric: "mem_percent"})
	without := picturePNG(t, plottertest.Minute(0), PictureOptions{Width: 400, Metric: "mem_percent"})
	if bytes.Equal(with, without) {
		t.Error("the PNG is the same with and without phases")
	}
}

func TestPage_HasPhasesAndMarks(t *testing.T) {
	page := pageOf(t, phased())
	wantParts(t, "page", page,
		"<table data-phases>", `<i class="sq p0"></i>load</th><td class="n">1 ×</td><td class="n">`+unbroken(`10.0 s</td><td class="n">0.25 CPUs</td><td class="n">peak 100 MiB</td>`),
		"</b> epoch 1</span>",
		`train &lt;b&gt;&amp;\x1b[31m`, `data-phase="load"`, `data-mark="epoch 1"`)
	wantNone(t, "page", page, "train <b>", "\x1b")

	wantNone(t, "page without phases", pageOf(t, plottertest.Minute(0)), "data-phases>", "<h3>Phases")
}

// The key names all phases. The phases after the last color share one entry.
func TestPage_KeyNamesAllPhases(t *testing.T) {
	for phases, want := range map[int]string{
		6: `<li><i class="sq p5"></i>phase 5</li>`, 8: `</i>phase 5</li><li><i class="sq p6"></i>other phases: phase 6, phase 7</li>`,
		20: `</i>other phases: phase 6, phase 7, phase 8, phase 9, phase 10, phase 11, phase 12, phase 13, phase 14, phase 15 and 4 more</li>`,
	} {
		r := plottertest.Minute(0)
		n := r.Nodes["0"]
		for i := range phases {
			at := float64(plottertest.Start().Unix() + int64(i))
			n.Phases = append(n.Phases, reporter.Phase{Name: fmt.Sprint("phase ", i), Start: at, Count: 1, Seconds: 1,
				Spans: []reporter.PhaseSpan{{at, 1}}})
		}
		key, _, _ := strings.Cut(pageOf(t, r), `<div class="charts">`)
		if !strings.Contains(key, want) || phases == 6 && strings.Contains(key, "other phases") {
			t.Errorf("%d phases: the key lacks %s:\n%s", phases, want, key[strings.LastIndex(key, "<ul"):])
		}
	}
}

// A live page names the current phase of the job.
func TestPage_NamesCurrentPhaseOfLiveJob(t *testing.T) {
	r := phased()
	n := r.Nodes["0"]
	n.Phases[2].Spans[0] = reporter.PhaseSpan{n.Phases[2].Start, 1000}
	wantParts(t, "live page", pageWith(t, r, PageOptions{Live: 1}), "In phase <b>save</b>.")
}

// The page stays small even if many nodes have the maximum number of marks.
func TestPage_StaysSmallWithManyMarks(t *testing.T) {
	testenv.SkipIfShort(t, "a second of CPU for its large page")
	p := NewPage(PageOptions{})
	long := strings.Repeat("x", 199)
	var run *reporter.Run
	for i := range 300 {
		r := plottertest.Minute(i)
		n := r.Nodes[fmt.Sprint(i)]
		start := float64(plottertest.Start().Unix())
		for k := range 1000 {
			at := start + float64(k)*0.06
			n.Marks = append(n.Marks, reporter.Mark{Timestamp: at, Text: fmt.Sprint(k%7, long)})
			if k < 200 {
				n.Phases = append(n.Phases, reporter.Phase{Name: fmt.Sprint(k, long), Start: at, Count: 5, Seconds: 0.3,
					Spans: []reporter.PhaseSpan{{at, 0.06}}})
			}
		}
		run = &r.Run
		p.Add(run, fmt.Sprint(i), n)
	}
	if n := len(written(t, p, run)); n > 8<<20 {
		t.Errorf("page of 300 nodes has %d bytes, want at most 8 MiB", n)
	}
}
