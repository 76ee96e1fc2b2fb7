package reportertest

import (
	"math"
	"strings"

	"github.com/perfagent/perfagent/reporter"
)

// HostileTexts lists texts that would have an effect in a page, a spreadsheet, a terminal or a table unless they are
// escaped.
var HostileTexts = []string{
	`</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `</details><h1>big</h1>`, `<!-- `, `]]>`,
	"@octocat please look", "#1 fixes #2", "https://evil.example/x", "www.evil.example", "mail@evil.example",
	`[click](javascript:alert(1))`, `![x](https://evil.example/x.png)`, "| a | b " +
		"|", `\| a \\| b`, `a\`, `\`, "|", "||", `\\|`,
	"`", "``", "```", "````text", "~~~", "`a`b``c```", "```\n# heading\n```",
	"\n\n# heading\n\n| a |\n|---|\n", "\r\n", "\n", " ", "\t",
	"# heading", "- list", "1. list", "> quote", "---", "===", "***bold***", "__bold__", "~~gone~~",
	"$x^2$", "&lt;b&gt; &amp; &#60;",
	":tada:", "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "＝1+1", "'=1", `"`, `a,b`, `"a","b"`, ",", ";",
	Hostile, "\x00", "\xff\xfe", strings.Repeat("`", 500), strings.Repeat("|", 500), strings.Repeat("x", 5000),
}

// HostileReport returns a report with the given text in every field that can hold a text.
func HostileReport(text string) *reporter.Report {
	in := Input(0, 4, 1, text)
	in.Run.ID, in.Run.Command = text, []string{text, "", text + text}
	in.Run.Tags = map[string]string{text: text}
	in.Recording.Host.Hostname = text
	in.Missing = []reporter.Missing{{What: text, Why: text}, {What: "journal", Why: text}}
	in.Push = reporter.PushState{State: reporter.PushPending, URI: text, Error: text, RunID: text}

	r := reporter.New(in)
	n := r.Nodes["0"]
	n.Job.Source, n.Job.Cgroup, n.Job.MemoryKind = "cgroup", text, text
	n.Limits = &reporter.Limits{CPUs: 2, CPUQuota: 2, MemoryMB: 512, CPUGroup: text, MemoryGroup: text}
	n.GPUs = []reporter.GPU{{UUID: text, Name: text, OfJob: true, Throttle: []string{text}}, {Name: text}}
	n.Mounts = []reporter.Mount{{Type: text, Source: text, MountedOn: []string{text, text},
		Operations: []reporter.MountOperation{{Name: text}}}}
	n.Verdict = &reporter.Verdict{Cause: text, Text: text, Evidence: map[string]any{text: text},
		Conditions: []string{text}}
	n.Findings = []reporter.Finding{{ID: "memory_tight", Severity: text, Text: text}, {ID: "throttled", Text: text +
		"b"}}
	r.Run.Verdict = n.Verdict

	n.Metrics[text] = 1.5
	n.Summaries[text] = n.Summaries["mem_percent"]
	n.Envelope[text] = n.Envelope["mem_percent"]
	n.Samples.Keys = append(n.Samples.Keys, text)
	n.Samples.Columns = append(n.Samples.Columns, []float64{1, 2, math.NaN(), 4})
	return r
}

// HostileReports returns three hostile reports: of one node, of several nodes, and of an incomplete run.
func HostileReports(text string) map[string]*reporter.Report {
	many := HostileReport(text)
	many.Nodes["1"] = HostileReport(text + "b").Nodes["0"]
	many.Nodes[text] = many.Nodes["1"]
	many.Nodes["3"] = nil
	incomplete := HostileReport(text)
	incomplete.Run.Incomplete = text
	return map[string]*reporter.Report{"one": HostileReport(text), "many": many, "incomplete": incomplete}
}

// Hostile contains control characters that affect a terminal.
const Hostile = "a\x1b[31mred\x1b]0;title\a\rb\n\tc\u202ed\u200be\u2028f\xffg\x7fh\u009b2Ji \\ \u65e5\u672c\u8a9e"
