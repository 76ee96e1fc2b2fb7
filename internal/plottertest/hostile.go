package plottertest

import (
	"maps"
	"strings"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// HostileStrings returns strings that, in a page without escaping, would run as a script, end an element, or hide the
// rest of the page.
func HostileStrings() map[string]string {
	const run = "window.pwned=1"
	return map[string]string{
		"script":          `</script><script>` + run + `</script>`,
		"script in upper": `</ScRiPt ><sCrIpT>` + run + `</SCRIPT>`,
		"image":           `<img src=x onerror=` + run + `>`,
		"svg":             `"><svg onload=` + run + `>`,
		"quotes": `' onmouseover='` + run + `' x="` + "`" + run + "`" +
			` onfocus=` + run + ` autofocus tabindex=1 "`,
		"frame":         `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
		"template":      `{{.}} {{template "node"}} {{printf "%s" .Command}} {{end}}`,
		"expression":    `${alert(1)} #{alert(1)} %00 \u003cscript\u003e \x3cscript\x3e`,
		"javascript":    `javascript:alert(1)//`,
		"data":          `data:text/html,<script>parent.pwned=1</script>`,
		"comment":       `<!-- <script>` + run + ` --!> `,
		"escaped twice": `<!--<script>&lt;/script&gt;</script><script>` + run + `</script>-->`,
		"cdata":         `]]><script>` + run + `</script><![CDATA[`,
		"ends of elements": `</title></style></textarea></noscript></xmp></svg></table></select></h1></body></html>` +
			`<script>` + run + `</script>`,
		"style": `</style><style>*{display:none!important}</style>`,
		"base and meta": `<base href="http://127.0.0.1:9/">` +
			`<meta http-equiv=refresh content="0;url=http://127.0.0.1:9/">`,
		"entities":        `&lt;script&gt;&#60;script&#62;&NotEqualTilde;&amp;amp;`,
		"line separators": "a\u2028" + run + "\u2029b\r\n\v\f\u0085" + run,
		"control":         "\x00\x01\x1b[31mred\x1b]0;title\x07\x7f\u009b31m",
		"direction":       "\u202egnp.exe\u202c \u2066\u2069\u200f\u061c\u200b\ufeff",
		"no UTF-8":        "\xff\xfe\xc0\x80<\xed\xa0\x80>\xf4\x90\x80\x80" + `<img src=x onerror=` + run + `>`,
		"UTF-7":           "+ADw-script+AD4-" + run + "+ADw-/script+AD4-",
		"prototype":       "__proto__",
		"constructor":     "constructor",
		"a number":        "1e309",
		"combined":        "Z" + strings.Repeat("\u0300\u0489", 200),
		"emoji":           "👩‍👩‍👧‍👦🏴‍☠️",
		"shell":           "`rm -rf ~` $(reboot) ; | & \\ \" '",
	}
}

// HostileReport returns a report of two nodes with evil in every text. A unique word follows evil in each text. marks
// holds these words by the position of the text.
func HostileReport(evil string) (r *reporter.Report, marks map[string]string) {
	marks = make(map[string]string)
	mark := func(where string) string {
		words := evil + "·" + where + "·"
		marks[where] = text.Printable(words)
		return words
	}

	r = Minute(0)
	r.Nodes["1"] = Minute(1).Nodes["1"]
	r.Run.ID = mark("run id")
	r.Run.Command = []string{mark("arg 0"), mark("arg 1"), mark("arg 2")}
	r.Run.Tags = map[string]string{mark("tag key"): mark("tag value")}
	r.Run.Signal = mark("signal of the run")
	r.Run.Incomplete = ""
	exit := 137
	r.Run.ExitCode = &exit
	for name, n := range r.Nodes {
		at := func(where string) string { return mark("node " + name + " " + where) }
		n.Host = &reporter.Host{
			Hostname: at("host"),
			BootID:   at("boot"),
			OS:       at("os"),
			Kernel:   at("kernel"),
			Arch:     at("arch"),
			CPUModel: at("CPU"),
			CPUs:     8,
			MemoryMB: 1024,
		}
		n.Sampling.Disks, n.Sampling.NICs = []string{"sda", at("disk")}, []string{at("nic"), "lo"}
		n.Agent.Version = at("version")
		n.Job.Signal = at("signal")
		n.Metrics = maps.Clone(n.Metrics)
		n.Metrics[at("metric")] = 42.5
		n.Job.Source, n.Job.Cgroup, n.Job.MemoryKind = host.JobFromGroup, at("group"), at("")
		delete(marks, "node "+name+" ") // the page omits an unknown kind of memory
		n.Limits = &reporter.Limits{
			CPUs:        2,
			CPUQuota:    2,
			MemoryMB:    512,
			CPUGroup:    at("CPU group"),
			MemoryGroup: at("memory group"),
		}
		n.GPUs = []reporter.GPU{
			{UUID: at("UUID"), Name: at("GPU"), OfJob: true, Throttle: []string{at("throttle")}},
			{Index: 7, Name: at("other GPU")},
		}
		n.Verdict = &reporter.Verdict{
			Cause:      at("cause"),
			Text:       at("verdict"),
			Evidence:   map[string]any{evil: evil},
			Conditions: []string{at("condition")},
		}
		delete(marks, "node "+name+" cause") // the cause is a part of the text
		n.Findings = []reporter.Finding{
			{ID: "memory_tight", Severity: evil, Text: at("finding")},
			{ID: "throttled", Severity: diagnosis.SeverityWarning, Text: at("warning")},
		}
		n.Missing = []reporter.Missing{
			{What: at("what"), Why: at("why")},
			{What: "max_t_mem_percent", Why: at("why of a metric")},
		}
		delete(n.Metrics, "max_t_mem_percent")
		n.Push = &reporter.Push{
			MLflow: reporter.PushState{
				State:          reporter.PushPending,
				RunID:          at("push run"),
				URI:            at("push URI"),
				Error:          at("push error"),
				ExperimentName: at("experiment"),
				ExperimentID:   at("experiment id"),
			},
		}
		n.Origin = at("origin")
		// The page omits unknown keys.
		n.Envelope = maps.Clone(n.Envelope)
		n.Envelope[evil] = n.Envelope["mem_percent"]
		n.Summaries = maps.Clone(n.Summaries)
		n.Summaries[evil] = reporter.Summary{Max: 1}
	}

	return r, marks
}

// HostileNumbers returns a report with the given values in all columns.
func HostileNumbers(values, times []float64) *reporter.Report {
	r := Report(0, Recording(len(values), 1e9, nil))
	n := r.Nodes["0"]
	for key := range n.Envelope {
		list := reporter.Numbers(values)
		if key == "timestamp" {
			list = nil
			for _, v := range times {
				list = append(list, float64(Start().Unix())+v)
			}
		}
		n.Envelope[key] = reporter.Band{Min: list, Mean: list, Max: list}
	}
	for name := range n.Metrics {
		if len(values) > 0 {
			n.Metrics[name] = values[0]
		}
	}
	return r
}
