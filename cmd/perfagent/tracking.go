package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/mlflow"
	"github.com/perfagent/perfagent/reporter"
)

// joinPatience is how long, at the job's end, other nodes than 0 wait for node 0's
// run before they make one of their own.
const joinPatience = 1500 * time.Millisecond

// tracking is where the numbers of this run go in MLflow, as flags and environment
// say. Nothing in it was asked of a server.
type tracking struct {
	uri   string // as given, perhaps with user info: never shown
	state reporter.PushState
	dest  pusher.Destination
	live  *pusher.Live
	ended *pusher.Live // live, once it has ended
	// stopLive ends the live pushing, and tells whether it did end.
	stopLive func() bool
}

// checkMLflow refuses an --mlflow that is neither a word we know nor a URI. One that
// MLflow knows and we cannot push to is said at the job's end.
func checkMLflow(value string) error {
	if value == "auto" || value == "off" {
		return nil
	}
	var unsupported *mlflow.UnsupportedURIError
	if err := mlflow.CheckURI(value); err != nil && !errors.As(err, &unsupported) {
		return fmt.Errorf("neither auto, off nor the URI of a server: %w", err)
	}
	return nil
}

// newTracking settles where to push to.
func (o *sampleOptions) newTracking() *tracking {
	t := &tracking{uri: o.mlflow, state: reporter.PushState{State: reporter.PushOff}}
	switch o.mlflow {
	case "off":
		t.uri = ""
	case "auto":
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
	t.dest = pusher.Destination{RunID: os.Getenv("MLFLOW_RUN_ID"), Given: os.Getenv("MLFLOW_RUN_ID") != "", ExperimentName: os.Getenv("MLFLOW_EXPERIMENT_NAME"),
		ExperimentID: os.Getenv("MLFLOW_EXPERIMENT_ID"), Invocation: pusher.NewInvocation(o.node)}
	t.state = reporter.PushState{State: reporter.PushPending, URI: t.state.URI, RunID: t.dest.RunID, Given: t.dest.Given,
		ExperimentName: t.dest.ExperimentName, ExperimentID: t.dest.ExperimentID, Invocation: t.dest.Invocation}
	return t
}

// on tells whether there is something to push to.
func (t *tracking) on() bool { return t.state.State == reporter.PushPending }

// jobEnv is what the job's environment gains so that the runs that it makes bear our
// tags. A value of MLFLOW_RUN_CONTEXT that we cannot read is left alone.
func (t *tracking) jobEnv(runID string) []string {
	if !t.on() {
		return nil
	}
	var tags map[string]json.RawMessage
	if had := os.Getenv("MLFLOW_RUN_CONTEXT"); had == "" {
		tags = make(map[string]json.RawMessage)
	} else if json.Unmarshal([]byte(had), &tags) != nil || tags == nil || !keeps(had) {
		return nil
	}
	for key, value := range map[string]string{pusher.TagRunID: runID, pusher.TagInvocation: t.dest.Invocation} {
		tags[key], _ = json.Marshal(value) // no text fails
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(tags) != nil {
		return nil
	}
	entry := "MLFLOW_RUN_CONTEXT=" + strings.TrimSpace(out.String())
	if len(entry) >= maxEnvEntry {
		return nil
	}
	return []string{entry}
}

// maxEnvEntry is what execve(2) takes of one string with its end, MAX_ARG_STRLEN of
// linux/binfmts.h: with a longer one the job could not start.
const maxEnvEntry = 128 << 10

// keeps tells whether a JSON text is the same when it is read and written: what is not
// UTF-8, or half of a character, would not be.
func keeps(words string) bool {
	var value any
	if !utf8.ValidString(words) || json.Unmarshal([]byte(words), &value) != nil {
		return false
	}
	again, err := json.Marshal(value)
	return err == nil && bytes.Count(again, []byte("\uFFFD")) == strings.Count(words, "\uFFFD")
}

// connect makes a client for pushing while the job runs or at its end: patience is
// our caller's, not that of MLFLOW_HTTP_*.
func (t *tracking) connect(retries int) (*mlflow.Client, error) {
	cfg, err := clientConfig(t.uri)
	if err != nil {
		return nil, err
	}
	cfg.MaxRetries, cfg.BackoffFactor, cfg.BackoffJitter, cfg.MaxBackoff = retries, 0.2, 0.1, 2*time.Second
	cfg.MaxAnswer = maxAnswer
	refused := 0
	cfg.OnRetry = func(err error, _ time.Duration) bool {
		if unreachable(err) {
			refused++
		}
		return refused <= unreachableTries
	}
	return mlflow.New(cfg)
}

// maxAnswer bounds what an answer may cost in memory beside a job, in bytes; a run of a
// thousand nodes has 3 MB of latest values.
const maxAnswer = 8 << 20

// unreachableTries is how often a server that nobody answers for is asked again at
// the job's end: where it is down for long, the jobs of a pipeline should not each
// wait out their whole time.
const unreachableTries = 3

// unreachable tells whether nobody answers at the server's address at all.
func unreachable(err error) bool {
	var dns *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dns) && dns.IsNotFound
}

func clientConfig(uri string) (mlflow.Config, error) {
	cfg, err := mlflow.NewConfig(uri, os.LookupEnv)
	cfg.UserAgent = "perfagent/" + version()
	return cfg, err
}

// startLive begins to push while the run goes on.
func (t *tracking) startLive(head reporter.JournalHead, started time.Time) {
	if !t.on() {
		return
	}
	head.Run.Start = reporter.Time{Time: started}
	t.live = pusher.NewLive(head, t.dest, func() (*mlflow.Client, error) { return t.connect(1) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); t.live.Run(ctx) }()
	t.stopLive = func() bool {
		cancel()
		select {
		case <-done:
			return true
		case <-time.After(300 * time.Millisecond): // a credentials file on a disk that hangs
			return false
		}
	}
}

// observe sees the Recording after every sample, in the sampling goroutine.
func (t *tracking) observe(rec *collector.Recording) {
	if t.live != nil {
		t.live.Observe(rec)
	}
}

// endLive stops the live pushing. The run that it found or made is remembered.
func (t *tracking) endLive() {
	if t.live == nil || !t.stopLive() {
		return
	}
	t.ended = t.live
	if id := t.live.RunID(); id != "" {
		t.dest.RunID, t.state.RunID = id, id
	}
}

// delivered is the report of a run that has ended, and its file.
type delivered struct {
	report *reporter.Report
	node   string
	path   string // of the file, or of the journal where none could be written; "" = there is neither
	data   []byte // of the file; nil where there is none
	perfpy bool   // the file is in perf.py's layout, which cannot tell how the push stands
}

// recorded is what the file will be known by when it is pushed again, where that is not
// its run id.
func (d delivered) recorded() string {
	if !d.perfpy || d.data == nil {
		return ""
	}
	again, err := reporter.ParsePerfPy(d.data, 0)
	if err != nil {
		return ""
	}
	return again.Run.ID
}

// pushAtEnd brings everything to the server within the time allowed, and says and
// notes in the report how it stands then. A value from cut ends it early.
func (o *sampleOptions) pushAtEnd(t *tracking, d delivered, cut <-chan string, stderr io.Writer, log *logger) {
	switch {
	case t.state.Error != "": // a URI that we cannot push to
		log.Error("MLflow: " + t.state.Error)
		return
	case !t.on():
		return
	case o.pushTimeout == 0:
		state := t.state
		state.Error = "nothing was sent: --push-timeout is 0"
		o.concludePush(t, d, state, "", stderr, log)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.pushTimeout)
	defer cancel()
	type result struct {
		state reporter.PushState
		said  string
	}
	done := make(chan result, 1)
	go func() {
		state, said := t.push(ctx, d)
		done <- result{state, said}
	}()
	why := ""
	select {
	case r := <-done:
		o.concludePush(t, d, r.state, r.said, stderr, log)
		return
	case why = <-cut:
		cancel()
	case <-ctx.Done():
		why = fmt.Sprintf("not done within the --push-timeout of %v", o.pushTimeout)
	}
	r := result{state: t.state}
	select {
	case r = <-done:
	case <-time.After(pushGrace): // a disk that hangs
		r.state.Error = why
	}
	if r.state.State == reporter.PushPending && ctx.Err() == context.Canceled {
		r.state.Error = why
	}
	o.concludePush(t, d, r.state, r.said, stderr, log)
}

// pushGrace is what a push may take to notice that its time is up.
const pushGrace = 500 * time.Millisecond

// concludePush writes down how the push stands. Only a push that is not done says so
// where nobody asked for a summary.
func (o *sampleOptions) concludePush(t *tracking, d delivered, state reporter.PushState, said string, stderr io.Writer, log *logger) {
	if d.data != nil && !d.perfpy {
		if err := o.note(&d, state); err != nil {
			log.Warn(err.Error())
		}
	}
	ignoreBackground()
	switch {
	case state.State == reporter.PushDone && o.wantsSummary(stderr):
		fmt.Fprintf(stderr, "perfagent: %s\n", text.Printable(said))
	case state.State == reporter.PushDone:
		log.Debug(said)
	case d.path == "":
		log.Error("MLflow: " + state.Error + "; there is no file to push later")
	default:
		log.Error("MLflow: " + state.Error + "; the numbers are safe, push them with: " + t.pushCommand(d, state))
	}
}

// note puts how a push stands into the report's file, unless the disk hangs. Where the
// file is gone and is still wanted, the report goes to a temporary directory.
func (o *sampleOptions) note(d *delivered, state reporter.PushState) error {
	data, err := reporter.WithPush(d.data, map[string]reporter.PushState{d.node: state})
	if err != nil {
		return fmt.Errorf("note the push in %s: %w", d.path, err)
	}
	err, ok := answered(patience, func() error { return reporter.Rewrite(d.path, d.data, data) })
	if !ok {
		return fmt.Errorf("write report %s: no answer within %v", d.path, patience)
	}
	if state.State != reporter.PushPending || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, reporter.ErrReplaced) {
		return err
	}
	var errTemp error
	d.path, errTemp = writeElsewhere(filepath.Base(d.path), data)
	return errors.Join(err, errTemp)
}

// push sends everything, and tells how it stands then and what to say of it.
func (t *tracking) push(ctx context.Context, d delivered) (state reporter.PushState, said string) {
	state = t.state
	client, err := t.connect(1000) // until the time is up
	if err != nil {
		state.Error = err.Error()
		return state, ""
	}
	defer client.Close()
	if release, err := reporter.Lock(ctx, d.path); err == nil {
		defer release()
	}
	options := pusher.Options{Destination: t.dest, Patience: joinPatience, Artifacts: t.artifacts(d), RecordingID: d.recorded(), Live: t.ended}
	options.Settle = t.live != nil && t.live.MayHaveMade()
	plan, err := pusher.Prepare(ctx, client, d.report, options)
	if err == nil {
		err = plan.Send(ctx)
	}
	if plan != nil && plan.Run != nil {
		state.RunID = plan.Run.ID
	}
	if err != nil {
		state.Error = err.Error()
		return state, ""
	}
	return doneState(state, plan.Notes), "MLflow: " + pushed(client, plan)
}

// artifacts is the report's file as it will be when the push is done.
func (t *tracking) artifacts(d delivered) []pusher.Artifact {
	if d.data == nil {
		return nil
	}
	return []pusher.Artifact{{Name: filepath.Base(d.path), ContentType: "application/json", Data: func(runID string) ([]byte, error) {
		if d.perfpy {
			return d.data, nil
		}
		state := t.state
		state.RunID = runID
		return reporter.WithPush(d.data, map[string]reporter.PushState{d.node: doneState(state, nil)})
	}}}
}

// doneState is how a push stands that the server has all of.
func doneState(state reporter.PushState, notes []string) reporter.PushState {
	return reporter.PushState{State: reporter.PushDone, RunID: state.RunID, Given: state.Given, URI: state.URI, Invocation: state.Invocation,
		Error: strings.Join(notes, "; ")}
}

// pushed says what a finished push brought, and where it is to be seen.
func pushed(c *mlflow.Client, plan *pusher.Plan) string {
	said := fmt.Sprintf("%s and %s sent to %s", counted(plan.Metrics, "metric"), counted(plan.Points, "point"), c.RunURL(plan.Run))
	if plan.Known > 0 {
		said += fmt.Sprintf(" (%d were there)", plan.Known)
	}
	return strings.Join(append([]string{said}, plan.Notes...), "; ")
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// pushCommand is the line that sends later what is missing now. The report remembers
// where to; perf.py's layout cannot.
func (t *tracking) pushCommand(d delivered, state reporter.PushState) string {
	words := []string{self(), "push"}
	if d.perfpy && state.RunID == "" && state.ExperimentName == "" && state.ExperimentID != "" {
		words = append([]string{"MLFLOW_EXPERIMENT_ID=" + state.ExperimentID}, words...)
	}
	if d.perfpy {
		words = append(words, "--mlflow", state.URI)
		if state.RunID != "" {
			words = append(words, "--mlflow-run-id", state.RunID)
		} else if state.ExperimentName != "" {
			words = append(words, "--mlflow-experiment", state.ExperimentName)
		}
		for _, n := range d.report.Nodes {
			if n.Host != nil && n.Host.CPUs > 0 {
				words = append(words, "--cpus", strconv.Itoa(n.Host.CPUs))
			}
		}
	}
	path := d.path
	absolute, ok := answered(time.Second, func() string { // the working directory may hang
		absolute, _ := filepath.Abs(path)
		return absolute
	})
	if ok && absolute != "" {
		path = absolute
	}
	return pusher.CommandLine(append(words, path))
}

// self is the name by which a shell finds this program again.
func self() string {
	if filepath.Base(os.Args[0]) == os.Args[0] {
		return os.Args[0] // found on PATH
	}
	if path, err := os.Executable(); err == nil {
		return path
	}
	return os.Args[0]
}
