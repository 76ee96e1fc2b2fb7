package main

import (
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// output returns the stdout of a command line, which must succeed with an empty stderr.
func output(t *testing.T, args ...string) string {
	t.Helper()
	o := call(args...)
	if o.Code != 0 || o.Err != "" {
		t.Fatalf("%v: exit code %d, stderr %q; want 0 and an empty stderr", args, o.Code, o.Err)
	}
	return o.Out
}

// The help texts equal the golden files. -update rewrites them.
func TestHelp_MatchesGoldenFiles(t *testing.T) {
	t.Parallel()
	root := newRoot(streams{out: io.Discard, err: io.Discard}, "")
	help := make(map[string][]string) // arguments by name of the golden file
	for _, command := range root.Commands() {
		help[command.Name()] = []string{command.Name(), "--help"}
		if records(command) {
			help[command.Name()+"-h"] = []string{command.Name(), "-h"}
		}
	}
	help["perfagent"] = []string{"--help"}
	for name, args := range help {
		t.Run(name, func(t *testing.T) {
			got := output(t, args...)
			reportertest.CompareGolden(t, filepath.Join("testdata", "help", name+".txt"), []byte(got), *update)
			if name != "perfagent" && name != "help" && !strings.Contains(got, "\nExamples:\n") {
				t.Errorf("help of %s has no section Examples", name)
			}
		})
	}
	for _, alike := range [][]string{
		{"", "help", "--help", "-h"}, {"help run", "run --help", "run -q --help -- true"}, {"run -h", "run -qh -- true"},
		{"help show", "show --help", "show -h"}, {"mark -h", "mark --help"},
	} {
		for _, typed := range alike {
			if output(t, strings.Fields(typed)...) != output(t, strings.Fields(alike[0])...) {
				t.Errorf("perfagent %s and perfagent %s print different help", alike[0], typed)
			}
		}
	}
}

// run -h shows the flags that most people need, on one screen. run --help shows all flags. No help lists the hidden
// command.
func TestHelp_BriefHelpHasCommonFlags(t *testing.T) {
	t.Parallel()
	brief, all := output(t, "run", "-h"), output(t, "run", "--help")
	if lines := strings.Count(brief, "\n"); lines > 38 {
		t.Errorf("run -h: %d lines, want at most 38", lines)
	}
	var shown []string
	for _, match := range regexp.MustCompile(`(?m)^  (?:-\w,|   ) --([\w-]+)`).FindAllStringSubmatch(brief, -1) {
		shown = append(shown, match[1])
	}
	want := []string{"out", "run-id", "interval", "tag", "quiet", "summary", "stop-if", "cgroup", "mlflow", "listen", "store", "ops"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("flags of run -h (-want +got):\n%s", diff)
	}
	newRun(streams{}).Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(all, " --"+f.Name+" ") {
			t.Errorf("run --help lacks --%s", f.Name)
		}
	})
	_, experts, _ := strings.Cut(all, "\nFor experts:\n")
	for _, flag := range []string{"--compat", "--reader", "--log-format"} {
		if !strings.Contains(experts, flag) || strings.Contains(brief, flag) {
			t.Errorf("flag %s must be in the last group of --help, and not in -h", flag)
		}
	}
	if strings.Contains(output(t, "--help"), "install") {
		t.Error("perfagent --help lists install, which is only for the container image")
	}
}

// Only the called command is constructed, because constructing the others would delay a job.
func TestNewRoot_MakesOnlyTheCalledCommand(t *testing.T) {
	t.Parallel()
	s := streams{out: io.Discard, err: io.Discard}
	for _, all := range []string{"", "help", "completion", "rnu", "--version", "--", "__complete"} {
		if called := calledIn([]string{all, "run"}); called != "" {
			t.Errorf("calledIn([%q run]) = %q, want none: all commands must be made", all, called)
		}
	}

	for _, cmd := range newRoot(s, "").Commands() {
		name := cmd.Name()
		if name == "help" || name == "completion" {
			continue
		}
		made := make(map[string]int)
		for _, c := range newRoot(s, calledIn([]string{name, "help"})).Commands() {
			made[c.Name()]++
		}
		if diff := cmp.Diff(map[string]int{"help": 1, name: 1}, made); diff != "" {
			t.Errorf("commands made for %s (-want +got):\n%s", name, diff)
		}
	}
}

// The help fits a terminal of 80 columns and contains no default text of cobra.
func TestHelp_FitsATerminal(t *testing.T) {
	t.Parallel()
	root := newRoot(streams{out: io.Discard, err: io.Discard}, "")
	for _, cmd := range append(root.Commands(), root) {
		var out strings.Builder
		check.Must(t, printHelp(&out, cmd, true))
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSuffix(line, "\n"); text.Width(line) > 80 || strings.TrimRight(line, " ") != line {
				t.Errorf("help of %s: %d columns, want at most 80 and no space at the end: %q",
					cmd.Name(), text.Width(line), line)
			}
			if !strings.HasPrefix(line, " ") && text.ASCII(line) != line {
				t.Errorf("help of %s: running text is not ASCII: %q", cmd.Name(), line)
			}
		}
		if cmd.HasParent() && cmd.GroupID == "" {
			t.Errorf("command %s has no group, so help does not list it", cmd.Name())
		}
		for _, foreign := range []string{"[command]", "help for", "Available Commands", "Global Flags"} {
			if strings.Contains(out.String(), foreign) {
				t.Errorf("help of %s contains %q, a default text of cobra", cmd.Name(), foreign)
			}
		}
	}
}

// metricOrder is the order of the first metrics in the table. Users rely on it.
var metricOrder = []string{
	"max_t_cpu_pct_per_cpu_avg", "cpu_avg_utilization_pct", "cpu_avg_utilization_at100_pct", "cpu_avg_utilization_over80_pct",
	"cpu_avg_utilization_over40_pct", "cpu_avg_utilization_over20_pct", "max_t_cpu_pct_per_cpu_min", "max_t_cpu_pct_per_cpu_max",
	"node_cpu_hours", "node_unused_cpu_hours", "max_t_mem_percent", "max_t_disk_usage_percent", "total_disk_io_read_mb",
	"total_disk_io_write_mb", "total_net_io_lo_sent_mb", "total_net_io_ext_sent_mb", "total_net_io_lo_recv_mb", "total_net_io_ext_recv_mb",
	"wall_seconds", "job_cpu_seconds", "job_max_rss_mb",
}

func TestMetrics_ListsTheMetricsInOrder(t *testing.T) {
	t.Parallel()
	var table []struct{ Name, Unit, Meaning, How string }
	check.Must(t, json.Unmarshal([]byte(output(t, "metrics", "--json")), &table))
	var names []string
	for _, m := range table {
		names = append(names, m.Name)
		if m.Unit == "" || m.Meaning == "" || m.How == "" {
			t.Errorf("metric lacks a unit, a meaning or a method: %+v", m)
		}
	}
	if diff := cmp.Diff(metricOrder, names[:min(len(metricOrder), len(names))]); diff != "" {
		t.Errorf("the first metrics (-want +got):\n%s", diff)
	}
	rest := names[len(metricOrder):]
	if len(rest) < 30 || !strings.HasPrefix(rest[0], "boot_") || !strings.Contains(rest[len(rest)-1], "gpu_{i}_") {
		t.Errorf("metrics after those in metricOrder: %q; want at least 30, from boot_ to gpu_{i}_", rest)
	}
	all := allMetrics()
	slices.SortStableFunc(all, reporter.ByGroup) // the order of the printed table
	printed := output(t, "metrics")
	at := 0
	for _, m := range all {
		next := strings.Index(printed[at:], "\n"+m.Name+" ")
		if next < 0 {
			t.Fatalf("metric %s is missing or out of order in:\n%s", m.Name, printed)
		}
		at += next
	}
}

func TestCompletion_ScriptOfEveryShellIsValid(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script := output(t, "completion", shell)
		if !strings.Contains(script, "perfagent") || output(t, "completion", shell, "--no-descriptions") == script {
			t.Errorf("script for %s lacks perfagent, or --no-descriptions does not change it: %q", shell, script)
		}
		if path, err := exec.LookPath(shell); err == nil && shell != "powershell" && !testing.Short() {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s -n rejects the script: %v: %s", shell, err, out)
			}
		}
	}
	// output requires an empty stderr, but __complete writes to stderr.
	if got := call("__complete", "sh"); got.Code != 0 || !strings.HasPrefix(got.Out, "show\t") {
		t.Errorf("\"sh\" completes to %+v, want show first", got)
	}
}
