package reporter

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
)

// showHostile are texts that would do something in a page, a spreadsheet, a terminal or
// a table, if they were not taken as text.
var showHostile = []string{
	`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `</details><h1>big</h1>`, `<!-- `, `]]>`,
	"@octocat please look", "#1 fixes #2", "https://evil.example/x", "www.evil.example", "mail@evil.example",
	`[click](javascript:alert(1))`, `![x](https://evil.example/x.png)`, "| a | b |", `\| a \\| b`, `a\`, `\`, "|", "||", `\\|`,
	"`", "``", "```", "````text", "~~~", "`a`b``c```", "```\n# heading\n```", "\n\n# heading\n\n| a |\n|---|\n", "\r\n", "\n", " ", "\t",
	"# heading", "- list", "1. list", "> quote", "---", "===", "***bold***", "__bold__", "~~gone~~", "$x^2$", "&lt;b&gt; &amp; &#60;",
	":tada:", "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "＝1+1", "'=1", `"`, `a,b`, `"a","b"`, ",", ";",
	hostile, "\x00", "\xff\xfe", strings.Repeat("`", 500), strings.Repeat("|", 500), strings.Repeat("x", 5000),
}

// showReport is a report in which a text stands everywhere where one can.
func showReport(text string) *Report {
	in := inputOf(0, 4, 1, text)
	in.Run.ID, in.Run.Command = text, []string{text, "", text + text}
	in.Run.Tags = map[string]string{text: text}
	in.Recording.Host.Hostname = text
	in.Missing = []Missing{{text, text}, {"journal", text}}
	in.Push = PushState{State: PushPending, URI: text, Error: text, RunID: text}
	r := New(in)
	n := r.Nodes["0"]
	n.Job.Source, n.Job.Cgroup, n.Job.MemoryKind = "cgroup", text, text
	n.Limits = &Limits{CPUs: 2, CPUQuota: 2, MemoryMB: 512, CPUGroup: text, MemoryGroup: text}
	n.GPUs = []GPU{{UUID: text, Name: text, OfJob: true, Throttle: []string{text}}, {Name: text}}
	n.Verdict = &Verdict{Cause: text, Text: text, Evidence: map[string]any{text: text}, Conditions: []string{text}}
	n.Findings = []Finding{{ID: "memory_tight", Severity: text, Text: text}, {ID: "throttled", Text: text + "b"}}
	r.Run.Verdict = n.Verdict
	n.Metrics[text] = 1.5
	n.Summaries[text] = n.Summaries["mem_percent"]
	n.Envelope[text] = n.Envelope["mem_percent"]
	n.Samples.Keys = append(n.Samples.Keys, text)
	n.Samples.Columns = append(n.Samples.Columns, []float64{1, 2, math.NaN(), 4})
	return r
}

// showReports are showReport for one node and for several.
func showReports(text string) map[string]*Report {
	many := showReport(text)
	many.Nodes["1"] = showReport(text + "b").Nodes["0"]
	many.Nodes[text] = many.Nodes["1"]
	many.Nodes["3"] = nil
	incomplete := showReport(text)
	incomplete.Run.Incomplete = text
	return map[string]*Report{"one": showReport(text), "many": many, "incomplete": incomplete}
}

// showGaps is a report of a few samples in which some were not measured.
func showGaps() *Report {
	rec := collector.NewRecording(host.Instant{Wall: testStart}, time.Second, 4)
	for i := range 7 {
		var s collector.Sample
		for c := range s.Values {
			s.Values[c], s.Weights[c] = float64(i)*1.5, 1
			if i%3 == 1 && collector.Column(c).Source() != "clock" {
				s.Values[c] = math.NaN()
			}
		}
		s.Values[collector.CPUMax] = math.NaN()
		s.Values[collector.Timestamp] = float64(testStart.Unix()) + float64(i) + 0.25
		rec.Add(&s)
	}
	rec.End = host.Instant{Wall: testStart, Mono: 7 * time.Second, Boot: 7 * time.Second}
	return New(Input{Run: Run{ID: "gaps"}, Recording: rec})
}

// showGolden holds text against a golden file.
func showGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "show", name)
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (go test -update writes it anew):\n%s\nwant:\n%s", file, got, want)
	}
}

// showNodes is a report of so many nodes, of which some failed.
func showNodes(n int, failed ...int) *Report {
	node := New(inputOf(0, 2, 0, "")).Nodes["0"]
	r := &Report{Schema: Schema, Run: Run{ID: "many", Start: Time{testStart}, End: Time{testStart.Add(2 * time.Second)}, WallSeconds: 2},
		Nodes: make(map[string]*Node)}
	for i := range n {
		one, machine, job := *node, *node.Host, *node.Job
		machine.Hostname = fmt.Sprintf("compute-%04d.cluster.example.org", i)
		for _, f := range failed {
			if f == i {
				job.ExitCode = 9
			}
		}
		one.Host, one.Job = &machine, &job
		r.Nodes[fmt.Sprint(i)] = &one
	}
	return r
}
