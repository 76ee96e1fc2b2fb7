package summary

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// killedReport returns the report of a job that the kernel killed at its memory limit after 9.6 s.
func killedReport() *reporter.Report {
	n := barNode()
	n.GPUs, n.Limits.MemoryMB = nil, 2048
	n.Verdict = &reporter.Verdict{
		Cause: diagnosis.CauseOOMCgroup,
		Text: "killed by the kernel: python3 (process 14448) hit the memory limit of 2.0 GiB of its control group " +
			"at 12:00:09 UTC; peak 2.0 GiB",
		Evidence: map[string]any{"exit_code": 137.0, "limit_mb": 2048.0, "peak_mb": 2048.0, "oom_kills": 1.0, "limit_kills": 1.0,
			"time": "2024-05-01T12:00:09.5Z"},
	}
	r := barReport(n)
	r.Run.WallSeconds = 9.6
	r.Run.ID, r.Run.ExitCode, r.Run.Signal, r.Run.Verdict = "4711", new(137), "SIGKILL", n.Verdict
	return r
}

func TestLine(t *testing.T) {
	t.Parallel()
	good := func(n *reporter.Node, wall float64) *reporter.Report {
		r := barReport(n)
		r.Run.ExitCode, r.Run.WallSeconds = new(0), wall
		return r
	}
	survived := good(withoutGPUs(barNode()), 2)
	survived.Nodes["0"].Verdict = &reporter.Verdict{Cause: diagnosis.CauseExited, Text: "exited with code 0, although its control group had 1 out-of-memory kill",
		Evidence: map[string]any{"exit_code": 0.0, "oom_kills": 1.0, "limit_kills": 1.0}}
	survived.Run.Verdict = survived.Nodes["0"].Verdict
	failed := good(withoutGPUs(barNode()), 2)
	failed.Run.ExitCode, failed.Run.Verdict = new(9), &reporter.Verdict{Cause: diagnosis.CauseExited, Text: "exited with code 9\n\x1b[31m"}

	for name, c := range map[string]struct {
		report     *reporter.Report
		path, want string
		failed     bool
	}{
		"killed for memory": {killedReport(), "perfagent-out/4711/node-0.html", "perfagent: Out of memory: killed at the limit of 2 GiB after 9.6 s. " +
			"Set the limit to 3 GiB or more: the job needed more. Page: perfagent-out/4711/node-0.html\n", true},
		"survived kill": {survived, "p", "perfagent: Succeeded after 2.0 s, although the kernel killed 1 process of it for lack of memory. " +
			"Set the limit to 12 GiB or more: the kernel killed 1 process at the memory limit of 8 GiB. Report: p\n", true},
		"failed":     {failed, "p", "perfagent: Failed (exit 9) after 2.0 s. Read its own output: it exited by itself. Report: p\n", true},
		"18 minutes": {good(barNode(), 1080), "p.html", "perfagent: Succeeded after 18 min 00 s. Page: p.html\n", false},
		"two hours":  {good(withoutGPUs(barNode()), 7320), "p.html", "perfagent: Succeeded after 2 h 02 min. Page: p.html\n", false},
		"no file":    {failed, "", "perfagent: Failed (exit 9) after 2.0 s. Read its own output: it exited by itself.\n", true},
	} {
		check.Equal(t, Line(c.report, c.path, nil), c.want, "%s: line", name)
		check.Equal(t, HasFailed(c.report), c.failed, "%s: failed", name)
	}
}

// The cause is cut first, then the action. The path is never cut.
func TestLine_CutsCauseThenActionButNotPath(t *testing.T) {
	t.Parallel()
	path := "perfagent-out/4711/node-0.html"
	long := killedReport()
	long.Run.Verdict.Cause, long.Run.Verdict.Evidence["path"] = diagnosis.CauseDiskFull, strings.Repeat("ß", 500)
	got := Line(long, path, nil)
	if !strings.HasSuffix(got, "ß… Page: "+path+"\n") || len(got) < MaxLine-3 {
		t.Errorf("line of %d bytes, want nearly MaxLine with a cut cause, a cut action and the path: %q", len(got), got)
	}

	far := strings.Repeat("d/", 140)
	if got := Line(killedReport(), far, nil); !strings.HasSuffix(got, "… Report: "+far+"\n") {
		t.Errorf("line with a long path %q, want the whole path", got)
	}
	for path, want := range map[string]string{
		"perfagent-out/4711/" + strings.Repeat("h", 300) + ".json": "… More: perfagent show 4711\n",
		"my runs/4711/" + strings.Repeat("h", 300) + ".json":       "… More: perfagent show 'my runs/4711'\n",
		strings.Repeat("d/", 200) + "4711/node-0.json":             "… More: perfagent show 4711, with the same --out\n",
	} {
		if got := Line(long, path, nil); !strings.HasSuffix(got, want) {
			t.Errorf("line for the overlong path %s is %q, want %q at the end", path, got, want)
		}
	}

	ascii := func(s string) string { return strings.NewReplacer("ß", `\u00df`, "…", "~").Replace(s) }
	if got := Line(long, path, ascii); len(got) > MaxLine || strings.ContainsFunc(got, func(r rune) bool { return r >= utf8.RuneSelf }) {
		t.Errorf("ASCII line of %d bytes, want at most MaxLine and only ASCII: %q", len(got), got)
	}
}

// FuzzLine checks that Line returns one line of printable text for any report, with the path of the report or the
// command that shows it.
func FuzzLine(f *testing.F) {
	for _, words := range reportertest.HostileTexts {
		f.Add(words, "out/node-0.html")
		f.Add("exited with code 3", words)
	}
	f.Fuzz(func(t *testing.T, words, path string) {
		for name, r := range reportertest.HostileReports(words) {
			r.Run.ID = "r"
			line := Line(r, path, nil)
			body, ended := strings.CutSuffix(line, "\n")
			if !ended || len(line) > MaxLine || !strings.HasPrefix(line, "perfagent: ") || body != text.Printable(body) || !utf8.ValidString(line) {
				t.Fatalf("%s: line of %d bytes, want one printable line of at most MaxLine bytes: %q", name, len(line),
					line)
			}
			if shown := text.Printable(path); shown != "" && !strings.HasSuffix(body, "Page: "+shown) && !strings.HasSuffix(body, "Report: "+shown) &&
				!strings.Contains(body, "More: perfagent show ") {
				t.Fatalf("%s: line ends in neither the path nor a command: %q", name, line)
			}
		}
	})
}

var (
	fewer = reporter.Finding{ID: "cpus_unused", Severity: diagnosis.SeverityWarning, Text: "ask for 2", Evidence: map[string]any{"ask_cpus": 2.0}}
	less  = reporter.Finding{ID: "memory_unused", Severity: diagnosis.SeverityInfo, Text: "ask for 640 MiB", Evidence: map[string]any{"ask_mb": 640.0}}
)

// advised returns the node of a job with findings.
func advised(command string, findings ...reporter.Finding) *reporter.Node {
	n := barNode()
	n.Findings, n.Metrics[reporter.MetricLimitMemory], n.Command = findings, 34, strings.Fields(command)
	return n
}

// withoutGPUs returns n without its GPUs.
func withoutGPUs(n *reporter.Node) *reporter.Node {
	n.GPUs = nil
	return n
}

// The line for Slurm requests memory per node, CPU or GPU, as the run did. If the number of GPUs is unknown, it
// requests none.
func TestAdvice_SlurmLineKeepsUnitOfMemoryRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		per   string
		nodes []*reporter.Node
		want  string
	}{
		"per node":                        {"", []*reporter.Node{advised("x", fewer)}, "#SBATCH --cpus-per-task=2 --mem=6G"},
		"per CPU":                         {reporter.MemoryPerCPU, []*reporter.Node{advised("x", fewer)}, "#SBATCH --cpus-per-task=2 --mem-per-cpu=3072M"},
		"per CPU, same number of CPUs":    {reporter.MemoryPerCPU, []*reporter.Node{advised("x", less)}, "#SBATCH --mem-per-cpu=160M"},
		"per GPU":                         {reporter.MemoryPerGPU, []*reporter.Node{advised("x", less)}, "#SBATCH --mem-per-gpu=160M"},
		"memory option in the command":    {"", []*reporter.Node{advised("java -Xmx3g", fewer)}, "#SBATCH --cpus-per-task=2"},
		"unknown need of one node":        {"", []*reporter.Node{advised("x", fewer, less), advised("java -Xmx3g", fewer)}, "#SBATCH --cpus-per-task=2"},
		"per GPU, unknown number of GPUs": {reporter.MemoryPerGPU, []*reporter.Node{withoutGPUs(advised("x", less))}, ""},
	} {
		r := barReport(c.nodes...)
		r.Run.Platform, r.Run.MemoryPer = reporter.PlatformSlurm, c.per
		check.Equal(t, Conclude(r).Paste, c.want, "%s: line to paste", name)
	}
}

// The line to paste has the syntax of the platform where the run was started.
func TestAdvice_LineToPasteHasSyntaxOfPlatform(t *testing.T) {
	t.Parallel()
	with := func(findings ...reporter.Finding) *reporter.Node { return withoutGPUs(advised("", findings...)) }
	unlimited, unmeasured := with(fewer), with(fewer)
	unlimited.Limits.MemoryMB = series.Unknown()
	unmeasured.Limits.MemoryMB = series.Unknown()
	delete(unmeasured.Metrics, reporter.MetricJobMemoryPeak)
	full := with(fewer)
	full.Metrics[reporter.MetricJobMemoryPeak] = 7000

	for name, c := range map[string]struct {
		nodes []*reporter.Node
		want  [3]string
	}{
		"no advice":                 {[]*reporter.Node{with()}, [3]string{}},
		"fewer CPUs":                {[]*reporter.Node{with(fewer)}, [3]string{"#SBATCH --cpus-per-task=2 --mem=6G", `resources: {requests: {cpu: "2", memory: 6Gi}}`, "docker run --cpus=2 --memory=6g"}},
		"less memory":               {[]*reporter.Node{with(less)}, [3]string{"#SBATCH --mem=640M", `resources: {requests: {memory: 640Mi}}`, "docker run --memory=640m"}},
		"no limit":                  {[]*reporter.Node{unlimited}, [3]string{"#SBATCH --cpus-per-task=2 --mem=6G", `resources: {requests: {cpu: "2", memory: 6Gi}}`, "docker run --cpus=2 --memory=6g"}},
		"unknown memory need":       {[]*reporter.Node{unmeasured}, [3]string{"#SBATCH --cpus-per-task=2", `resources: {requests: {cpu: "2"}}`, "docker run --cpus=2"}},
		"at least 1.25 × the peak":  {[]*reporter.Node{full}, [3]string{"#SBATCH --cpus-per-task=2 --mem=10G", `resources: {requests: {cpu: "2", memory: 10Gi}, limits: {memory: 10Gi}}`, "docker run --cpus=2 --memory=10g"}},
		"need of the fullest node":  {[]*reporter.Node{with(fewer, less), with(), nil}, [3]string{"#SBATCH --mem=6G", `resources: {requests: {memory: 6Gi}}`, "docker run --memory=6g"}},
		"one node needs its CPUs":   {[]*reporter.Node{with(fewer), with()}, [3]string{}},
		"killed in a short run":     {[]*reporter.Node{killedReport().Nodes["0"]}, [3]string{"#SBATCH --mem=3G", `resources: {requests: {memory: 3Gi}, limits: {memory: 3Gi}}`, "docker run --memory=3g"}},
		"finding without an amount": {[]*reporter.Node{with(reporter.Finding{ID: "throttled", Text: "ask for more"})}, [3]string{}},
	} {
		for i, platform := range []string{reporter.PlatformSlurm, reporter.PlatformKubernetes, reporter.PlatformPodman} {
			r := barReport(c.nodes...)
			r.Run.Platform = platform
			check.Equal(t, Conclude(r).Paste, c.want[i], "%s, %s: line to paste", name, platform)
			r.Run.Platform = ""
			check.Equal(t, Conclude(r).Paste, "", "%s: line to paste without a platform", name)
		}
	}
}

// For several nodes, the first line names the failed node, and the summary has the command of each node.
func TestWrite_FirstLineNamesFailedNode(t *testing.T) {
	t.Parallel()
	var inputs []reporter.SourceReport
	for i, code := range []int{0, 5, 0} {
		in := reportertest.Input(i, 2, code, "")
		if code != 0 {
			in.Run.Command = []string{"sh", "-c", "exit 5"}
		}
		inputs = append(inputs, reporter.SourceReport{Path: fmt.Sprint(i), Report: reporter.New(in)})
	}
	r := merged(t, inputs...)
	words := summaryOf(t, r, whole)
	if first, _, _ := strings.Cut(words, "\n"); first != "perfagent: Node 1 failed (exit 5) after 2.0 s." ||
		!strings.Contains(words, "2 of 3 nodes succeeded.") {
		t.Errorf("summary does not begin with the failed node, or lacks the count of 2 of 3 nodes:\n%s", words)
	}
	for _, words := range []string{words, showMarkdown(t, r)} {
		check.Contains(t, "summary", words,
			"command     nodes 0, 2: python train.py --epochs 3\n            node 1: sh -c 'exit 5'\n")
	}
	again := merged(t, reporter.SourceReport{Path: "a", Report: r}, inputs[1])
	check.Equal(t, summaryOf(t, again, whole), words, "summary after merging the report with its input")
}
