package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// output returns what a command line prints, which must succeed and say nothing on stderr.
func output(t *testing.T, args ...string) string {
	t.Helper()
	o := call(args...)
	if o.Code != 0 || o.Err != "" {
		t.Fatalf("%v: exit code %d, stderr %q", args, o.Code, o.Err)
	}
	return o.Out
}

// The help texts are golden files: -update rewrites them.
func TestHelp_Golden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "run", "attach", "sidecar", "show", "watch", "merge", "plot", "diff", "push", "mark", "phase", "record", "metrics", "version", "completion"} {
		t.Run(name, func(t *testing.T) {
			args := []string{name, "--help"}
			if name == "" {
				args, name = args[1:], "perfagent"
			}
			got := output(t, args...)
			golden := filepath.Join("testdata", "help", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s is not current (go test ./cmd/perfagent -run Help -update):\n%s", golden, diff)
			}
			if args[0] == name && name != "completion" && name != "version" && !strings.Contains(got, "\nExamples:\n  perfagent "+name) &&
				!strings.Contains(got, "\nExamples:\n") {
				t.Error("no example")
			}
		})
	}
	if bare, help := output(t), output(t, "help"); bare != help || help != output(t, "--help") {
		t.Error("perfagent, perfagent help and perfagent --help differ")
	}
	if output(t, "help", "run") != output(t, "run", "--help") {
		t.Error("perfagent help run and perfagent run --help differ")
	}
}

// The order of the table is a contract.
var metricOrder = []string{
	"max_t_cpu_pct_per_cpu_avg", "cpu_avg_utilization_pct", "cpu_avg_utilization_at100_pct", "cpu_avg_utilization_over80_pct",
	"cpu_avg_utilization_over40_pct", "cpu_avg_utilization_over20_pct", "max_t_cpu_pct_per_cpu_min", "max_t_cpu_pct_per_cpu_max",
	"node_cpu_hours", "node_unused_cpu_hours", "max_t_mem_percent", "max_t_disk_usage_percent", "total_disk_io_read_mb",
	"total_disk_io_write_mb", "total_net_io_lo_sent_mb", "total_net_io_ext_sent_mb", "total_net_io_lo_recv_mb", "total_net_io_ext_recv_mb",
	"wall_seconds", "job_cpu_seconds", "job_max_rss_mb",
}

func TestMetrics_AreInTheirOrder(t *testing.T) {
	t.Parallel()
	var table []struct{ Name, Unit, Meaning, How string }
	if err := json.Unmarshal([]byte(output(t, "metrics", "--json")), &table); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range table {
		names = append(names, m.Name)
		if m.Unit == "" || m.Meaning == "" || m.How == "" {
			t.Errorf("incomplete: %+v", m)
		}
	}
	if diff := cmp.Diff(metricOrder, names[:min(len(metricOrder), len(names))]); diff != "" {
		t.Error(diff)
	}
	rest := names[len(metricOrder):]
	if len(rest) < 30 || !strings.HasPrefix(rest[0], "boot_") || !strings.Contains(rest[len(rest)-1], "gpu_{i}_") {
		t.Errorf("after them: %q", rest)
	}
	text := output(t, "metrics")
	at := 0
	for _, name := range names {
		next := strings.Index(text[at:], "\n"+name+" ")
		if next < 0 {
			t.Fatalf("%s does not follow in:\n%s", name, text)
		}
		at += next
	}
}

func TestCompletion_OfEveryShell(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text := output(t, "completion", shell)
		if !strings.Contains(text, "perfagent") {
			t.Errorf("%s: %q", shell, text)
		}
		if path, err := exec.LookPath(shell); err == nil && shell != "powershell" {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s -n: %v: %s", shell, err, out)
			}
		}
	}
	// __complete talks on stderr, too.
	if got := call("__complete", "sh"); got.Code != 0 || !strings.HasPrefix(got.Out, "show\t") {
		t.Errorf("sh completes to %+v", got)
	}
}
