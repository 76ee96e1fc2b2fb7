//go:build e2e

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/reporter"
)

func TestE2E_MLflow_AuthenticatesWithEveryMethod(t *testing.T) {
	t.Parallel()
	onServer(t, mlflowtest.Options{Version: 3, BasicAuth: true},
		serverCases{"credentials": testCredentials, "secrets": testSecrets})
}

// If the server does not serve artifacts, files go to its artifact store directly.
func TestE2E_MLflow_UploadsToArtifactStoreDirectly(t *testing.T) {
	t.Parallel()
	clitest.Binary(t)
	s, experiment := mlflowServers.Get(t, mlflowtest.Options{Version: 3, NoServeArtifacts: true}), study(t)
	o := mustExit(t, 0, wrapped(t, s, experiment, "sh", "-c", "sleep 0.2"))
	if run, _ := wantPushedRun(t, s, experiment, o); strings.HasPrefix(run.Info.ArtifactURI, "mlflow-artifacts:") {
		t.Errorf("artifact URI %s goes through the tracking server, want a direct one", run.Info.ArtifactURI)
	}
}

// afterwards matches the command in perfagent's hint.
var afterwards = regexp.MustCompile(`(?m)push it with: (.*)$`)

// runAfterwards runs the command that stderr shows, in a shell.
func runAfterwards(o clitest.Outcome, t *testing.T, env []string) clitest.Outcome {
	t.Helper()
	m := afterwards.FindStringSubmatch(o.Err)
	if m == nil {
		t.Fatalf("stderr names no command to push later: %q", o.Err)
	}
	return clitest.RunCommand(t, with(clitest.Command(t, "sh", "-c", m[1]), env...))
}

// A certificate of an unknown authority is rejected with a hint, and the command in the hint works.
func testTLS(t *testing.T, s *mlflowtest.Server) {
	address, ca := mlflowtest.TLSProxy(t, s.URL)
	for name, known := range map[string][]string{
		"known authority":   {"MLFLOW_TRACKING_SERVER_CERT_PATH=" + ca},
		"no verification":   {"MLFLOW_TRACKING_INSECURE_TLS=true"},
		"unknown authority": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			experiment := study(t)
			cmd := with(wrapped(t, s, experiment, "sh", "-c", "sleep 0.1; exit 5"), "MLFLOW_TRACKING_URI="+address)
			o := mustExit(t, 5, with(cmd, known...))
			if path := theReport(t, o); known == nil {
				o.WantLine(t, "MLFLOW_TRACKING_SERVER_CERT_PATH", "MLFLOW_TRACKING_INSECURE_TLS=true", path)
				if state := pushState(t, path, "0"); state.State != reporter.PushPending || !strings.Contains(state.Error, "certificate") {
					t.Errorf("push state %+v, want pending with an error about the certificate", state)
				}
				runAfterwards(o, t, nil).Want(t, 1)
				runAfterwards(o, t, []string{"MLFLOW_TRACKING_SERVER_CERT_PATH=" + ca}).Want(t, 0)
			} else if o.Err != "" {
				t.Errorf("stderr %q, want none", o.Err)
			}
			wantPushedRun(t, s, experiment, o)
		})
	}
}

// weakHash replaces the password hashes in a server's database with hashes that are fast to check. A real hash takes a
// tenth of a second, and each request checks several.
const weakHash = `
import sqlite3, sys
from werkzeug.security import generate_password_hash
with sqlite3.connect(sys.argv[1], timeout=600) as db:
    for user, password in zip(sys.argv[2::2], sys.argv[3::2]):
        db.execute("UPDATE users SET password_hash = ? WHERE username = ?", (generate_password_hash(password, "pbkdf2:sha256:1"), user))
`

// keys are credentials that must not appear in any output or file.
type keys struct{ user, password string }

// newUser adds a user to a server. The password contains characters that must be escaped in a URI.
func newUser(t *testing.T, s *mlflowtest.Server) keys {
	t.Helper()
	k := keys{"u5er-" + newInvocation(), "pa55/w@rd:" + newInvocation()}
	body, _ := json.Marshal(map[string]string{"username": k.user, "password": k.password}) // strings never fail
	req, err := http.NewRequest(http.MethodPost, s.URL+"/api/2.0/mlflow/users/create", bytes.NewReader(body))
	check.Must(t, err)
	req.SetBasicAuth(s.User, s.Password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	check.Must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("create a user on the server: %s, want 200", resp.Status)
	}
	s.Run(t, weakHash, filepath.Join(s.Dir, "basic_auth.db"), s.User, s.Password, k.user, k.password)
	return k
}

// uri returns a server's URI with user info.
func (k keys) uri(server string) string {
	return strings.Replace(server, "://", "://"+url.UserPassword(k.user, k.password).String()+"@", 1)
}

func (k keys) env() []string {
	return []string{"MLFLOW_TRACKING_USERNAME=" + k.user, "MLFLOW_TRACKING_PASSWORD=" + k.password}
}

// home returns a directory with a credentials file.
func (k keys) home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check.Must(t, os.Mkdir(filepath.Join(dir, ".mlflow"), 0o700))
	clitest.Write(t, filepath.Join(dir, ".mlflow/credentials"),
		"[mlflow]\nmlflow_tracking_username = "+k.user+"\nmlflow_tracking_password = "+k.password+"\n", 0o600)
	return dir
}

// forms returns the possible spellings of the keys.
func (k keys) forms() []string {
	info := url.UserPassword(k.user, k.password).String()
	_, escaped, _ := strings.Cut(info, ":")
	return []string{k.user, k.password, escaped, url.QueryEscape(k.password),
		base64.StdEncoding.EncodeToString([]byte(k.user + ":" + k.password))}
}

// anonymous prepares perfagent as a client without credentials.
func anonymous(t *testing.T, s *mlflowtest.Server, experiment string, args ...string) *exec.Cmd {
	t.Helper()
	return with(clitest.Perfagent(t, args...), "HOME="+t.TempDir(), "MLFLOW_TRACKING_URI="+s.URL,
		"MLFLOW_EXPERIMENT_NAME="+experiment, "PERFAGENT_SUMMARY=never") // only messages about the push
}

func testCredentials(t *testing.T, s *mlflowtest.Server) {
	k := newUser(t, s)
	for name, c := range map[string]struct{ env, refused []string }{
		"environment":      {k.env(), nil},
		"credentials file": {[]string{"HOME=" + k.home(t)}, nil},
		"user info":        {[]string{"MLFLOW_TRACKING_URI=" + k.uri(s.URL)}, nil},
		"a wrong password": {keys{k.user, "wr0ng-key"}.env(), []string{"MLFLOW_TRACKING_PASSWORD"}},
		"no password":      {nil, []string{"MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			experiment := study(t)
			o := mustExit(t, 6, with(anonymous(t, s, experiment, "run", "--", "sh", "-c", "sleep 0.1; exit 6"), c.env...))
			if path := theReport(t, o); c.refused != nil {
				o.WantLine(t, append(c.refused, path)...)
				if state := pushState(t, path, "0"); state.State != reporter.PushPending || strings.Contains(o.Err, "wr0ng-key") {
					t.Errorf("push state %+v, want pending; stderr %q, want no password in it", state, o.Err)
				}
				runAfterwards(o, t, k.env()).Want(t, 0)
			}
			wantPushedRun(t, s, experiment, o)
		})
	}
}

// cast runs processes with secrets in their environment in one directory, and collects all their output.
type cast struct {
	t          *testing.T
	s          *mlflowtest.Server
	experiment string
	dir        string
	said       bytes.Buffer
	keys       []keys
}

// with runs perfagent in c.dir and collects its output.
func (c *cast) with(env []string, code int, args ...string) {
	c.t.Helper()
	cmd := with(anonymous(c.t, c.s, c.experiment, args...), env...)
	cmd.Dir = c.dir
	o := mustExit(c.t, code, cmd)
	c.said.WriteString(o.Out + o.Err + "\n")
}

// tellsWhat is a job that prints perfagent's arguments and copies its journal.
const tellsWhat = `tr '\0' ' ' </proc/$PPID/cmdline; cp -r perfagent-out "copy-$PERFAGENT_RUN_ID"; exit 4`

// No file or output contains a token, password or user info.
func testSecrets(t *testing.T, s *mlflowtest.Server) {
	good, wrong, token := newUser(t, s), keys{"n0body-" + newInvocation(), "wr0ng@" + newInvocation()}, "t0ken-"+newInvocation()
	c := &cast{t: t, s: s, experiment: study(t), dir: t.TempDir(), keys: []keys{good, wrong, {token, token}}}
	const dead = "http://127.0.0.1:9/"
	job := func(id string, more ...string) []string {
		args := append([]string{"run", "--run-id", id, "--interval", "20ms", "--log-level", "debug", "--summary", "always"}, more...)
		return append(args, "--", "sh", "-c", tellsWhat)
	}
	c.with(good.env(), 4, job("env")...)
	c.with([]string{"HOME=" + good.home(t)}, 4, job("file")...)
	c.with([]string{"MLFLOW_TRACKING_URI=" + good.uri(s.URL) + "/?key=" + token}, 4, job("uri")...)
	c.with([]string{"MLFLOW_TRACKING_URI=" + wrong.uri(s.URL)}, 4, job("wrong")...)
	c.with([]string{"MLFLOW_TRACKING_TOKEN=" + token}, 4, job("token")...)
	c.with([]string{"MLFLOW_TRACKING_URI=" + wrong.uri(dead), "MLFLOW_TRACKING_TOKEN=" + token}, 4, job("dead", "--push-timeout", "300ms")...)
	for i, uri := range []string{"mysql://" + wrong.user + ":" + wrong.password + "@host/db", wrong.uri("https://host:port"), wrong.uri("http://ho st"),
		"databricks://" + wrong.user + ":" + wrong.password, wrong.uri("ftp://host"), wrong.user + ":" + wrong.password + "@host"} {
		c.with([]string{"MLFLOW_TRACKING_URI=" + uri}, 4, job(fmt.Sprint("odd-", i))...)
		c.with(nil, 1, "push", "--mlflow", uri, "perfagent-out/dead/node-0.json")
	}
	c.with(good.env(), 0, "push", "--dry-run", "perfagent-out/wrong/node-0.json")
	c.with(wrong.env(), 1, "push", "--dry-run", "perfagent-out/token/node-0.json")
	c.with(wrong.env(), 1, "push", "perfagent-out/token/node-0.json")
	c.with([]string{"MLFLOW_TRACKING_URI=" + good.uri(s.URL)}, 0, "push", "perfagent-out/token/node-0.json")
	c.with(good.env(), 0, "push", "perfagent-out/wrong/node-0.json", "perfagent-out/token/node-0.json")
	c.with(append(wrong.env(), "MLFLOW_HTTP_REQUEST_MAX_RETRIES=0"), 1, "push", "perfagent-out/dead/node-0.json")
	c.with(good.env(), 0, "push", "--mlflow", good.uri(s.URL), "perfagent-out/dead/node-0.json")
	c.with(good.env(), 0, "merge", "perfagent-out/env/node-0.json", "--to", "merged.json")
	c.with(good.env(), 0, "show", "perfagent-out/uri/node-0.json")
	c.with(good.env(), 0, "show", "--json", "perfagent-out/wrong/node-0.json")
	c.sidecar(good)
	c.search()
}

// sidecar runs a sidecar and collects its arguments, which any user can read.
func (c *cast) sidecar(k keys) {
	c.t.Helper()
	cmd := anonymous(c.t, c.s, c.experiment, "sidecar", "--run-id", "side", "--interval", "20ms")
	cmd.Dir = c.dir
	l := clitest.StartProcess(c.t, with(cmd, "MLFLOW_TRACKING_URI="+k.uri(c.s.URL)))
	report := filepath.Join(c.dir, "perfagent-out/side/node-0.json")
	clitest.WaitUntil(c.t, "there is a report", func() bool { return clitest.Exists(report) })
	words := clitest.Read(c.t, fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
	l.Signal(unix.SIGTERM)
	o := mustEnd(l, 0)
	c.said.WriteString(words + o.Out + o.Err + "\n")
}

// search looks for the secrets in all output and files.
func (c *cast) search() {
	c.t.Helper()
	c.holds("the output", c.said.Bytes())
	files := 0
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		c.holds(path, data)
		files++
		return err
	})
	if err != nil || files < 20 {
		c.t.Errorf("%d files were searched (%v), want at least 20", files, err)
	}
	runs := c.s.Runs(c.t, c.experiment)
	if len(runs) < 5 {
		c.t.Errorf("%d runs on the server, want at least 5: %s", len(runs), runList(runs))
	}
	for _, run := range runs {
		text, err := json.Marshal(map[string]any{"tags": run.Tags, "params": run.Params, "artifacts": run.Artifacts, "name": run.Info.RunName})
		check.Must(c.t, err)
		c.holds("run "+run.Info.RunName, text)
		for _, a := range run.Artifacts {
			c.holds("artifact "+a.Path, artifact(c.t, c.s, run.Info.RunID, a.Path))
		}
	}
}

// holds checks that a text contains none of the secrets.
func (c *cast) holds(where string, text []byte) {
	c.t.Helper()
	for _, k := range c.keys {
		for _, form := range k.forms() {
			if i := bytes.Index(text, []byte(form)); i >= 0 {
				c.t.Errorf("%s contains the secret %q: …%s…", where, form, text[max(0, i-200):min(len(text), i+len(form)+100)])
			}
		}
	}
}
