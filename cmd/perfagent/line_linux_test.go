package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// If stderr is not a terminal, the one-line summary is printed after a failure. After a success, it is printed only
// under a scheduler or in CI.
func TestSummary_PrintsLineOnlyAfterFailureOrInBatch(t *testing.T) {
	t.Parallel()
	const good, bad = `^perfagent: Succeeded after \S.*?\. Page: perfagent-out/\S+/node-0\.html\n$`,
		`^perfagent: Failed \(exit 9\) after \S.*?\. Read its own output: .*\. Page: perfagent-out/\S+/node-0\.html\n$`
	for _, c := range []struct {
		name, exit string
		flags, env []string
		want       string // "" = no output
	}{
		{name: "success", exit: "0"},
		{name: "a failure", exit: "9", want: bad},
		{name: "a scheduler", exit: "0", env: []string{"SLURM_JOB_ID=77"}, want: `^perfagent: Succeeded .* Page: perfagent-out/77/node-0\.html\n$`},
		{name: "CI", exit: "0", env: []string{"CI=true"}, want: good},
		{name: "a failure in CI", exit: "9", env: []string{"CI=true"}, want: bad},
		{name: "CI is false", exit: "0", env: []string{"CI=false"}},
		{name: "CI is 0", exit: "0", env: []string{"CI=0"}},
		{name: "CI is empty", exit: "0", env: []string{"CI=", "GITHUB_ACTIONS=", "KUBERNETES_SERVICE_HOST="}},
		{name: "GitHub", exit: "0", env: []string{"GITHUB_ACTIONS=true"}, want: good},
		{name: "Kubernetes", exit: "0", env: []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, want: good},
		{name: "torchrun without a scheduler", exit: "0", env: []string{"GROUP_RANK=0"}},
		{name: "line by flag", exit: "0", flags: []string{"--summary", "line"}, want: good},
		{name: "line by environment", exit: "9", env: []string{"PERFAGENT_SUMMARY=line"}, want: bad},
		{name: "never", exit: "9", flags: []string{"--summary", "never"}, env: []string{"CI=true", "SLURM_JOB_ID=77"}},
		{name: "no page", exit: "9", flags: []string{"--no-page"}, want: ` Report: perfagent-out/\S+/node-0\.json\n$`},
		{name: "a path that does not fit", exit: "9", flags: []string{"--run-id", "far", "--out", strings.Repeat("d/", 200)}, want: `^perfagent: Failed \(exit 9\) after .* More: perfagent show far, with the same --out\n$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, append(append([]string{"run"}, c.flags...), "--", "sh", "-c", "exit "+c.exit)...)
			o := clitest.RunCommand(t, with(with(cmd, "PERFAGENT_NO_PAGE=0"), c.env...))
			if c.want == "" && o.Err != "" || !regexp.MustCompile(c.want).MatchString(o.Err) || strings.Count(o.Err, "\n") > 1 || o.Out != "" {
				t.Errorf("stdout %q, stderr %q; want no stdout, and stderr to match %q", o.Out, o.Err, c.want)
			}
		})
	}
}

// On a terminal, --summary line prints the line instead of the summary.
func TestSummary_LineReplacesSummaryOnTerminal(t *testing.T) {
	t.Parallel()
	screen, code := clitest.OnTerminal(t, clitest.Perfagent(t, "run", "--summary", "line", "--run-id", "r", "--", "sh", "-c", "exit 3")).End()
	want := regexp.MustCompile(`^perfagent: Failed \(exit 3\) after \S.*?\. .* Page: perfagent-out/r/node-0\.html\r\n$`)
	if code != 3 || !want.MatchString(screen) {
		t.Errorf("exit code %d, screen %q; want 3 and only the line", code, screen)
	}
}

// After an OOM kill, the line names the limit and the memory to request, even for a very short job.
func TestSummary_LineAfterOOMKillNamesLimitAndRequest(t *testing.T) {
	cmd := clitest.Perfagent(t, "run", "--run-id", "4711", "--disk-path", "/dev", "--", "sh", "-c", "exec "+verdictHog)
	o := mustExit(t, 137, verdictInside(with(cmd, "SLURM_JOB_ID=4711"), verdictGroup(t, 64)))
	want := `^perfagent: Out of memory: killed at the limit of 64 MiB after \S.*?\. Ask for 96 MiB or more: .* Page: perfagent-out/4711/node-0\.html\n$`
	if !regexp.MustCompile(want).MatchString(o.Err) {
		t.Errorf("stderr %q, want %s", o.Err, want)
	}

	shown := insideIn(t, o.Dir, "show", "perfagent-out/4711/node-0.json")
	if !regexp.MustCompile(`(?ms)^ +#SBATCH --mem=96M$.*^memory     \S{10} +100 %  of 64 MiB \(peak\)$`).MatchString(shown.Out) {
		t.Errorf("show lacks the line --mem=96M, or the memory at 100 %% of 64 MiB:\n%s", shown.Out)
	}
}

// If a job succeeds although the kernel killed one of its processes, the line is printed as after a failure.
func TestSummary_LineReportsKillThatTheJobSurvived(t *testing.T) {
	cmd := clitest.Perfagent(t, "run", "--disk-path", "/dev", "--", "sh", "-c", verdictHog+"; exit 0")
	o := mustExit(t, 0, verdictInside(cmd, verdictGroup(t, 64)))
	_, line, _ := strings.Cut("\n"+o.Err, "\nperfagent: ")
	if !regexp.MustCompile(`^Succeeded after \S.*?, although the kernel killed \d process(es)? of it for lack of memory\. Set the limit to 96 MiB or more: .*\n$`).MatchString(line) {
		t.Errorf("stderr %q, want the line of a success with a process that the kernel killed", o.Err)
	}
}
