package mlflowtest

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/testenv"
)

// maxWait limits how long a server may take to start, and how long a script may run. It is generous because machines
// may be busy.
const maxWait = 2 * time.Minute

//go:embed testdata/guard.py
var guard string

// Options configures a real server.
type Options struct {
	// Version is the major version: 3 or 2. 0 means 3.
	Version int
	// FileStore keeps runs in a directory instead of a database.
	FileStore bool
	// BasicAuth requires a user and a password.
	BasicAuth bool
	// NoServeArtifacts puts the artifacts of runs into a directory on the server's machine, for clients that can write
	// to it.
	NoServeArtifacts bool
}

// A Server is a real MLflow server on loopback.
type Server struct {
	URL      string
	Version  int    // major
	Python   string // an interpreter with the same version of MLflow
	Dir      string // directory of the server's store and log
	Port     int
	User     string // "" without authentication
	Password string

	options Options

	mu      sync.Mutex
	process *exec.Cmd // nil if the server is stopped
	hold    io.Closer // the process ends when hold is closed
	ended   chan struct{}
	reader  *reader
}

// Start starts a server that runs until the test ends. It skips the test under -short, or if MLflow is missing. In CI,
// a missing MLflow fails the test.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := newServer(tb, o, tb.TempDir())
	tb.Cleanup(s.close)
	tb.Cleanup(func() { s.logTail(tb) })
	s.start(tb)
	return s
}

// newServer returns a server with its files in dir, not yet started.
func newServer(tb testing.TB, o Options, dir string) *Server {
	tb.Helper()
	if o.Version == 0 {
		o.Version = 3
	}
	s := &Server{Version: o.Version, Python: python(tb, o.Version), Dir: dir, options: o}
	if o.BasicAuth {
		s.User, s.Password = "admin", "secret-of-"+strconv.Itoa(os.Getpid())
	}
	return s
}

// python returns the Python interpreter that has the given major version of MLflow.
func python(tb testing.TB, version int) string {
	tb.Helper()
	testenv.SkipIfShort(tb, fmt.Sprintf("a server of MLflow %d", version))

	variable := fmt.Sprintf("PERFAGENT_TEST_MLFLOW%d", version)
	path := filepath.Join(os.Getenv(variable), "bin", "python")
	if _, err := os.Stat(path); err == nil && os.Getenv(variable) != "" {
		return path
	}

	testenv.SkipOrFail(tb, fmt.Sprintf("needs MLflow %d: make test (of version 2: make e2e) installs it; or name a venv that has it in %s",
		version, variable))
	return ""
}

// start starts the server. It tries several ports, because another process may take a port first.
func (s *Server) start(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	given := s.Port
	for range 3 {
		if given == 0 {
			s.Port = testenv.FreePort(tb)
			s.URL = fmt.Sprintf("http://127.0.0.1:%d", s.Port)
		}
		err := s.launch()
		if err == nil {
			err = s.healthy()
		}
		if err == nil {
			return
		}
		s.kill()
		if !strings.Contains(s.tail(), "ddress already in use") {
			tb.Fatalf("%v; its log ends with:\n%s", err, s.tail())
		}
	}

	tb.Fatalf("no free port for MLflow's server; its log ends with:\n%s", s.tail())
}

// launch starts the process under the guard, which kills it when hold is closed.
func (s *Server) launch() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command(s.Python, append([]string{"-c", guard, s.Python, "-m", "mlflow", "server"}, s.args()...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, s.serverEnv(), log, log
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}

	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // always fails, because the process is killed
		close(ended)
	}()
	s.process, s.hold, s.ended = cmd, hold, ended
	return nil
}

// args returns the arguments of "mlflow server".
func (s *Server) args() []string {
	store := "sqlite:///" + filepath.Join(s.Dir, "mlflow.db")
	if s.options.FileStore {
		store = filepath.Join(s.Dir, "store")
	}
	args := []string{
		"--host", "127.0.0.1", "--port", strconv.Itoa(s.Port), "--workers", "1", "--backend-store-uri", store,
	}
	if artifacts := filepath.Join(s.Dir, "artifacts"); s.options.NoServeArtifacts {
		args = append(args, "--no-serve-artifacts", "--default-artifact-root", artifacts)
	} else {
		args = append(args, "--artifacts-destination", artifacts)
	}
	if s.options.BasicAuth {
		args = append(args, "--app-name", "basic-auth")
	}
	return args
}

// ours matches the variables that the environment of servers and clients must not inherit, such as MLflow's,
// perfagent's and Python's. PYTHONDONTWRITEBYTECODE would make each start of a server three times as slow.
var ours = regexp.MustCompile(`^(MLFLOW_|_MLFLOW_|PERFAGENT_|PYTHONDONTWRITEBYTECODE=|PYTHONPATH=|PYTHONHOME=|` +
	`GUNICORN_|HOME=|PATH=)`)

// baseEnv returns the environment of the server and of its clients.
func (s *Server) baseEnv(home string) []string {
	env := slices.DeleteFunc(os.Environ(), ours.MatchString)
	path := filepath.Dir(s.Python) + string(os.PathListSeparator) + os.Getenv("PATH")
	return append(env, "HOME="+home, "PATH="+path, "MLFLOW_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=true",
		"PYTHONWARNINGS=ignore", "OPENBLAS_NUM_THREADS=1", "GIT_PYTHON_REFRESH=quiet")
}

// serverEnv returns the environment of the server.
func (s *Server) serverEnv() []string {
	env := append(s.baseEnv(s.Dir), "GUNICORN_CMD_ARGS=--no-control-socket", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false")
	if s.options.FileStore {
		env = append(env, "MLFLOW_ALLOW_FILE_STORE=true")
	}
	if s.options.BasicAuth {
		env = append(env, "MLFLOW_AUTH_CONFIG_PATH="+s.authConfig(), "MLFLOW_FLASK_SERVER_SECRET_KEY=of-a-test")
	}
	return env
}

// authConfig writes the user to a file that both versions of MLflow read, and returns its path.
func (s *Server) authConfig() string {
	path := filepath.Join(s.Dir, "basic_auth.ini")
	text := fmt.Sprintf("[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///%s\n"+
		"admin_username = %s\nadmin_password = %s\n"+
		"authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n",
		filepath.Join(s.Dir, "basic_auth.db"), s.User, s.Password)
	_ = os.WriteFile(path, []byte(text), 0o600) // without the file, the server fails to start
	return path
}

// healthy waits until the server responds. It returns an error if that takes too long or the process ends.
func (s *Server) healthy() error {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	for begin := time.Now(); time.Since(begin) < maxWait; {
		if response, err := client.Get(s.URL + "/health"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("MLflow's server ended before it responded")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("MLflow's server did not respond within %v", maxWait)
}

// kill ends the process and all its children.
func (s *Server) kill() {
	if s.process == nil {
		return
	}
	_ = s.hold.Close()
	<-s.ended
	s.process = nil
}

// close ends the server and the reader.
func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	if s.reader != nil {
		s.reader.close()
		s.reader = nil
	}
}

func (s *Server) logFile() string { return filepath.Join(s.Dir, "server.log") }

// tail returns the end of the server's log.
func (s *Server) tail() string {
	const length = 4 << 10
	data, _ := os.ReadFile(s.logFile()) // a missing log is empty
	return string(data[max(0, len(data)-length):])
}

// logTail logs the end of the server's log if the test failed.
func (s *Server) logTail(tb testing.TB) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("the log of MLflow %d at %s ends with:\n%s", s.Version, s.URL, s.tail())
	}
}

// Env returns the environment for a client of this server, plus the variables in more.
func (s *Server) Env(more ...string) []string {
	env := append(s.baseEnv(s.Dir), "MLFLOW_TRACKING_URI="+s.URL, "PYTHONUNBUFFERED=1")
	if s.User != "" {
		env = append(env, "MLFLOW_TRACKING_USERNAME="+s.User, "MLFLOW_TRACKING_PASSWORD="+s.Password)
	}
	return append(env, more...)
}

// Run runs a Python script with MLflow's client configured for the server, and returns its output.
func (s *Server) Run(tb testing.TB, script string, args ...string) string {
	tb.Helper()
	cmd := exec.Command(s.Python, append([]string{"-c", guard, s.Python, "-c", script}, args...)...)
	var out, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = tb.TempDir(), s.Env(), &out, &stderr
	hold, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}

	timer := time.AfterFunc(maxWait, func() {
		tb.Errorf("a Python script was killed after %v", maxWait)
		hold.Close()
	})
	defer timer.Stop()
	if err := cmd.Run(); err != nil {
		tb.Fatalf("a Python script failed: %v; stderr:\n%s", err, stderr.String())
	}
	return out.String()
}
