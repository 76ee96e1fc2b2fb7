package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

const (
	// joinTimeout is how long nodes other than node 0 wait at the job's end for node 0's MLflow run before they create
	// a run.
	joinTimeout = 5 * time.Second

	// pushGrace is how long a push may take to notice its timeout.
	pushGrace = 500 * time.Millisecond
)

// A delivery holds the report of a run that has ended, and the report's file.
type delivery struct {
	report *reporter.Report
	node   string
	path   string // of the file, or of the journal if the file could not be written; "" if there is neither
	data   []byte // contents of the file; nil if there is no file, or it is not sent
	// toStore is the report's encoding for the store, without private lines of logs; nil if there is no store.
	toStore []byte
	perfpy  bool // the file is in perf.py's layout, which has no field for the state of the push
}

// recordedAs returns the run ID that a later push derives from a file in perf.py's layout. It returns "" for any other
// file, because that file contains the run ID.
func (d delivery) recordedAs() string {
	if !d.perfpy || d.data == nil {
		return ""
	}
	again, err := reporter.ParsePerfPy(d.data, 0)
	if err != nil {
		return ""
	}

	return again.Run.ID
}

// pushContext returns the context for sending at the end of a run. The context ends after PushTimeout or when cut
// receives a value. Its cause is the reason.
func (s *session) pushContext(cut <-chan string) (ctx context.Context, release func()) {
	uncut, cancel := context.WithCancelCause(context.Background())
	late := fmt.Errorf("not finished within the --push-timeout of %v", s.o.PushTimeout)
	if s.o.PushTimeout < 0 {
		late = errors.New("nothing was sent: the push timeout is 0")
	}
	ctx, stop := context.WithTimeoutCause(uncut, s.o.PushTimeout, late)
	go func() {
		select {
		case why := <-cut:
			cancel(errors.New(why))
		case <-ctx.Done():
		}
	}()

	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// startWithDeadline runs do in a new goroutine, unless ctx has ended. wait returns the result of do. If do has not
// returned pushGrace after the end of ctx, because a disk hangs, wait returns late(context.Cause(ctx)).
func startWithDeadline[T any](ctx context.Context, do func() T, late func(why error) T) (wait func() T) {
	done := make(chan T, 1)
	if ctx.Err() != nil {
		done <- late(context.Cause(ctx))
	} else {
		go func() { done <- do() }()
	}

	return func() T {
		select {
		case out := <-done:
			return out
		case <-ctx.Done():
		}
		if out, ok := timeout.Receive(done, pushGrace); ok {
			return out
		}
		return late(context.Cause(ctx))
	}
}

// push sends the report to the server until ctx ends, and records the state of the push in the report's file. It
// returns the state and a description of the sent data; outcome is "" unless the server has all data.
func (s *session) push(ctx context.Context, d *delivery) (state reporter.PushState, outcome string) {
	t := s.tracking
	switch {
	case t.state.Error != "": // a URI that we cannot push to
		s.log.Error("MLflow: " + t.state.Error)
		return t.state, ""
	case !t.isEnabled():
		return t.state, ""
	}

	t.adopt(*d)
	type result struct {
		state   reporter.PushState
		outcome string
	}
	sent, pending := *d, t.state
	r := startWithDeadline(ctx, func() result {
		state, outcome := t.push(ctx, sent)
		return result{state, outcome}
	}, func(why error) result {
		pending.Error = why.Error()
		return result{state: pending}
	})()
	if r.state.State == reporter.PushPending && errors.Is(ctx.Err(), context.Canceled) {
		r.state.Error = context.Cause(ctx).Error()
	}

	s.recordPush(d, "MLflow: "+r.state.Error, r.state.State, func(data []byte) ([]byte, error) {
		return reporter.WithPush(data, map[string]reporter.PushState{d.node: r.state})
	}, func() string { return "the report is safe; push it with: " + d.pushCommand(s.program(), r.state) })
	return r.state, r.outcome
}

// recordPush writes the state of a push, to the server or to the store, into the report's file. If the push is not
// done, it logs one line with why, the reason, and the command that later returns. If the push is pending and the file
// is gone, the report goes to a temporary directory.
func (s *session) recordPush(
	d *delivery, why, state string, with func(data []byte) ([]byte, error), later func() string,
) {
	if d.data != nil && !d.perfpy {
		data, err := with(d.data)
		if err == nil {
			err = d.rewrite(data, state)
		}
		if err != nil {
			s.log.Warn(fmt.Sprintf("record the state of the push in %s: %v", d.path, err))
		}
	}

	switch {
	case state == reporter.PushDone:
	case d.path == "":
		s.log.Error(why + "; there is no file to push later")
	default:
		s.log.Error(why + "; " + later())
	}
}

// rewrite replaces the report's file with data, which includes the state of a push. It gives up if the disk hangs.
func (d *delivery) rewrite(data []byte, state string) error {
	_, err := withDiskTimeout("write report "+d.path, func() (struct{}, error) {
		return struct{}{}, reportfile.Rewrite(d.path, d.data, data)
	})
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, reportfile.ErrReplaced)
	switch {
	case err == nil:
		d.data = data
		return nil
	case state != reporter.PushPending || !gone:
		return err
	}

	var errTemp error
	d.path, errTemp = writeElsewhere(filepath.Base(d.path), bytesWriter(data))

	return errors.Join(err, errTemp)
}

// push sends the report to the server. It returns the state of the push and a description of the sent data.
func (t *mlflowTracking) push(ctx context.Context, d delivery) (state reporter.PushState, outcome string) {
	state = t.state
	client, err := t.connect(1000) // retries; ctx sets the real limit
	if err != nil {
		state.Error = err.Error()
		return state, ""
	}
	defer client.Close()
	if release, err := reportfile.Lock(ctx, d.path); err == nil {
		defer release()
	}

	deadline, _ := ctx.Deadline()
	plan, err := pusher.Prepare(ctx, client, d.report, pusher.Options{
		Destination: pusher.NewDestination(t.state), RunTimeout: joinTimeout, Artifacts: t.artifacts(d),
		RecordingID: d.recordedAs(), Live: t.ended,
		ResolveDuplicates: t.live != nil && t.live.MayHaveCreatedRun(),
		Schedule:          pusher.NewSchedule(d.report, time.Until(deadline)),
	})
	if err == nil {
		err = plan.Send(ctx)
	}

	if plan != nil && plan.Run != nil {
		state.RunID = plan.Run.ID
		plan.Notes = append(plan.Notes, clockNotes(client.ClockAhead())...)
	}
	if err != nil {
		state.Error = err.Error()
		return state, ""
	}

	return pusher.DoneState(state, plan.Notes), "MLflow: " + plan.Outcome()
}

// clockTolerance is the largest difference between the clocks of node and server that causes no note.
const clockTolerance = time.Second

// clockNotes returns a note if the clock of this node differs from the server's by more than clockTolerance. ahead is
// the difference.
func clockNotes(ahead time.Duration) []string {
	words, by := "ahead of", ahead
	if by < 0 {
		words, by = "behind", -by
	}
	if by <= clockTolerance {
		return nil
	}
	return []string{fmt.Sprintf(
		"the clock of this node is at least %s s %s the server's: times are from the node's clock",
		text.Fixed(by.Seconds(), 1), words)}
}

// adopt makes the push use the MLflow run that another rank's live push recorded in the report.
func (t *mlflowTracking) adopt(d delivery) {
	n := d.report.Nodes[d.node]
	if t.state.RunID != "" || n == nil || n.Push == nil || n.Push.MLflow.URI != t.state.URI {
		return
	}
	t.state.RunID = n.Push.MLflow.RunID
}

// artifacts returns the report's file as an artifact. The uploaded file records the push as successful.
func (t *mlflowTracking) artifacts(d delivery) []pusher.Artifact {
	if d.data == nil {
		return nil
	}

	data := func(runID string) ([]byte, error) {
		if d.perfpy {
			return d.data, nil
		}
		data, err := reporter.Shareable(d.data)
		if err != nil {
			return nil, err
		}
		state := t.state
		state.RunID = runID
		return reporter.WithPush(data, map[string]reporter.PushState{d.node: pusher.DoneState(state, nil)})
	}

	return []pusher.Artifact{{Name: filepath.Base(d.path), ContentType: "application/json", Data: data}}
}

// pushCommand returns the shell command that sends the missing data. A file in perf.py's format does not record the
// destination, so the command includes it.
func (d delivery) pushCommand(program string, state reporter.PushState) string {
	words := []string{program, "push"}
	if d.perfpy {
		if state.RunID == "" && state.ExperimentName == "" && state.ExperimentID != "" {
			words = append([]string{"MLFLOW_EXPERIMENT_ID=" + state.ExperimentID}, words...)
		}
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

	return pusher.ShellCommand(append(words, absolute(d.path)))
}
