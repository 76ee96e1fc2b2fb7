package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// logMissing returns the code of the reason why a node has no log, or "".
func logMissing(n *reporter.Node) reporter.Code {
	for _, m := range n.Missing {
		if m.What == "log_tail" {
			return m.Code
		}
	}
	return ""
}

// The report of a failed run has the last lines that the job wrote to its stderr or stdout during the run, if that is a
// file: not older lines, and not perfagent's own.
func TestLogTail_HasWhatJobWroteDuringRun(t *testing.T) {
	t.Parallel()
	const job = `run --summary line -- sh -c 'echo out 1; echo err 1 >&2; echo err 2 >&2; exit 3'`
	for name, c := range map[string]struct {
		script string
		want   *reporter.LogTail // File is relative to the directory, and Bytes is 0 if it is unknown
		bytes  int64
		code   reporter.Code
	}{
		"stderr":         {"$P " + job + " 2>log", &reporter.LogTail{Stream: "stderr", Lines: []string{"err 1", "err 2"}}, 12, ""},
		"both":           {"$P " + job + " >log 2>&1", &reporter.LogTail{Stream: "both", Lines: []string{"out 1", "err 1", "err 2"}}, 18, ""},
		"after a line":   {"exec 2>log; echo before >&2; $P " + job, &reporter.LogTail{Stream: "stderr", Lines: []string{"err 1", "err 2"}}, 12, ""},
		"stdout":         {"$P " + job + " >log", &reporter.LogTail{Stream: "stdout", Lines: []string{"out 1"}}, 6, ""},
		"two files":      {"$P " + job + " >out 2>log", &reporter.LogTail{Stream: "stderr", Lines: []string{"err 1", "err 2"}}, 12, ""},
		"silent stderr":  {`$P run --summary never -- sh -c 'echo out; exit 3' 2>err >log`, &reporter.LogTail{Stream: "stdout", Lines: []string{"out"}}, 4, ""},
		"silent":         {`$P run --summary never -- sh -c 'exit 3' 2>log >out`, &reporter.LogTail{Stream: "stderr", Lines: []string{}}, 0, ""},
		"deleted":        {"exec 2>log; rm log; $P " + job, &reporter.LogTail{Stream: "stderr", File: " (deleted)", Lines: []string{"err 1", "err 2"}}, 12, ""},
		"appended":       {"echo before >log; $P " + job + " 2>>log", &reporter.LogTail{Stream: "stderr", Lines: []string{"err 1", "err 2"}, Shared: true}, 12, ""},
		"asked for":      {"$P run --log-lines 1 " + strings.TrimPrefix(job, "run") + " 2>log", &reporter.LogTail{Stream: "stderr", Lines: []string{"err 2"}, MayLeave: true}, 12, ""},
		"another writer": {`$P run -- sh -c 'echo err >&2; echo other >>log; exit 3' 2>log`, &reporter.LogTail{Stream: "stderr", Lines: []string{"err"}, Shared: true}, 4, ""},
		"truncated": {`echo before >log; $P run -- sh -c ': >log; echo x >&2; exit 3' 2>>log`,
			&reporter.LogTail{Stream: "stderr", Lines: []string{"x"}, Shared: true}, -1, ""},
		"a long log": {`$P run -- sh -c 'seq 200000 >&2; exit 3' 2>log`, &reporter.LogTail{Stream: "stderr", Lines: numbers(199981, 200000)}, 1288895, ""},
		"a binary": {`$P run -- sh -c 'head -c 1000000 /dev/zero >&2; printf "\n\377\n" >&2; exit 3' 2>log`,
			&reporter.LogTail{Stream: "stderr", Lines: []string{`\xff`}}, 1000003, ""},
		"a pipe":       {"$P " + job, nil, 0, reporter.LogNotFile},
		"a device":     {"$P " + job + " 2>/dev/null >/dev/null", nil, 0, reporter.LogNotFile},
		"switched off": {"PERFAGENT_LOG_LINES=0 $P " + job + " 2>log", nil, 0, ""},
		"success":      {"$P run -- sh -c 'echo err >&2' 2>log", nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := clitest.RunCommand(t, clitest.Script(t, "sh", c.script+"; true"))
			o.Want(t, 0)
			n := o.Report(t).Nodes["0"]
			if got := logMissing(n); got != c.code {
				t.Errorf("code %q of the missing log, want %q", got, c.code)
			}
			if n.LogTail == nil || c.want == nil {
				if n.LogTail != nil || c.want != nil {
					t.Errorf("log %+v, want %+v", n.LogTail, c.want)
				}
				return
			}
			got, want := *n.LogTail, *c.want
			if want.File = filepath.Join(o.Dir, "log") + want.File; c.bytes >= 0 {
				want.Bytes = &c.bytes
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("log (-want, +got):\n%s", diff)
			}
		})
	}
}

// numbers returns the numbers from a to b as texts.
func numbers(a, b int) (out []string) {
	for i := a; i <= b; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

// A log that perfagent's user may not read is not read, and the report gives the reason.
func TestLogTail_UnreadableLogIsMissing(t *testing.T) {
	t.Parallel()
	testenv.NeedsRoot(t, "to give a process a file of another user")
	for name, mode := range map[string]os.FileMode{"another user's": 0o600, "only writable": 0o200} {
		cmd := clitest.AsNobody(t, clitest.Perfagent(t, "run", "--", "sh", "-c", "echo secret-line >&2; exit 3"))
		path := filepath.Join(clitest.OpenTemp(t), "log")
		log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, mode)
		check.Must(t, err)
		defer log.Close()
		if mode == 0o200 {
			check.Must(t, os.Chown(path, 65534, 65534))
		}
		cmd.Stderr = log
		o := mustExit(t, 3, cmd)
		n := o.Report(t).Nodes["0"]
		if n.LogTail != nil || logMissing(n) != reporter.LogUnreadable {
			t.Errorf("%s: log %+v, missing %q; want none, and not_readable", name, n.LogTail, logMissing(n))
		}
		show := clitest.Perfagent(t, "show")
		show.Dir = o.Dir
		wantContains(t, mustExit(t, 0, show).Out, "the job's log could not be read:", path+": permission denied")
	}
}

// The verdict names the error at the end of the log, and keeps its cause.
func TestLogTail_NamesErrorInLog(t *testing.T) {
	t.Parallel()
	python := clitest.Python(t)[0]
	raise := func(what string) string { return python + ` -c 'raise RuntimeError("` + what + `")'` }
	tmpfs := clitest.Mount(t, "size=64k", 0)
	for kind, c := range map[string]struct{ script, line string }{
		"cuda_oom":            {raise("CUDA out of memory. Tried to allocate 2.00 GiB"), "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"},
		"memory_error":        {python + ` -c 'bytearray(1 << 60)'`, "MemoryError"},
		"bus_error":           {`sh -c 'kill -BUS $$'; false`, "Bus error"},
		"no_space":            {"head -c 100000 /dev/zero >" + tmpfs + "/file", "No space left on device"},
		"too_many_open_files": {`ulimit -n 8; ` + python + ` -c 'a = [open("/dev/null") for i in range(9)]'`, "Too many open files"},
		"nccl_timeout":        {raise("NCCL operation timed out after 600 s"), "NCCL operation timed out"},
		"traceback":           {python + ` -c 'def f(): raise ValueError("odd")` + "\n" + `f()'`, "ValueError: odd"},
		"killed":              {`sh -c 'kill -KILL $$'; false`, "Killed"},
		"":                    {"echo done; false", ""},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := clitest.RunCommand(t, clitest.Script(t, "sh", `$P run --log-lines 1 -- bash -c "$1" 2>log; true`, c.script))
			cause := "exited"
			if kind == "bus_error" {
				cause = "child_died"
			}
			r := wantCause(t, o, cause, nil)
			v := r.Run.Verdict
			if kind == "" {
				if v.LogError != nil || strings.Contains(v.Text, "its log") {
					t.Errorf("verdict %+v, want nothing about the log", v)
				}
				return
			}
			if v.LogError == nil || v.LogError.Kind != kind || !strings.Contains(v.LogError.Line, c.line) || !strings.Contains(v.Text, "; its log ends with ") {
				t.Fatalf("verdict %+v, said %+v; want %s with %q", v, v.LogError, kind, c.line)
			}
			if strings.Contains(v.Text, c.line) {
				t.Errorf("text %q has the line, want only the kind", v.Text)
			}
		})
	}
}

// leakyLog prints each form of a secret that docs/site.md lists, to stderr.
const leakyLog = `
echo "export HF_TOKEN=hunter2" >&2
echo "curl --api-key=hunter2" >&2
echo "curl --password hunter2 x" >&2
echo '{"db_passwd": "hunter2", "n": 1}' >&2
echo "Authorization: Bearer hunter2 hunter2" >&2
echo "GET https://me:hunter2@host/x" >&2
echo "id-hunter2" >&2
echo last words >&2
exit 7`

// The report and the page on this machine have the redacted lines. Nothing else has them, unless they were asked for:
// then the artifact in MLflow and the report in the store have them as well.
func TestLogTail_LeavesMachineOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, env []string
		leaves    bool
	}{
		"by default":    {nil, nil, false},
		"with a flag":   {[]string{"--log-lines", "20"}, nil, true},
		"with variable": {nil, []string{"PERFAGENT_LOG_LINES=9"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, later := newSite(t), newSite(t)
			store, laterStore, logs := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "store"), t.TempDir()
			args := slices.Concat([]string{"run", "--run-id", "r", "--no-page=false", "--mlflow", server.uri, "--store", "file://" + store,
				"--on-end", "cat > ended.json", "--redact", `id-(\w+)`}, c.args, []string{"--", "sh", clitest.Write(t, filepath.Join(logs, "job.sh"), leakyLog, 0o600)})
			cmd := clitest.Perfagent(t, args...)
			cmd.Env = append(cmd.Env, c.env...)
			log, err := os.Create(filepath.Join(logs, "log"))
			check.Must(t, err)
			defer log.Close()
			cmd.Stderr = log
			o := mustExit(t, 7, cmd)
			if own := clitest.Read(t, log.Name()); strings.Count(own, "hunter2") != 8 {
				t.Fatalf("the job wrote %q, want 8 secrets", own)
			}

			out := filepath.Join(o.Dir, "perfagent-out", "r")
			for _, file := range []string{"node-0.json", "node-0.html"} {
				wantContains(t, clitest.Read(t, filepath.Join(out, file)), "last words", "id-***", "https://***@host/x")
			}
			for _, args := range [][]string{{"push", "--mlflow", later.uri, "r"}, {"push", "--store", "file://" + laterStore, "r"}} {
				push := clitest.Perfagent(t, args...)
				push.Dir = o.Dir
				mustExit(t, 0, push)
			}
			for what, dir := range map[string]string{"run": o.Dir, "store": store, "later store": laterStore} {
				t.Log(what)
				wantNoFile(t, dir, "hunter2")
			}

			for what, requests := range map[string]*site{"push at the end": server, "push later": later} {
				sent := 0
				for _, request := range requests.Requests() {
					words := fmt.Sprintf("%s %s", request.Path, request.Body)
					if strings.Contains(words, "hunter2") {
						t.Errorf("%s sent the secret: %s", what, request.Path)
					}
					if strings.Contains(words, "last words") {
						sent++
						if !strings.Contains(request.Path, "artifacts") {
							t.Errorf("%s sent the log in %s, want it only in the artifact", what, request.Path)
						}
					}
				}
				if (sent > 0) != c.leaves {
					t.Errorf("%s sent the log %d times, want that: %v", what, sent, c.leaves)
				}
			}
			for _, address := range []string{store, laterStore} {
				data := string(storedReport(t, "file://"+address, "r/node-0"))
				if has := strings.Contains(data, "last words"); has != c.leaves || strings.Contains(data, "log_tail") != c.leaves {
					t.Errorf("the report in the store has the log: %v, want %v", has, c.leaves)
				}
			}
			for what, words := range map[string]string{
				"--on-end": clitest.Read(t, filepath.Join(o.Dir, "ended.json")), "the line": clitest.Read(t, log.Name())[strings.Index(clitest.Read(t, log.Name()), "perfagent:"):],
				"ls": call("ls", "--json", "--out", filepath.Dir(out)).Out, "jsonl": call("show", "--format", "jsonl", "--out", filepath.Dir(out)).Out,
			} {
				if strings.Contains(words, "last words") || !strings.Contains(words, "7") {
					t.Errorf("%s has the log, or not the exit code: %s", what, words)
				}
			}
		})
	}
}

// Each rank keeps its own log. The node's report and page show the log of the first rank that failed.
func TestLogTail_RanksKeepTheirOwn(t *testing.T) {
	t.Parallel()
	s := newStep(t, 2)
	logs := t.TempDir()
	var ranks [2]rankProcess
	for i, job := range []string{"echo MemoryError >&2; exit 3", `printf "other %s\n" words >&2; exit 4`} {
		cmd := s.command(i, "--interval", "100ms", "--summary", "never", "--", "sh", "-c", "echo up; read go; "+job)
		log, err := os.Create(filepath.Join(logs, fmt.Sprint(i)))
		check.Must(t, err)
		defer log.Close()
		cmd.Stderr = log
		ranks[i] = launch(cmd, t)
	}
	ranks[0].finish()
	ranks[1].finish()

	path := filepath.Join(s.out, "node-0.json")
	r := readReport(t, path)
	n := r.Nodes["0"]
	for i, want := range []string{"MemoryError", "other words"} {
		tail := n.Ranks[fmt.Sprint(i)].LogTail
		if tail == nil || len(tail.Lines) != 1 || tail.Lines[0] != want || !tail.Shared {
			t.Errorf("log of rank %d: %+v, want %q, perhaps shared", i, tail, want)
		}
	}
	if said := r.Run.Verdict.LogError; n.LogTail != nil || said == nil || said.Kind != "memory_error" {
		t.Errorf("log of the node %+v, said %+v; want none, and the memory error of rank 0", n.LogTail, said)
	}
	for _, words := range []string{call("show", path).Out, call("show", "--format", "md", path).Out,
		clitest.Read(t, filepath.Join(s.out, "node-0.html"))} {
		wantContains(t, words, "Last line of stderr", "MemoryError")
		if strings.Contains(words, "other words") {
			t.Errorf("the log of rank 1 is shown:\n%s", words)
		}
	}
}

func TestLogTail_RefusesBadNumbers(t *testing.T) {
	for value, want := range map[string]string{"1001": "1001 is above 1000", "-1": "-1 is negative", "x": "not a whole number"} {
		wantError(t, inside(t, "run", "--log-lines", value, "--", "true"), 125, "--log-lines", want)
		wantError(t, insideWith(t, []string{"PERFAGENT_LOG_LINES=" + value}, "run", "--", "true"), 125, "PERFAGENT_LOG_LINES", want)
	}
	wantError(t, inside(t, "attach", "--log-lines", "1", "1"), 1, "--log-lines")
}
