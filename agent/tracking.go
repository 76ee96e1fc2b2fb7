package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// An mlflowTracking holds the MLflow destination of a run, from the options and the environment. Creating one contacts
// no server. It is an observer of the run, for the live push.
type mlflowTracking struct {
	uri   string // as given, perhaps with user info; never shown
	state reporter.PushState

	node            string // the node's name in MLflow
	ofRank          bool   // the job is one of several ranks on the node
	pushedElsewhere bool   // another agent of the node pushes live

	head  *journal.Head // describes the run to the live push; nil if there is none
	live  *pusher.Live
	stop  func() (ended bool)
	ended *pusher.Live // the value of live, after it has ended
}

// newTracking determines where to push from the options and MLflow's environment variables.
func newTracking(o Options) *mlflowTracking {
	t := &mlflowTracking{uri: o.MLflow, state: reporter.PushState{State: reporter.PushOff}}
	switch o.MLflow {
	case Off:
		t.uri = ""
	case Auto:
		t.uri = os.Getenv("MLFLOW_TRACKING_URI")
	}
	if t.uri == "" {
		return t
	}

	t.state.URI = mlflow.PublicURI(t.uri)
	if err := mlflow.CheckURI(t.uri); err != nil {
		t.state.Error = err.Error()
		return t
	}

	t.node = o.nodeInMLflow()
	run := os.Getenv("MLFLOW_RUN_ID")
	t.state = reporter.PushState{
		State: reporter.PushPending, URI: t.state.URI, RunID: run, Given: run != "",
		Invocation:     pusher.NewInvocation(t.node),
		ExperimentName: os.Getenv("MLFLOW_EXPERIMENT_NAME"), ExperimentID: os.Getenv("MLFLOW_EXPERIMENT_ID"),
	}
	return t
}

// nodeInMLflow returns the node's name in MLflow, for options with defaults.
func (o Options) nodeInMLflow() string {
	index := strconv.Itoa(*o.Node)
	if o.nodeGiven {
		return index
	}
	id := newIdentity(o.identity)
	host, _ := os.Hostname() // "" if unknown

	return pusher.NodeName(index, &id, host)
}

// configureRank configures the push for one of several ranks on this node. common is a string shared by exactly the
// agents of this launch on this node. It identifies the MLflow run created by the job of any of these ranks. The live
// push sends only the host's series, and waits for startLive unless the rank measures the host from the beginning
// (measuresHost). Call it before jobEnv.
func (t *mlflowTracking) configureRank(common string, measuresHost bool) {
	t.ofRank, t.pushedElsewhere = true, !measuresHost
	if t.isEnabled() {
		t.state.Invocation = pusher.SharedInvocation(common, t.node)
	}
}

// startLive begins the live push when the rank begins to measure the host. It is called in the sampling goroutine.
func (t *mlflowTracking) startLive() {
	t.pushedElsewhere = false
	t.begin(nil)
}

// isEnabled reports whether there is a server to push to.
func (t *mlflowTracking) isEnabled() bool { return t.state.State == reporter.PushPending }

// jobEnv returns additions to the job's environment that put our tags on the MLflow runs that the job creates. It does
// not touch an MLFLOW_RUN_CONTEXT that it cannot parse.
func (t *mlflowTracking) jobEnv(runID string) []string {
	if !t.isEnabled() {
		return nil
	}

	var tags map[string]json.RawMessage
	if had := os.Getenv("MLFLOW_RUN_CONTEXT"); had == "" {
		tags = make(map[string]json.RawMessage)
	} else if json.Unmarshal([]byte(had), &tags) != nil || tags == nil || !survivesJSON(had) {
		return nil
	}
	for key, value := range map[string]string{pusher.TagRunID: runID, pusher.TagInvocation: t.state.Invocation} {
		tags[key], _ = json.Marshal(value) // strings never fail
	}

	merged, err := text.JSON(tags)
	entry := "MLFLOW_RUN_CONTEXT=" + string(merged)
	if err != nil || len(entry) >= maxEnvEntry {
		return nil
	}
	return []string{entry}
}

// maxEnvEntry is the maximum size of one environment string of execve(2), with its terminator (MAX_ARG_STRLEN of
// linux/binfmts.h). The job could not start with a longer string.
const maxEnvEntry = 128 << 10

// survivesJSON reports whether had, which is JSON, keeps its meaning when it is decoded and encoded. Invalid UTF-8 and
// unpaired surrogates would be lost.
func survivesJSON(had string) bool {
	var value any
	if !utf8.ValidString(had) || json.Unmarshal([]byte(had), &value) != nil {
		return false
	}
	again, err := json.Marshal(value)

	return err == nil && bytes.Count(again, []byte("\uFFFD")) == strings.Count(had, "\uFFFD")
}

const (
	// maxResponse bounds the size of a response from the server, in bytes. The latest values of a run of a thousand
	// nodes take 3 MB.
	maxResponse = 8 << 20

	// maxRefused is the number of retries at the job's end if the server refuses the connection. It is small so that
	// the jobs of a pipeline do not each wait for the timeout while the server is down.
	maxRefused = 3
)

// connect returns a client for pushing while the job runs or at its end. retries and the delays between them override
// the MLFLOW_HTTP_… variables.
func (t *mlflowTracking) connect(retries int) (*mlflow.Client, error) {
	cfg, err := pusher.ClientConfig(t.uri, Version(), os.LookupEnv)
	if err != nil {
		return nil, err
	}

	cfg.MaxRetries, cfg.BackoffFactor, cfg.BackoffJitter, cfg.MaxBackoff = retries, 0.2, 0.1, 2*time.Second
	cfg.MaxResponse = maxResponse
	refused := 0
	cfg.OnRetry = func(err error, _ time.Duration) bool {
		if unreachable(err) {
			refused++
		}
		return refused <= maxRefused
	}

	return mlflow.New(cfg)
}

// unreachable reports whether err means that no server listens at the address.
func unreachable(err error) bool {
	var dns *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dns) && dns.IsNotFound
}

// begin starts the live push.
func (t *mlflowTracking) begin(*collector.Recording) {
	if !t.isEnabled() || t.head == nil || t.pushedElsewhere || t.live != nil {
		return
	}

	dest := pusher.NewDestination(t.state)
	dest.LimitsNames = pusher.LimitsMetricNames(t.uri, os.LookupEnv)
	t.live = pusher.NewLive(*t.head, dest, func() (*mlflow.Client, error) { return t.connect(1) })
	if t.ofRank {
		t.live.SetHostOnly()
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.live.Run(ctx)
	}()

	t.stop = func() bool {
		cancel()
		_, ended := timeout.Receive(done, 300*time.Millisecond) // a credentials file may be on a disk that hangs
		return ended
	}
}

func (t *mlflowTracking) observe(_ *collector.Sample, rec *collector.Recording) {
	if t.live != nil {
		t.live.Observe(rec)
	}
}

// end stops the live push, and keeps the ID of the MLflow run that the live push found or created.
func (t *mlflowTracking) end() []reporter.Missing {
	if t.live == nil || !t.stop() {
		return nil
	}

	t.ended = t.live
	if id := t.live.RunID(); id != "" {
		t.state.RunID = id
	}

	return nil
}
