package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// withDefaults prepares perfagent with the given contents of the user's and the site's defaults files; "" = no file.
// The site's file is visible only to this perfagent.
func withDefaults(t *testing.T, user, site string, args ...string) *exec.Cmd {
	t.Helper()
	config := t.TempDir()
	if user != "" {
		clitest.Write(t, filepath.Join(config, "perfagent.env"), user, 0o644)
	}

	cmd := clitest.Perfagent(t, args...)
	if site != "" {
		testenv.NeedsRoot(t, "to show a process another /etc")
		etc := t.TempDir()
		clitest.Write(t, filepath.Join(etc, "perfagent.env"), site, 0o644)
		program := cmd.Path
		cmd = clitest.Command(t, "sh", append([]string{"-c", `mount --bind "$0" /etc && exec "$@"`, etc, program}, args...)...)
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+config)

	return cmd
}

func TestDefaults_PreferFlagThenVariableThenUserThenSite(t *testing.T) {
	t.Parallel()
	const user, site = "PERFAGENT_INTERVAL=200ms", "PERFAGENT_INTERVAL='300ms'\nPERFAGENT_RUN_ID=site\nPERFAGENT_CGROUP=off"
	for _, c := range []struct {
		user, variable, flag string
		want                 float64
	}{
		{"", "", "", 0.3},
		{user, "", "", 0.2},
		{user, "PERFAGENT_INTERVAL=400ms", "", 0.4},
		{user, "PERFAGENT_INTERVAL=400ms", "--interval=500ms", 0.5},
	} {
		args := slices.Concat([]string{"run"}, strings.Fields(c.flag), []string{"--", "true"})
		cmd := withDefaults(t, c.user, site, args...)
		cmd.Env = append(cmd.Env, c.variable, "SLURM_JOB_ID=77")
		r := mustExit(t, 0, cmd).Report(t)
		if got := r.Nodes["0"].Sampling.IntervalSeconds; got != c.want || r.Run.ID != "site" {
			t.Errorf("interval %v, run ID %q with the site's file and %+v; want %v, and the file's \"site\"", got, r.Run.ID, c, c.want)
		}
	}
}

// Bad lines cause warnings, and the other lines apply to the run.
func TestDefaults_BadLinesCauseWarnings(t *testing.T) {
	t.Parallel()
	site := "# ours\n\nPERFAGENT_INTERVAL=fast\nnonsense\nPERFAGENT_NODES=1\nPERFAGENT_NO_PAGE=sometimes\nPERFAGENT_NODE=3\n" +
		"PERFAGENT_DISK_PATH=/::/tmp\nPERFAGENT_LISTEN_TOKEN=\x01\nPERFAGENT_HTML=never\n"
	o := mustExit(t, 5, withDefaults(t, "PERFAGENT_INTERVAL=1ms\n", site, "run", "--summary", "never", "--", "sh", "-c", "exit 5"))
	for _, want := range []string{
		`perfagent.env:1: PERFAGENT_INTERVAL: 1ms is below 10ms; the line is left out`,
		`/etc/perfagent.env:3: PERFAGENT_INTERVAL: "fast"`, `/etc/perfagent.env:4: not PERFAGENT_NAME=VALUE`,
		`/etc/perfagent.env:5: PERFAGENT_NODES is not known; did you mean PERFAGENT_NODE?`, `/etc/perfagent.env:6: PERFAGENT_NO_PAGE: "sometimes"`,
		`/etc/perfagent.env:8: PERFAGENT_DISK_PATH: a path is empty`,
		`/etc/perfagent.env:9: PERFAGENT_LISTEN_TOKEN: the token has a control character`,
		`/etc/perfagent.env:10: PERFAGENT_HTML is not known; it is now PERFAGENT_NO_PAGE`,
	} {
		if strings.Count(o.Err, want) != 1 {
			t.Errorf("stderr has %q %d times, want once:\n%s", want, strings.Count(o.Err, want), o.Err)
		}
	}
	clitest.WantLines(t, o.Err, 8, 8)

	n := o.Report(t).Nodes["3"]
	if n == nil || n.Sampling.IntervalSeconds != 1 || !clitest.Exists(filepath.Join(o.Dir, "perfagent-out", o.Report(t).Run.ID, "node-3.html")) {
		t.Errorf("node %+v, want it with the good lines, an interval of 1 s and a page", n)
	}
}

func TestDefaults_OnlyFirstBadLinesCauseWarnings(t *testing.T) {
	t.Parallel()
	o := mustExit(t, 0, withDefaults(t, strings.Repeat("x\n", 100), "", "run", "--", "true"))
	clitest.WantLines(t, o.Err, 9, 9)
	says(t, o, "and 92 more bad lines")
}

// An unreadable defaults file is reported in one line, and a job never waits for a defaults file.
func TestDefaults_UnreadableFileIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"absent":    {func(string) error { return nil }, ""},
		"FIFO":      {func(path string) error { return unix.Mkfifo(path, 0o600) }, "not a regular file"},
		"directory": {func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"endless":   {func(path string) error { return os.Symlink("/dev/zero", path) }, "not a regular file"},
		"loop":      {func(path string) error { return os.Symlink(path, path) }, "too many levels"},
		"large":     {func(path string) error { return os.WriteFile(path, make([]byte, 1<<17), 0o600) }, "larger than 64 kB"},
	} {
		cmd := withDefaults(t, "", "", "run", "--summary", "never", "--", "sh", "-c", "exit 5")
		config := t.TempDir()
		cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+config)
		check.Must(t, c.put(filepath.Join(config, "perfagent.env")))

		o := mustExit(t, 5, cmd)
		if c.want != "" {
			o.WantLine(t, "perfagent.env: ", c.want)
		} else if o.Err != "" {
			t.Errorf("%s: stderr %q, want none", name, o.Err)
		}
	}

	cmd := withDefaults(t, "PERFAGENT_NODE=3", "", "run", "--", "true")
	clitest.AsNobody(t, cmd)
	for _, entry := range cmd.Env {
		if config, found := strings.CutPrefix(entry, "XDG_CONFIG_HOME="); found {
			check.Must(t, os.Chmod(config, 0o700))
		}
	}
	cmd.Args = append([]string{cmd.Args[0], "run", "--out", clitest.OpenTemp(t)}, cmd.Args[2:]...)
	wantError(t, clitest.RunCommand(t, cmd), 0, "permission denied")
}

// The defaults files do not change the job's environment.
func TestDefaults_FilesDoNotChangeEnvironmentOfJob(t *testing.T) {
	t.Parallel()
	cmd := withDefaults(t, "PERFAGENT_INTERVAL=200ms\nPERFAGENT_LISTEN_TOKEN=t0ken-of-a-file\nPERFAGENT_OUT=x\n", "", "run", "--", "env")
	cmd.Env = append(cmd.Env, "PERFAGENT_MAX_LENGTH=20")
	o := mustExit(t, 0, cmd)
	for _, name := range []string{"PERFAGENT_INTERVAL", "PERFAGENT_LISTEN_TOKEN", "PERFAGENT_OUT", "t0ken-of-a-file"} {
		if strings.Contains(o.Out, name) {
			t.Errorf("the job's environment has %s, want no variable of a file", name)
		}
	}
	wantContains(t, o.Out, "PERFAGENT_MAX_LENGTH=20\n") // the job's own
}

// PERFAGENT_OUT in a defaults file also applies to the commands that find runs.
func TestDefaults_ApplyToShow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := "PERFAGENT_OUT=" + dir + "\n"
	mustExit(t, 0, withDefaults(t, env, "", "run", "--", "true"))
	o := mustExit(t, 0, withDefaults(t, env+"bad\n", "", "show"))
	if !strings.Contains(o.Out, "Succeeded") || o.Err != "" {
		t.Errorf("stdout %q, want the run; stderr %q, want none", o.Out, o.Err)
	}
}

// A secret on the command line is passed to the job, but is in no file and no output of perfagent.
func TestRedact_SecretIsInNoOutput(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	server := newSite(t)
	l := listenRun(t, "--interval", "50ms", "--run-id", "r", "--summary", "always",
		"--mlflow", server.uri, "--on-end", "cat", "--redact", `id-(\w+)`, "--",
		"sh", "-c", `echo ready $$; echo "$*"; read x; exit 7`, "API_KEY="+secret, "--password", secret,
		"X-Token: "+secret, "https://me:"+secret+"@host/", "id-"+secret)
	l.PID("ready")
	if line := l.Next(); strings.Count(line, secret) != 4 && strings.Count(line, secret) != 5 {
		t.Errorf("the job printed %q, want the secret 4 or 5 times", line)
	}
	l.untilSampled(2)

	for _, path := range []string{"/", "/metrics", "/report.json"} {
		if _, _, body := l.get(path); strings.Contains(body, secret) {
			t.Errorf("%s of the live page has the secret", path)
		}
	}
	watch := clitest.OnTerminal(t, clitest.Perfagent(t, "watch", "--out", filepath.Join(l.Cmd.Dir, "perfagent-out"), "r"))
	watch.Expect("API_KEY=***")
	watch.Send("q")
	if screen, _ := watch.End(); strings.Contains(screen, secret) {
		t.Errorf("screen of watch has the secret: %q", screen)
	}
	wantNoFile(t, l.Cmd.Dir, secret)

	o := l.finish()
	if o.Want(t, 7); strings.Contains(o.Err, secret) || !strings.Contains(o.Err, "API_KEY=***") {
		t.Errorf("stderr has the secret, or no API_KEY=***:\n%s", o.Err)
	}
	wantNoFile(t, l.Cmd.Dir, secret)
	for _, args := range [][]string{{"ls"}, {"ls", "--json"}, {"show", "r"}} {
		if o := call(append(args, "--out", filepath.Join(l.Cmd.Dir, "perfagent-out"))...); !strings.Contains(o.Out, "API_KEY=***") || strings.Contains(o.Out+o.Err, secret) {
			t.Errorf("%v: want API_KEY=*** and no secret: stdout %q, stderr %q", args, o.Out, o.Err)
		}
	}
	debug := clitest.Run(t, "run", "--log-level", "debug", "--log-format", "json", "--", "true", "--password", secret)
	if debug.Want(t, 0); strings.Contains(debug.Err, secret) {
		t.Errorf("the debug log has the secret:\n%s", debug.Err)
	}
	for _, request := range server.Requests() {
		if strings.Contains(fmt.Sprintf("%s %s", request.Path, request.Body), secret) {
			t.Errorf("the MLflow server got the secret: %s %.300s", request.Path, request.Body)
		}
	}
}

// wantNoFile checks that no file under a directory contains the text.
func wantNoFile(t *testing.T, dir, text string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
			if strings.Contains(clitest.Read(t, path), text) {
				t.Errorf("%s has %q, want it in no file", path, text)
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files searched (%v), want at least one", files, err)
	}
}

func TestRedact_PatternsHideTheirMatches(t *testing.T) {
	for _, c := range []struct{ flags, variable, words, want string }{
		{"--redact off", "", "--token abc", "--token abc"},
		{`--redact ab+ --redact -p(\S+)`, "", "xabbx -psecret", "x***x -p***"},
		{"", "PERFAGENT_REDACT=^a d(e)", "abc def", "***bc d***f"},
	} {
		cmd := insideCommand(t, strings.Fields("run "+c.flags+" -- true "+c.words)...)
		cmd.Env = []string{c.variable}
		if got := strings.Join(cmd.want(t, 0).Report(t).Run.Command[1:], " "); got != c.want {
			t.Errorf("%s %s: the report has %q, want %q", c.flags, c.variable, got, c.want)
		}
	}
	wantError(t, inside(t, "run", "--redact", "(", "--", "true"), 125, "--redact")
	wantError(t, inside(t, "run", "--", "no-such-TOKEN=abc"), 127, "no-such-TOKEN=***")
}

func TestOnEnd_CommandGetsSummary(t *testing.T) {
	server := newSite(t)
	o := wantInside(t, 7, "run", "--summary", "never", "--mlflow", server.uri, "--on-end", "cat", "--", "sh", "-c", "exit 7")
	object := decoded[struct {
		Schema, State, Verdict, Dir, Report, Page, Push string

		RunID    string `json:"run_id"`
		ExitCode int    `json:"exit_code"`
	}](t, o.Err)
	if object.Schema != "perfagent.summary/1" || object.State != "ended" || object.ExitCode != 7 || object.RunID == "" ||
		object.Verdict == "" || object.Push != reporter.PushDone {
		t.Errorf("the command got %+v, want the ended run with exit code 7, a verdict and a push", object)
	}
	for _, path := range []string{object.Dir, object.Report, object.Page} {
		if !filepath.IsAbs(path) || !clitest.Exists(path) {
			t.Errorf("the path %q is not an absolute path of an existing file", path)
		}
	}
}

// Whatever the --on-end command does, only stderr is affected.
func TestOnEnd_CommandAffectsOnlyStderr(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"exit 3":                          "--on-end: exit status 3",
		"kill -9 $$":                      "--on-end: signal: killed",
		"no-such-command-":                "--on-end: exit status 127",
		"exec 0<&-; true":                 "", // closes its stdin
		"exec true":                       "",
		"sleep 60 >/dev/null 2>&1 & true": "", // background processes are left alone
		"":                                "",
	} {
		big := strings.Repeat("x", 100_000) // two of them are more than a pipe holds
		o := clitest.Run(t, "run", "--summary", "never", "--tag", "a="+big, "--tag", "b="+big, "--on-end", command,
			"--", "sh", "-c", "exit 7")
		if o.Want(t, 7); !strings.Contains(o.Err, want) || want == "" && o.Err != "" || o.Out != "" {
			t.Errorf("--on-end %q: stdout %q, want none; stderr %q, want %q", command, o.Out, o.Err, want)
		}
	}

	o := clitest.Run(t, "run", "--on-end", "echo ran", "--", "no-such-command-")
	if o.Want(t, 127); strings.Contains(o.Err, "ran\n") {
		t.Errorf("stderr %q: --on-end ran, want it not to run without a job", o.Err)
	}
}

// The process group of the --on-end command is killed after 10 s, or when perfagent receives a signal.
func TestOnEnd_IsKilledAfterLimitOrAtSignal(t *testing.T) {
	t.Parallel()
	for _, signaled := range []bool{false, true} {
		t.Run(fmt.Sprint("signaled ", signaled), func(t *testing.T) {
			t.Parallel()
			want, said := map[bool]string{false: "killed after 10s", true: "killed, because perfagent received a signal"}[signaled], ""
			for try := 0; try < 5 && !strings.Contains(said, want); try++ { // the signal may come after the limit
				cmd := clitest.Perfagent(t, "run", "--summary", "never", "--on-end", `sleep 600 & echo pid $!; wait`, "--", "sh", "-c", "exit 7")
				r, w := clitest.Pipe(t)
				cmd.Stderr = w
				check.Must(t, cmd.Start())
				w.Close()
				var pid int
				if _, err := fmt.Fscanf(r, "pid %d\n", &pid); err != nil {
					t.Fatal(err)
				}
				if signaled {
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
				clitest.Wait(t, cmd)
				if code := cmd.ProcessState.ExitCode(); code != 7 {
					t.Errorf("exit code %d, want 7", code)
				}
				clitest.WaitUntil(t, "the child is gone", func() bool { return strings.Trim(clitest.ProcessState(pid), "Z") == "" })
				said = string(check.Value(io.ReadAll(r))(t))
			}
			if !strings.Contains(said, want) {
				t.Errorf("stderr %q, want %q", said, want)
			}
		})
	}
}

// The CPU time of the --on-end command is not counted for the job.
func TestOnEnd_CommandIsNotCountedForJob(t *testing.T) {
	t.Parallel()
	o := mustRun(t, 0, "run", "--on-end", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", "--", "true")
	if j := o.Report(t).Nodes["0"].Job; j.UserSeconds+j.SystemSeconds > 0.1 || j.Orphans != 0 {
		t.Errorf("job %+v, want no orphans and at most 0.1 s of CPU time", j)
	}
}

func TestOnEnd_RunsAfterSidecar(t *testing.T) {
	t.Parallel()
	l, _ := beside(t, nil, "--on-end", "cat; exit 3")
	l.Signal(syscall.SIGTERM)
	o := mustEnd(l, 0)
	if !strings.Contains(o.Err, `"run_id":"s"`) || strings.Count(o.Err, "--on-end: exit status 3") != 1 {
		t.Errorf("stderr %q, want the summary of s and one failure of --on-end", o.Err)
	}
}

func TestListenToken_IsRequired(t *testing.T) {
	t.Parallel()
	const token = "s3cr3t-token"
	file := clitest.Write(t, filepath.Join(t.TempDir(), "token"), token+"\n", 0o600)
	l := listenRun(t, append([]string{"--listen-token-file", file, "--interval", "50ms"}, holdOpen...)...)
	for name, c := range map[string]struct {
		query, header string
		status        int
	}{
		"without the token": {"", "", 401}, "with the token in the query": {"?token=" + token, "", 401},
		"with the bearer token":        {"", "Bearer " + token, 200},
		"with the token as a password": {"", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+token)), 200},
	} {
		request, err := http.NewRequest(http.MethodGet, l.url+"healthz"+c.query, nil)
		check.Must(t, err)
		if c.header != "" {
			request.Header.Set("Authorization", c.header)
		}
		answer, err := listenClient().Do(request)
		check.Must(t, err)
		if answer.Body.Close(); answer.StatusCode != c.status {
			t.Errorf("GET %s: status %d, want %d", name, answer.StatusCode, c.status)
		}
	}
	if env := clitest.Read(t, fmt.Sprintf("/proc/%d/environ", l.Cmd.Process.Pid)); strings.Contains(env, token) {
		t.Error("perfagent's environment has the token")
	}

	o := l.finish()
	if o.Want(t, 7); strings.Contains(o.Err, token) {
		t.Errorf("stderr has the token: %q", o.Err)
	}
	wantNoFile(t, l.Cmd.Dir, token)
}

func TestListenToken_RefusesBadFiles(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{
		"": "the token is empty", "\n": "the token is empty", "a\nb\n": "control character", "a\n\n": "control character",
		strings.Repeat("x", 5000): "longer than 4096 bytes",
	} {
		file := clitest.Write(t, filepath.Join(dir, "token"), content, 0o600)
		wantError(t, inside(t, "run", "--listen-token-file", file, "--", "true"), 125, "--listen-token-file", want)
	}

	o := inside(t, "run", "--listen-token-file", filepath.Join(dir, "absent"), "--", "true")
	wantError(t, o, 125, "--listen-token-file", "no such file")
	public := clitest.Write(t, filepath.Join(dir, "public"), "x\r\n", 0o644)
	wantError(t, inside(t, "run", "--listen-token-file", public, "--", "true"), 0, "anyone can read")
}

// A page that other machines can reach without a token causes one warning.
func TestListenToken_PageOpenToOthersCausesWarning(t *testing.T) {
	for _, c := range []struct {
		address, token string
		warns          bool
	}{
		{"0.0.0.0:0", "", true}, {"[::]:0", "", true}, {"0.0.0.0:0", "x", false}, {"127.0.0.1:0", "", false}, {"localhost:0", "", false},
	} {
		cmd := insideCommand(t, "run", "--listen", c.address, "--", "true")
		cmd.Env = []string{"PERFAGENT_LISTEN_TOKEN=" + c.token}
		o := cmd.want(t, 0)
		if warned := strings.Count(o.Err, "--listen-token-file"); warned > 1 || (warned == 1) != c.warns {
			t.Errorf("--listen %s with the token %q: %d warnings, want one: %v; stderr %q",
				c.address, c.token, warned, c.warns, o.Err)
		}
	}
}
