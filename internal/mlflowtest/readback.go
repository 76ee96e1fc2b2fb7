package mlflowtest

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"
)

//go:embed testdata/readback.py
var readback string

// RunData holds all data that a server has about a run.
type RunData struct {
	Info      RunInfo            `json:"info"`
	Tags      map[string]string  `json:"tags"`
	Params    map[string]string  `json:"params"`
	Latest    map[string]Number  `json:"latest"`    // the value that the server shows for each metric
	Metrics   map[string][]Point `json:"metrics"`   // the whole history of each metric
	Artifacts []Artifact         `json:"artifacts"` // of all folders, by path
}

// RunInfo describes a run. Times are in ms since 1970, and 0 if unset.
type RunInfo struct {
	RunID          string `json:"run_id"`
	RunName        string `json:"run_name"`
	ExperimentID   string `json:"experiment_id"`
	ExperimentName string `json:"experiment_name"`
	UserID         string `json:"user_id"`
	Status         string `json:"status"`
	LifecycleStage string `json:"lifecycle_stage"`
	StartTime      int64  `json:"start_time"`
	EndTime        int64  `json:"end_time"`
	ArtifactURI    string `json:"artifact_uri"`
}

// An Artifact is a file of a run.
type Artifact struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // for JSON files of up to 1 MiB only
}

// A Point is one value of a metric.
type Point struct {
	Timestamp int64 // in ms since 1970
	Step      int64
	Value     float64
}

// UnmarshalJSON parses [timestamp, step, value].
func (p *Point) UnmarshalJSON(data []byte) error {
	var value Number
	if err := json.Unmarshal(data, &[]any{&p.Timestamp, &p.Step, &value}); err != nil {
		return err
	}
	p.Value = float64(value)
	return nil
}

// A Number is a float64. In JSON, NaN and infinities are strings.
type Number float64

// UnmarshalJSON parses a number or a string.
func (n *Number) UnmarshalJSON(data []byte) error {
	v, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64)
	*n = Number(v)
	return err
}

// ReadBack reads the run with MLflow's Python client.
func (s *Server) ReadBack(tb testing.TB, runID string) RunData {
	tb.Helper()
	return s.ask(tb, runID)[0]
}

// Runs reads all runs of the named experiment, or of all experiments if the name is "", the earliest first. Deleted
// runs are included.
func (s *Server) Runs(tb testing.TB, experiment string) []RunData {
	tb.Helper()
	if experiment == "" {
		return s.ask(tb, "--all")
	}
	return s.ask(tb, "--experiment", experiment)
}

// ask sends a query to the reader, and starts it for the first query. The reader keeps running, because importing
// MLflow takes seconds.
func (s *Server) ask(tb testing.TB, args ...string) []RunData {
	tb.Helper()
	s.mu.Lock()
	if s.reader == nil {
		r, err := s.newReader()
		if err != nil {
			s.mu.Unlock()
			tb.Fatal(err)
		}
		s.reader = r
	}
	r := s.reader
	s.mu.Unlock()

	runs, err := r.ask(args)
	if err != nil {
		tb.Fatalf("reading back %q: %v", args, err)
	}
	return runs
}

// A reader is a Python process that reads runs from the server.
type reader struct {
	mu      sync.Mutex
	process *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	stderr  bytes.Buffer
}

// newReader starts a reader, which ends when its standard input is closed.
func (s *Server) newReader() (*reader, error) {
	r := &reader{process: exec.Command(s.Python, "-c", readback)}
	r.process.Dir, r.process.Stderr = s.Dir, &r.stderr
	r.process.Env = s.Env("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR=false", "MLFLOW_HTTP_REQUEST_MAX_RETRIES=1")

	var err error
	if r.stdin, err = r.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := r.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.stdout = bufio.NewReader(stdout)
	return r, r.process.Start()
}

// ask sends one query and returns its result.
func (r *reader) ask(args []string) ([]RunData, error) {
	question, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer time.AfterFunc(maxWait, func() { _ = r.process.Process.Kill() }).Stop()
	if _, err := r.stdin.Write(append(question, '\n')); err != nil {
		return nil, err
	}
	line, err := r.stdout.ReadBytes('\n')
	if err != nil {
		_ = r.process.Wait() // so that stderr is complete
		return nil, fmt.Errorf("%w; stderr:\n%s", err, r.stderr.String())
	}

	var answer struct {
		Runs  []RunData
		Error string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	return answer.Runs, nil
}

func (r *reader) close() {
	_ = r.stdin.Close()
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}
