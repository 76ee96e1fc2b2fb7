package catalog_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// ended writes the report of a run of command at path.
func ended(t *testing.T, path string, change func(*reporter.Run, *reporter.Job), command ...string) {
	t.Helper()
	name, _ := catalog.ParseFileName(filepath.Base(path))
	job := &reporter.Job{CPUSeconds: 2, PeakMemoryMB: 100}
	r := &reporter.Report{Schema: reporter.Schema, Run: reporter.Run{ID: "x", Command: command, WallSeconds: 3, ExitCode: new(0)},
		Nodes: map[string]*reporter.Node{fmt.Sprint(name.Node): {Job: job, Metrics: reporter.Values{}, Missing: []reporter.Missing{}}}}
	change(&r.Run, job)
	writeReport(t, path, r)
}

func TestEarlier(t *testing.T) {
	t.Parallel()
	took := func(seconds float64) func(*reporter.Run, *reporter.Job) {
		return func(r *reporter.Run, j *reporter.Job) { r.WallSeconds, j.CPUSeconds = seconds, seconds/2 }
	}
	same := []string{"python", "fit.py"}
	only := func(seconds float64) *reporter.Earlier {
		return &reporter.Earlier{Runs: 1, WallSeconds: reporter.Spread{Min: seconds, Median: seconds, Max: seconds},
			CPUSeconds:   &reporter.Spread{Min: seconds / 2, Median: seconds / 2, Max: seconds / 2},
			PeakMemoryMB: &reporter.Spread{Min: 100, Median: 100, Max: 100}}
	}
	for name, c := range map[string]struct {
		fill func(out string)
		want *reporter.Earlier
	}{
		"none":         {func(string) {}, nil},
		"no directory": {func(string) {}, nil},
		"the median and the range": {func(out string) {
			for i, s := range []float64{4, 10, 6, 5} {
				ended(t, fmt.Sprintf("%s/r%d/node-0.json", out, i), took(s), same...)
			}
		}, &reporter.Earlier{Runs: 4, WallSeconds: reporter.Spread{Min: 4, Median: 5.5, Max: 10},
			CPUSeconds: &reporter.Spread{Min: 2, Median: 2.75, Max: 5}, PeakMemoryMB: &reporter.Spread{Min: 100, Median: 100, Max: 100}}},
		"the newest launch of a run first, five at most": {func(out string) {
			for i := range 7 {
				ended(t, fmt.Sprintf("%s/r/node-0.%d.json", out, i+2), took(float64(i+2)), same...)
			}
		}, &reporter.Earlier{Runs: 5, WallSeconds: reporter.Spread{Min: 4, Median: 6, Max: 8},
			CPUSeconds: &reporter.Spread{Min: 2, Median: 3, Max: 4}, PeakMemoryMB: &reporter.Spread{Min: 100, Median: 100, Max: 100}}},
		"only what is comparable": {func(out string) {
			ended(t, out+"/good/node-0.json", took(7), same...)
			ended(t, out+"/other-node/node-1.json", took(1), same...)
			ended(t, out+"/rank/node-0.rank-0.json", took(1), same...)
			ended(t, out+"/other-command/node-0.json", took(1), "python", "fit.py", "--fast")
			ended(t, out+"/failed/node-0.json", func(r *reporter.Run, _ *reporter.Job) { r.ExitCode = new(3) }, same...)
			ended(t, out+"/unknown-end/node-0.json", func(r *reporter.Run, _ *reporter.Job) { r.ExitCode = nil }, same...)
			ended(t, out+"/cut-off/node-0.json", func(r *reporter.Run, _ *reporter.Job) { r.Incomplete = "a crash" }, same...)
			write(t, out+"/damaged/node-0.json", `{"schema":"perfagent.report/1","run":`)
			write(t, out+"/file.json", "{}")
		}, only(7)},
		"a number that is not known of all": {func(out string) {
			ended(t, out+"/a/node-0.json", func(r *reporter.Run, j *reporter.Job) {
				took(7)(r, j)
				j.PeakMemoryMB, j.CPUAtLeast = 0, true
			}, same...)
		}, &reporter.Earlier{Runs: 1, WallSeconds: reporter.Spread{Min: 7, Median: 7, Max: 7}}},
	} {
		out := t.TempDir()
		c.fill(out)
		if name == "no directory" {
			out = filepath.Join(out, "x")
		}
		check.Equal(t, catalog.Earlier(out, "node-0", slices.Clone(same), time.Now().Add(time.Minute)), c.want, "%s",
			name)
		if got := catalog.Earlier(out, "node-0", same, time.Now()); got != nil {
			t.Errorf("%s: result after the deadline = %v, want nil", name, got)
		}
	}
}
