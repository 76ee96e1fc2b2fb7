package main

import (
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/mlflowtest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// deadServer is an address without a server.
const deadServer = "http://127.0.0.1:1"

// pushIn runs perfagent push with MLFLOW_TRACKING_URI=uri and without retries, and checks its exit code.
func pushIn(t *testing.T, uri string, code int, args ...string) clitest.Outcome {
	t.Helper()
	cmd := insideCommand(t, append([]string{"push"}, args...)...)
	cmd.Env = append(cmd.Env, "MLFLOW_TRACKING_URI="+uri, "MLFLOW_HTTP_REQUEST_MAX_RETRIES=0")
	return cmd.want(t, code)
}

// wantFirst checks the first line of stdout.
func wantFirst(t *testing.T, o clitest.Outcome, want string) {
	t.Helper()
	if first, _, _ := strings.Cut(o.Out, "\n"); first != want {
		t.Errorf("the first line is %q, want %q", first, want)
	}
}

// recorded returns the push state in a report.
func recorded(t *testing.T, path string) reporter.PushState {
	t.Helper()
	return readReport(t, path).Nodes["0"].Push.MLflow
}

// The flag takes precedence over the variable, and the variable over the server in the report.
func TestPush_PrefersFlagThenVariableThenReport(t *testing.T) {
	testenv.SkipIfShort(t, "seconds for its pushes")
	flag, shell, remembered := newSite(t), newSite(t), newSite(t)
	withUser := strings.Replace(shell.URL, "http://", "http://me:secret@", 1)

	o := pushIn(t, shell.URL, 0, "--mlflow", flag.URL, pendingReport(t, remembered.URL, "--", "true"))
	wantFirst(t, o, "pushing to "+flag.URL+" (--mlflow)")
	flag.only(t)

	path := pendingReport(t, deadServer, "--", "true")
	o = pushIn(t, withUser, 0, path)
	wantFirst(t, o, "pushing to "+shell.URL+" (MLFLOW_TRACKING_URI)")
	if shell.only(t); strings.Contains(o.Out+o.Err, "secret") {
		t.Errorf("output has the password: stdout %s, stderr %s", o.Out, o.Err)
	}
	if state := recorded(t, path); state.State != reporter.PushDone || state.URI != shell.URL {
		t.Errorf("the report records the push %+v, want done to %s", state, shell.URL)
	}

	for _, uri := range []string{"", "./mlruns", "sqlite:///mlflow.db"} {
		wantFirst(t, pushIn(t, uri, 0, pendingReport(t, remembered.URL, "--", "true")), "pushing to "+remembered.URL+" (recorded in the report)")
	}
	if n := len(remembered.Runs()); n != 3 {
		t.Errorf("%d runs on the server in the reports, want 3", n)
	}
}

// A push to an unreachable server in MLFLOW_TRACKING_URI prints the address, fails, and does not change the server in
// the report.
func TestPush_UnreachableServerInVariableKeepsServerInReport(t *testing.T) {
	testenv.SkipIfShort(t, "a second for its pushes")
	remembered := newSite(t)
	path := pendingReport(t, remembered.URL, "--", "true")

	o := pushIn(t, deadServer, 1, path, path)
	if want := "pushing to " + deadServer + " (MLFLOW_TRACKING_URI)\n"; o.Out != want { // only once for both reports
		t.Errorf("stdout %q, want %q", o.Out, want)
	}
	if state := recorded(t, path); state.State != reporter.PushPending || state.URI != remembered.URL {
		t.Errorf("the report records the push %+v, want pending to %s", state, remembered.URL)
	}

	pushIn(t, "", 0, path)
	remembered.only(t)
}

// A report that records an unreachable server is pushed to the server in MLFLOW_TRACKING_URI.
func testPushToTheShellsServer(t *testing.T, s *mlflowtest.Server) {
	experiment := study(t)
	path := pendingReport(t, deadServer, "--", "true")
	o := pushNow(t, s, experiment, path)
	wantFirst(t, o, "pushing to "+s.URL+" (MLFLOW_TRACKING_URI)")
	run := onlyRun(t, s, experiment)
	wantHistories(t, run, path)
	wantDone(t, path, run.Info.RunID)
}
