package plotter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/comparer"
)

// compared returns a comparison of ten runs per side, with a gate.
func compared(t *testing.T, name string) *comparer.Comparison {
	t.Helper()
	side := func(scale float64, command ...string) comparer.Side {
		s := comparer.Side{Name: name}
		for i := range 10 {
			noise := 1 + 0.001*float64(i)
			s.Reports = append(s.Reports, reporter.SourceReport{Path: name, Report: &reporter.Report{
				Run: reporter.Run{ID: fmt.Sprint(scale, i), Command: command},
				Nodes: map[string]*reporter.Node{"0": {Metrics: reporter.Values{
					"wall_seconds": 100 * noise * scale, "job_peak_memory_mb": 2000 * noise / scale, "max_t_mem_percent": 10 * noise,
					"job_cpu_seconds": 50 * noise,
				}, Missing: []reporter.Missing{{What: "job_max_rss_mb", Why: name}}}},
			}})
		}
		return s
	}
	c := comparer.Compare(side(1, "train", name), side(1.5, "train", "b"))
	gate, err := comparer.ParseGate("wall_seconds > +10%")
	check.Must(t, err)
	c.CheckGate(gate)
	return c
}

func TestWriteDiffPage(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	check.Must(t, WriteDiffPage(&out, compared(t, "a"), "1.2.3"))

	page := out.String()
	wantParts(t, "page", page,
		"<h1 data-verdict>B took 51 % longer than A (p &lt; 0.001): peak memory -33 %.</h1>", "the commands differ: A train a | B train b",
		`<p class="gate bad" data-gate>`, "perfagent 1.2.3<",
		`<tr data-metric="wall_seconds" class="changed"><td title="wall_seconds: how long the job ran">wall time</td>`, `<i class="up" style="width:25%"></i>`, `<i class="down" style="width:16.7%"></i>`)
	changed, rest, _ := strings.Cut(page, "<details data-rest>")
	wantParts(t, "first table", changed, `data-metric="wall_seconds"`, `data-metric="job_cpu_seconds"`,
		`data-metric="job_peak_memory_mb"`)
	wantNone(t, "first table", changed, `data-metric="max_t_mem_percent"`) // it has not changed
	wantParts(t, "second table", rest, `data-metric="max_t_mem_percent"`)
	if bad := regexp.MustCompile(`<script|https?://|ZgotmplZ|NaN|url\(`).FindString(page); bad != "" {
		t.Errorf("page has %q, want it absent", bad)
	}
}

// Text from reports and names is escaped, so it cannot become markup.
func TestWriteDiffPage_EscapesHostileText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	check.Must(t, WriteDiffPage(&out, compared(t, "\x1b[31m<script>alert(1)</script>\"'\xff"), "1"))
	wantNone(t, "page", out.String(), "<script", "\x1b", "\xff")
}

func TestWriteDiffPage_ReturnsWriteErrors(t *testing.T) {
	t.Parallel()
	if err := WriteDiffPage(closedPipe{}, compared(t, "a"), "1"); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
