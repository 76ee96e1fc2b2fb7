package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// A bad flag or variable is reported in one line with its name and value, and the job is not started.
func TestRun_NamesBadOption(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		flag []string
		env  string
		word string
	}{
		{flag: []string{"--bogus"}, word: "--bogus"},
		{flag: []string{"-x"}, word: "-x"},
		{flag: []string{"--interval", "fast"}, word: "--interval"},
		{flag: []string{"--interval", "9ms"}, word: "--interval"},
		{flag: []string{"--interval", "0"}, word: "--interval"},
		{flag: []string{"--interval", "-1s"}, word: "--interval"},
		{flag: []string{"--interval", ""}, word: "--interval"},
		{flag: []string{"--max-length", "1"}, word: "--max-length"},
		{flag: []string{"--max-length", "-1"}, word: "--max-length"},
		{flag: []string{"--max-length", "many"}, word: "--max-length"},
		{flag: []string{"--max-length", "99999999999"}, word: "--max-length"},
		{flag: []string{"--out", ""}, word: "--out"},
		{flag: []string{"--node", "-1"}, word: "--node"},
		{flag: []string{"--node", "one"}, word: "--node"},
		{flag: []string{"--node", "99999999999"}, word: "--node"},
		{flag: []string{"--run-id", ".."}, word: "--run-id"},
		{flag: []string{"--run-id", "."}, word: "--run-id"},
		{flag: []string{"--run-id", "a/b"}, word: "--run-id"},
		{flag: []string{"--run-id", "a b"}, word: "--run-id"},
		{flag: []string{"--run-id", "ü"}, word: "--run-id"},
		{flag: []string{"--run-id", "a\x1b[31m"}, word: "--run-id"},
		{flag: []string{"--run-id", "a\n"}, word: "--run-id"},
		{flag: []string{"--run-id", long}, word: "--run-id"},
		{flag: []string{"--tag", "team"}, word: "--tag"},
		{flag: []string{"--tag", "=x"}, word: "--tag"},
		{flag: []string{"--disk-path", ""}, word: "--disk-path"},
		{flag: []string{"--summary", "sometimes"}, word: "--summary"},
		{flag: []string{"--summary", ""}, word: "--summary"},
		{flag: []string{"--compat", "perf"}, word: "--compat"},
		{flag: []string{"--reader", "psutil"}, word: "--reader"},
		{flag: []string{"--reader", ""}, word: "--reader"},
		{flag: []string{"--no-page=sometimes"}, word: "--no-page"},
		{flag: []string{"--out", "run.json"}, word: "--to run.json"},
		{flag: []string{"--listen", ""}, word: "--listen"},
		{flag: []string{"--listen", "on"}, word: "--listen"},
		{flag: []string{"--listen", "65536"}, word: "--listen"},
		{flag: []string{"--listen", ":-1"}, word: "--listen"},
		{flag: []string{"--listen", "127.0.0.1"}, word: "--listen"},
		{flag: []string{"--listen", "127.0.0.1:http"}, word: "--listen"},
		{flag: []string{"--listen", "256.0.0.1:9100"}, word: "--listen"},
		{flag: []string{"--listen", "::1:9100"}, word: "--listen"},
		{flag: []string{"--listen", "[]:9100"}, word: "--listen"},
		{flag: []string{"--listen", "*:9100"}, word: "--listen"},
		{flag: []string{"--listen", "http://127.0.0.1:9100"}, word: "--listen"},
		{flag: []string{"--listen", "a\x1b[31m:1"}, word: "--listen"},
		{flag: []string{"--log-level", "loud"}, word: "--log-level"},
		{flag: []string{"--log-level", "fatal"}, word: "--log-level"},
		{flag: []string{"--log-format", "xml"}, word: "--log-format"},
		{env: "PERFAGENT_INTERVAL=fast", word: "PERFAGENT_INTERVAL"},
		{env: "PERFAGENT_INTERVAL=1ms", word: "PERFAGENT_INTERVAL"},
		{env: "PERFAGENT_MAX_LENGTH=1", word: "PERFAGENT_MAX_LENGTH"},
		{env: "PERFAGENT_MAX_LENGTH=x", word: "PERFAGENT_MAX_LENGTH"},
		{env: "PERFAGENT_RUN_ID=../x", word: "PERFAGENT_RUN_ID"},
		{env: "PERFAGENT_RUN_ID=..", word: "PERFAGENT_RUN_ID"},
		{env: "PERFAGENT_NODE=-1", word: "PERFAGENT_NODE"},
		{env: "PERFAGENT_NODE=a", word: "PERFAGENT_NODE"},
		{env: "PERFAGENT_SUMMARY=yes", word: "PERFAGENT_SUMMARY"},
		{env: "PERFAGENT_NO_PAGE=yes", word: "PERFAGENT_NO_PAGE"},
		{env: "PERFAGENT_READER=psutil", word: "PERFAGENT_READER"},
		{env: "PERFAGENT_LISTEN=127.0.0.1", word: "PERFAGENT_LISTEN"},
		{env: "PERFAGENT_LISTEN=65536", word: "PERFAGENT_LISTEN"},
		{env: "PERFAGENT_LISTEN=a b:9100", word: "PERFAGENT_LISTEN"},
		{env: "PERFAGENT_DISK_PATH=/::/tmp", word: "PERFAGENT_DISK_PATH"},
	} {
		name := strings.Join(c.flag, " ") + c.env
		t.Run(name, func(t *testing.T) {
			for command, code := range map[string]int{"run": 125, "sidecar": 1} {
				args := append([]string{command}, c.flag...)
				if command == "run" {
					args = append(args, "--", "touch", "marker")
				}
				cmd := insideCommand(t, args...)
				cmd.Env = append(cmd.Env, c.env)
				o := cmd.perform(t)
				o.Want(t, code)
				o.WantLine(t, c.word)
				if _, value, _ := strings.Cut(c.env, "="); !strings.Contains(o.Err, value) && !strings.Contains(o.Err, "empty") {
					t.Errorf("%s: stderr lacks the value %q: %s", command, value, o.Err)
				}
				if _, err := os.Stat(filepath.Join(o.Dir, "marker")); err == nil {
					t.Errorf("%s: the job was started, want only the error", command)
				}
				if o.Out != "" {
					t.Errorf("%s: stdout %q, want none", command, o.Out)
				}
				wantNothing(t, o.Dir)
			}
		})
	}
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
			o.WantLine(t, c.word)
			if o.Out != "" {
				t.Errorf("stdout %q, want none", o.Out)
			}
		})
	}
}

// A flag overrides its variable, even if the value of the variable is invalid.
func TestEnvironment_FlagsOverrideVariables(t *testing.T) {
	cmd := insideCommand(t, "run", "--interval", "20ms", "--max-length", "8", "--out", "o", "--run-id", "mine", "--node", "3",
		"--summary", "never", "--disk-path", "/proc/self", "--disk-path", "/", "--", "true")
	cmd.Env = append(cmd.Env, "PERFAGENT_INTERVAL=x", "PERFAGENT_MAX_LENGTH=x", "PERFAGENT_OUT=/proc/x", "PERFAGENT_RUN_ID=../x",
		"PERFAGENT_NODE=x", "PERFAGENT_SUMMARY=x", "PERFAGENT_DISK_PATH=:", "SLURM_JOB_ID=4711", "SLURM_NODEID=9")
	o := cmd.perform(t)
	o.Want(t, 0)
	r, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "o"))
	n := r.Nodes["3"]
	if !strings.HasSuffix(path, "/mine/node-3.json") || r.Run.ID != "mine" || n == nil || n.Sampling.IntervalSeconds != 0.02 || n.Sampling.MaxLength != 8 {
		t.Errorf("%s: run %+v, node %+v; want mine/node-3.json, every 0.02 s, at most 8 samples", path, r.Run, n)
	}
}

func TestEnvironment_VariablesOverrideDefaults(t *testing.T) {
	cmd := insideCommand(t, "run", "--tag", "a=1", "--tag", "b==x y", "--", "true")
	cmd.Env = append(cmd.Env, "PERFAGENT_INTERVAL=20ms", "PERFAGENT_MAX_LENGTH=8", "PERFAGENT_OUT=deep/er", "PERFAGENT_RUN_ID=mine",
		"PERFAGENT_NODE=3", "PERFAGENT_DISK_PATH=/:/tmp", "SLURM_JOB_ID=4711", "SLURM_NODEID=9")
	o := cmd.perform(t)
	o.Want(t, 0)
	r, path := reportertest.ReadSingle(t, filepath.Join(o.Dir, "deep/er"))
	n := r.Nodes["3"]
	if !strings.HasSuffix(path, "/mine/node-3.json") || n == nil || n.Sampling.IntervalSeconds != 0.02 || n.Sampling.MaxLength != 8 {
		t.Errorf("%s: run %+v, node %+v; want mine/node-3.json, every 0.02 s, at most 8 samples", path, r.Run, n)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "=x y"}, r.Run.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

// An empty variable is treated as unset.
func TestEnvironment_EmptyVariableIsTreatedAsUnset(t *testing.T) {
	cmd := insideCommand(t, "run", "--", "true")
	for _, e := range environment {
		cmd.Env = append(cmd.Env, e.variable+"=")
	}
	o := cmd.perform(t)
	o.Want(t, 0)
	o.Report(t)
}

// The job's environment gains four variables, and a fifth when pushing, and is otherwise the caller's.
func TestEnvironment_AddsOnlyVariablesOfPerfagent(t *testing.T) {
	t.Parallel()
	own := []string{"MLFLOW_RUN_ID=abc", "MLFLOW_TRACKING_URI=http://127.0.0.1:1", "MLFLOW_EXPERIMENT_NAME=e", "ODD=a=b\nc", "EMPTY=", "no equals"}
	for _, c := range []struct {
		name  string
		env   []string
		flags []string
		want  []string
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
			got := entries(clitest.RunCommand(t, wrapped).Out)
			pushing := slices.IndexFunc(got, func(e string) bool { return strings.HasPrefix(e, "MLFLOW_RUN_CONTEXT=") })
			if pushing < 0 != slices.Contains(c.flags, "off") {
				t.Errorf("MLFLOW_RUN_CONTEXT is entry %d of the environment with %v, want it only when pushing",
					pushing, c.flags)
			}
			if pushing >= 0 {
				got = slices.Delete(got, pushing, pushing+1)
			}
			host, err := os.Hostname()
			if err != nil {
				t.Fatal(err)
			}
			parent := slices.IndexFunc(got, func(e string) bool { return strings.HasPrefix(e, "PERFAGENT_PARENT=") })
			if parent < 0 || !strings.HasSuffix(got[parent], " "+node+" "+host) {
				t.Fatalf("PERFAGENT_PARENT is entry %d of %q, want one that ends with node %s and host %s",
					parent, got, node, host)
			}
			got = slices.Delete(got, parent, parent+1)
			if len(c.env) > 0 {
				want = slices.DeleteFunc(want, func(e string) bool { return slices.Contains(c.env, e) && !slices.Contains(c.want, e) })
				slices.Sort(want)
				want = slices.Compact(want)
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
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
		{"escape sequences", "_[31m_/node-0.json", []string{"SLURM_JOB_ID=\x1b[31m\n"}},
		{"AWS Batch", "a-b_0/node-1.json", []string{"AWS_BATCH_JOB_ID=a-b:0", "AWS_BATCH_JOB_NODE_INDEX=1"}},
		{"Grid Engine", "99/node-0.json", []string{"JOB_ID=99", "SGE_TASK_ID=undefined"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := insideCommand(t, "run", "--", "true")
			cmd.Env = append(cmd.Env, c.env...)
			o := cmd.perform(t)
			o.Want(t, 0)
			want := strings.ReplaceAll(c.want, "[", "_")
			if got := reportertest.InDir(t, filepath.Join(o.Dir, "perfagent-out")); !slices.Equal(got, []string{want}) {
				t.Errorf("reports %q, want %q", got, want)
			}
		})
	}
}
