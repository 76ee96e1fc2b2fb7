package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// badOptions has invalid values of flags and variables of perfagent run and sidecar.
var badOptions = map[string][]string{
	"--interval":   {"fast", "9ms", "0", "-1s", ""},
	"--max-length": {"1", "-1", "many", "99999999999"},
	"--out":        {""},
	"--node":       {"-1", "one", "99999999999"},
	"--run-id":     {"..", ".", "a/b", "a b", "ü", "a\x1b[31m", "a\n", strings.Repeat("x", 200)},
	"--tag":        {"team", "=x"},
	"--disk-path":  {""},
	"--summary":    {"sometimes", ""},
	"--compat":     {"perf"},
	"--reader":     {"psutil", ""},
	"--listen": {"", "on", "65536", ":-1", "127.0.0.1", "127.0.0.1:http", "256.0.0.1:9100", "::1:9100", "[]:9100",
		"*:9100", "http://127.0.0.1:9100", "a\x1b[31m:1"},
	"--mlflow":             {"nonsense", "AUTO", "http://", "http://[::1", "http://x y", "http:x"},
	"--log-level":          {"loud", "fatal"},
	"--log-format":         {"xml"},
	"PERFAGENT_INTERVAL":   {"fast", "1ms"},
	"PERFAGENT_MAX_LENGTH": {"1", "x"},
	"PERFAGENT_RUN_ID":     {"../x", ".."},
	"PERFAGENT_NODE":       {"-1", "a"},
	"PERFAGENT_SUMMARY":    {"yes"},
	"PERFAGENT_NO_PAGE":    {"yes"},
	"PERFAGENT_READER":     {"psutil"},
	"PERFAGENT_LISTEN":     {"127.0.0.1", "65536", "a b:9100"},
}

// A bad flag or variable is reported in one line with its name and value, and the job is not started.
func TestRun_NamesBadOption(t *testing.T) {
	for option, values := range badOptions {
		for _, value := range values {
			if strings.HasPrefix(option, "-") {
				wantBadOption(t, nil, []string{option, value}, option)
			} else {
				wantBadOption(t, []string{option + "=" + value}, nil, option, value)
			}
		}
	}
	wantBadOption(t, []string{"PERFAGENT_DISK_PATH=/::/tmp"}, nil, "PERFAGENT_DISK_PATH", "empty")
	wantBadOption(t, nil, []string{"--no-page=sometimes"}, "--no-page")
	for _, c := range []struct {
		flags []string
		word  string
	}{
		{[]string{"--bogus"}, "--bogus"},
		{[]string{"-x"}, "-x"},
		{[]string{"--out", "run.json"}, "--to run.json"},
		{[]string{"--ops", ""}, "the value is empty"},
		{[]string{"--ops", "maybe"}, `"maybe" is not a port`},
		{[]string{"--scrape", "127.0.0.1:8000"}, "is not a URL"},
		{[]string{"--scrape", "ftp://x/metrics"}, "is not the URL of an endpoint"},
		{slices.Repeat([]string{"--scrape", "http://127.0.0.1:1/metrics"}, 9), "at most 8"},
		{[]string{"--scrape-interval", "900ms"}, "below 1s"},
		{[]string{"--scrape-interval", "0"}, "below 1s"},
		{[]string{"--scrape-interval", "soon"}, "soon"},
		{[]string{"--ops-chart", ""}, "a pattern is empty"},
		{[]string{"--ops", "on", "--compat", "perf.py"}, "perf.py's format has no place"},
		{[]string{"--scrape", "http://127.0.0.1:1/metrics", "--compat", "perf.py"}, "perf.py's format has no place"},
	} {
		wantBadOption(t, nil, c.flags, c.flags[0], c.word)
	}
}

// wantBadOption checks that neither run nor sidecar starts with a bad variable or flag. The error contains words.
func wantBadOption(t *testing.T, env, flags []string, words ...string) {
	t.Helper()
	t.Run(strings.Join(append(env, flags...), " "), func(t *testing.T) {
		for command, code := range map[string]int{"run": 125, "sidecar": 1} {
			args := append([]string{command}, flags...)
			if command == "run" {
				args = append(args, "--", "touch", "marker")
			}
			o := insideWith(t, env, args...)
			o.Want(t, code)
			o.WantLine(t, words...)
			if o.Out != "" {
				t.Errorf("%s: stdout %q, want none", command, o.Out)
			}
			if clitest.Exists(filepath.Join(o.Dir, "marker")) {
				t.Errorf("%s: the job was started, want only the error", command)
			}
			wantNothing(t, o.Dir)
		}
	})
}

func TestCommand_RefusesBadCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		word string
	}{
		{[]string{"bogus"}, "bogus"},
		{[]string{"rum", "--", "true"}, "rum"},
		{[]string{"--bogus"}, "--bogus"},
		{[]string{"show", "--bogus"}, "--bogus"},
		{[]string{"show", "--cpus", "-1", "x"}, "--cpus"},
		{[]string{"show", "--cpus", "x", "x"}, "--cpus"},
		{[]string{"show", "a", "b"}, "perfagent diff"},
		{[]string{"show"}, "perfagent-out"},
		{[]string{"merge"}, "name a run"},
		{[]string{"merge", "x"}, "--to"},
		{[]string{"merge", "x", "-o", "y.json"}, "--to y.json"},
		{[]string{"plot", "-o", "y.SVG"}, "--to y.SVG"},
		{[]string{"ls", "--to", "y.json"}, ".html"},
		{[]string{"ls", "--to", "none/y.html"}, "there is no directory none"},
		{[]string{"merge", "x", "--to", "y", "--cpus", "-2"}, "--cpus"},
		{[]string{"metrics", "x_y"}, "x_y"},
		{[]string{"version", "--bogus"}, "--bogus"},
		{[]string{"sidecar", "true"}, "no arguments"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			o := inside(t, c.args...)
			o.Want(t, 1)
			if o.WantLine(t, c.word); o.Out != "" {
				t.Errorf("stdout %q, want none", o.Out)
			}
		})
	}
}

// A flag overrides its variable, even if the value of the variable is invalid.
func TestEnvironment_FlagsOverrideVariables(t *testing.T) {
	o := insideWith(t, []string{"PERFAGENT_INTERVAL=x", "PERFAGENT_MAX_LENGTH=x", "PERFAGENT_OUT=/proc/x",
		"PERFAGENT_RUN_ID=../x", "PERFAGENT_NODE=x", "PERFAGENT_SUMMARY=x", "PERFAGENT_DISK_PATH=:", "SLURM_JOB_ID=4711", "SLURM_NODEID=9"},
		"run", "--interval", "20ms", "--max-length", "8", "--out", "deep/er", "--run-id", "mine", "--node", "3",
		"--summary", "never", "--disk-path", "/proc/self", "--disk-path", "/", "--", "true")
	wantMineNode3(t, o)
}

// wantMineNode3 returns the only report in deep/er, and checks that it has the options of the tests around it.
func wantMineNode3(t *testing.T, o clitest.Outcome) *reporter.Report {
	t.Helper()
	o.Want(t, 0)
	r, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "deep/er"))
	n := r.Nodes["3"]
	if !strings.HasSuffix(path, "/mine/node-3.json") || r.Run.ID != "mine" || n == nil || n.Sampling.IntervalSeconds != 0.02 || n.Sampling.MaxLength != 8 {
		t.Errorf("%s: run %+v, node %+v; want mine/node-3.json, every 0.02 s, at most 8 samples", path, r.Run, n)
	}
	return r
}

func TestEnvironment_VariablesOverrideDefaults(t *testing.T) {
	o := insideWith(t, []string{"PERFAGENT_INTERVAL=20ms", "PERFAGENT_MAX_LENGTH=8", "PERFAGENT_OUT=deep/er",
		"PERFAGENT_RUN_ID=mine", "PERFAGENT_NODE=3", "PERFAGENT_DISK_PATH=/:/tmp", "SLURM_JOB_ID=4711", "SLURM_NODEID=9"},
		"run", "--tag", "a=1", "--tag", "b==x y", "--", "true")
	r := wantMineNode3(t, o)
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "=x y"}, r.Run.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

// An empty variable is treated as unset.
func TestEnvironment_EmptyVariableIsTreatedAsUnset(t *testing.T) {
	var env []string
	for _, e := range environment {
		env = append(env, e.variable+"=")
	}
	o := insideWith(t, env, "run", "--", "true")
	o.Want(t, 0)
	o.Report(t)
}

// The job's environment gains four variables, and a fifth when pushing, and is otherwise the caller's.
func TestEnvironment_AddsOnlyVariablesOfPerfagent(t *testing.T) {
	t.Parallel()
	own := []string{"MLFLOW_RUN_ID=abc", "MLFLOW_TRACKING_URI=http://127.0.0.1:1", "MLFLOW_EXPERIMENT_NAME=e", "ODD=a=b\nc", "EMPTY=", "no equals"}
	for _, c := range []struct {
		name             string
		env, flags, want []string
	}{
		{"added", nil, []string{"--run-id", "r-1", "--node", "2"}, []string{"PERFAGENT_RUN_ID=r-1", "PERFAGENT_NODE=2"}},
		{"replaced", []string{"PERFAGENT_NODE=7", "PERFAGENT_RUN_ID=old"}, []string{"--run-id", "new"},
			[]string{"PERFAGENT_RUN_ID=new", "PERFAGENT_NODE=7"}},
		{"not pushing", nil, []string{"--run-id", "r", "--mlflow", "off"}, []string{"PERFAGENT_RUN_ID=r", "PERFAGENT_NODE=0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := slices.Concat(clitest.Env(), own, c.env)
			bare := clitest.Command(t, "env", "-0")
			bare.Env = append(slices.Clone(env), "PWD="+bare.Dir)
			wrapped := clitest.Perfagent(t, slices.Concat([]string{"run"}, c.flags, []string{"--", "env", "-0"})...)
			wrapped.Env = bare.Env
			id, _ := strings.CutPrefix(c.want[0], "PERFAGENT_RUN_ID=")
			node, _ := strings.CutPrefix(c.want[1], "PERFAGENT_NODE=")
			marks := "PERFAGENT_MARKS=" + filepath.Join(wrapped.Dir, "perfagent-out", id, "node-"+node+".marks")
			want := append(slices.Concat(entries(clitest.RunCommand(t, bare).Out), c.want), marks)
			want = slices.DeleteFunc(want, func(e string) bool { return slices.Contains(c.env, e) && !slices.Contains(c.want, e) })
			host, err := os.Hostname()
			check.Must(t, err)
			var got, parents, contexts []string
			for _, e := range entries(clitest.RunCommand(t, wrapped).Out) {
				switch name, _, _ := strings.Cut(e, "="); name {
				case "MLFLOW_RUN_CONTEXT":
					contexts = append(contexts, e)
				case "PERFAGENT_PARENT":
					parents = append(parents, e)
				default:
					got = append(got, e)
				}
			}
			if pushes := !slices.Contains(c.flags, "off"); len(contexts) > 1 || (len(contexts) == 1) != pushes {
				t.Errorf("environment %q with %v, want MLFLOW_RUN_CONTEXT only when pushing", contexts, c.flags)
			}
			if len(parents) != 1 || !strings.HasSuffix(parents[0], " "+node+" "+host) {
				t.Errorf("environment %q, want one entry that ends with node %s and host %s", parents, node, host)
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
				t.Errorf("environment of the job (-want +got):\n%s", diff)
			}
		})
	}
}

func entries(text string) []string { return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00") }

// The scheduler's variables provide the run ID and the node. An unusual ID is made safe for a directory name.
func TestEnvironment_SchedulerProvidesNameOfReport(t *testing.T) {
	for _, c := range []struct {
		name, want string
		env        []string
	}{
		{"Slurm", "4711/node-3.json", []string{"SLURM_JOB_ID=4711", "SLURM_NODEID=3"}},
		{"PBS", "123_4_.server.site/node-2.json", []string{"PBS_JOBID=123[4].server.site", "PBS_NODENUM=2"}},
		{"hostile", ".._.._etc/node-0.json", []string{"SLURM_JOB_ID=../../etc", "SLURM_NODEID=-1"}},
		{"only dots", "__/node-0.json", []string{"SLURM_JOB_ID=..", "SLURM_NODEID=../x"}},
		{"escape sequences", "__31m_/node-0.json", []string{"SLURM_JOB_ID=\x1b[31m\n"}},
		{"AWS Batch", "a-b_0/node-1.json", []string{"AWS_BATCH_JOB_ID=a-b:0", "AWS_BATCH_JOB_NODE_INDEX=1"}},
		{"Grid Engine", "99/node-0.json", []string{"JOB_ID=99", "SGE_TASK_ID=undefined"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := insideWith(t, c.env, "run", "--", "true")
			o.Want(t, 0)
			if got := reportertest.InDir(t, filepath.Join(o.Dir, "perfagent-out")); !slices.Equal(got, []string{c.want}) {
				t.Errorf("reports %q, want %q", got, c.want)
			}
		})
	}
}
