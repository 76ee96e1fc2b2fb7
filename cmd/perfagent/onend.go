package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/reporter/summary"
)

const (
	// endLimit is the time limit of the --on-end command.
	endLimit = 10 * time.Second

	// endGrace is how long the output of the --on-end command is copied after the command has exited.
	endGrace = time.Second
)

// notify runs the --on-end command with the summary of the run on stdin. The measurement is over, so the command's
// usage is not counted. Failures are logged as warnings.
func (o *recordOptions) notify(r *agent.Result) {
	if o.onEnd == "" || r.RankPart { // the last rank of the node notifies for all ranks
		return
	}
	if r.Report == nil {
		o.Log.Warn("--on-end: the command is not run, because there is no report")
		return
	}

	data, err := json.Marshal(summary.NewOverview(r.Report, r.ReportPath, r.PagePath))
	if err == nil {
		err = o.runAtEnd(append(data, '\n'), r.Late)
	}
	if err != nil {
		o.Log.Warn("--on-end: " + err.Error())
	}
}

// lateSignalContext is like signalContext, but for use after a run that took over the signals of the process. The run
// delivers later signals on late. If late is nil, lateSignalContext is the same as signalContext.
func lateSignalContext(late <-chan syscall.Signal) (context.Context, context.CancelFunc) {
	if late == nil {
		return signalContext()
	}
	select {
	case <-late: // discard the signal that ended the job
	default:
	}

	signaled, release := context.WithCancel(context.Background())
	go func() {
		select {
		case <-late:
			release()
		case <-signaled.Done():
		}
	}()
	return signaled, release
}

// runAtEnd runs the --on-end command for at most endLimit. TERM, INT or HUP ends it early.
func (o *recordOptions) runAtEnd(stdin []byte, late <-chan syscall.Signal) error {
	signaled, release := lateSignalContext(late)
	defer release()
	ctx, cancel := context.WithTimeout(signaled, endLimit)
	defer cancel()

	cmd := exec.CommandContext(ctx, "sh", "-c", o.onEnd)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), os.Stderr, os.Stderr
	if o.streams.embedded {
		cmd.Stdout, cmd.Stderr = o.streams.err, o.streams.err
	}
	cmd.WaitDelay = endGrace
	setProcessGroup(cmd)

	err := cmd.Run()
	switch {
	case signaled.Err() != nil:
		return errors.New("the command was killed, because perfagent received a signal to end")
	case ctx.Err() != nil:
		return fmt.Errorf("the command was killed after %v", endLimit)
	case errors.Is(err, exec.ErrWaitDelay): // a process that the command left behind holds its output open
		return nil
	}

	return err
}
