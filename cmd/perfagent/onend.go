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
	// endLimit is how long the command of --on-end may take.
	endLimit = 10 * time.Second

	// endGrace is how long its streams are copied after its end.
	endGrace = time.Second
)

// notify runs the command of --on-end with the summary of the run on its stdin. The job has ended, and
// all of it is counted. What goes wrong is a warning.
func (o *recordOptions) notify(r *agent.Result) {
	if o.onEnd == "" || r.RankPart { // the last rank of a node does it for all of them
		return
	}
	if r.Report == nil {
		o.Log.Warn("--on-end: the command is not run, because there is no report")
		return
	}

	words, err := json.Marshal(summary.NewOverview(r.Report, r.ReportPath, r.PagePath))
	if err == nil {
		err = o.runAtEnd(append(words, '\n'), r.Late)
	}
	if err != nil {
		o.Log.Warn("--on-end: " + err.Error())
	}
}

// lateSignalContext is untilSignal for a process that a run has taken over, whose signals come through late. Without
// late it is untilSignal.
func lateSignalContext(late <-chan syscall.Signal) (context.Context, context.CancelFunc) {
	if late == nil {
		return signalContext()
	}
	select {
	case <-late: // it was sent before, to end the job
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

// runAtEnd runs the command of --on-end. TERM, INT and HUP end it early.
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
		return errors.New("the command was killed, because perfagent was told to end")
	case ctx.Err() != nil:
		return fmt.Errorf("the command was killed after %v", endLimit)
	case errors.Is(err, exec.ErrWaitDelay): // what it left behind has its streams open
		return nil
	}

	return err
}
