package mlflowtest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
)

// pool shares the servers of this package's tests.
var pool Pool

func TestMain(m *testing.M) {
	code := m.Run()
	pool.Close()
	os.Exit(code)
}

const logSome = `
import sys, mlflow
mlflow.set_experiment("some")
with mlflow.start_run(run_name=sys.argv[1]) as run:
    mlflow.log_param("p", "v")
    mlflow.log_metric("a/b", 1.5, step=3, timestamp=1000)
    mlflow.log_metric("a/b", float("inf"), step=4, timestamp=2000)
    mlflow.log_dict({"a": 1}, "folder/x.json")
    print(run.info.run_id)
`

func status(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	response := check.Value(c.Get(url))(t)
	response.Body.Close()
	return response.StatusCode
}

func TestPool_StopsLeastRecentlyUsedServers(t *testing.T) {
	old, middle, used, next := &entry{running: true, used: 1}, &entry{running: true, used: 2}, &entry{running: true,
		used: 0, users: 1}, &entry{users: 1}
	p := Pool{entries: map[string]*entry{"a": old, "b": middle, "c": used, "d": next}}
	for _, e := range p.entries {
		e.server = new(Server)
	}
	p.makeRoom(next)
	if old.running || middle.running || !used.running {
		t.Errorf("running: old %v, middle %v, used %v; want only used", old.running, middle.running, used.running)
	}
	old.running, middle.running, used.users, used.running = true, true, 0, false
	p.makeRoom(next)
	if old.running || !middle.running {
		t.Errorf("running: old %v, middle %v; want only middle", old.running, middle.running)
	}
}

// All processes of a server end with the test binary, even if the test binary is killed.
func TestGuard_KillsAllProcessesWhenInputEnds(t *testing.T) {
	cmd := exec.Command(testenv.Python(t), "-c", guard, "sh", "-c", "sleep 600 & echo begun; exec sleep 600")
	hold := check.Value(cmd.StdinPipe())(t)
	out := check.Value(cmd.StdoutPipe())(t)
	check.Must(t, cmd.Start())
	defer time.AfterFunc(maxWait, func() { _ = cmd.Process.Kill() }).Stop()
	if _, err := out.Read(make([]byte, len("begun\n"))); err != nil {
		t.Errorf("read the first output: %v", err)
	}
	hold.Close()
	if n, err := out.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, error %v, after the input ended; want the end of the output", n, err)
	}
	// Both sleeps have this output open. Its end proves that they have ended.
	if err := cmd.Wait(); err != nil {
		t.Errorf("the guard ended with %v, want no error", err)
	}
}

func TestTLSProxy_IsTrustedOnlyWithItsAuthority(t *testing.T) {
	url, ca := TLSProxy(t, Serve(t, NewFake()).URL)
	if _, err := http.Get(url + "/health"); err == nil {
		t.Error("GET without the proxy's authority succeeded, want an error")
	}
	pem, roots := check.Value(os.ReadFile(ca))(t), x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	if code := status(t, client, url+"/health"); code != http.StatusOK {
		t.Errorf("with the proxy's authority: status %d, want %d", code, http.StatusOK)
	}
}
