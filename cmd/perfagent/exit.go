package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/job"
)

// Exit codes of perfagent itself. Every other exit code of perfagent run is the job's, as package job reports it: the
// job's own exit code, 128+n after signal n, or 255 if unknown.
const (
	exitFailure = 1 // all commands except those below

	// run, mark, phase and op, if no command was started.
	exitOwnFailure    = 125
	exitNotExecutable = 126
	exitNotFound      = 127

	// diff, as in diff(1): 1 means that a gate fired, and 2 means that diff failed.
	exitGate    = 1
	exitTrouble = 2
)

// An exitError is an error with an exit code for execute to return. If err is nil, nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// signalExit returns the error of a command that ends because of signal n: exit code 128+n, without a message.
func signalExit(n int) error { return exitError{code: 128 + n} }

// exitCode returns the exit code of the given command for its error err, and the error to print, if any.
func exitCode(command string, err error) (code int, toPrint error) {
	var exit exitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit):
		return exit.code, exit.err
	case command == "run" || command == "mark" || command == "phase" || command == "op":
		return exitOwnFailure, err
	case command == "diff":
		return exitTrouble, err
	}

	return exitFailure, err
}

// runError returns the error of perfagent run if agent.Run returned result and err. Once the job has started, its exit
// code takes precedence over every failure of perfagent.
func runError(result *agent.Result, err error) error {
	switch {
	case result != nil && result.ExitCode != 0:
		return exitError{code: result.ExitCode}
	case result != nil || err == nil:
		return nil
	case errors.Is(err, job.ErrNotFound):
		return exitError{exitNotFound, err}
	case errors.Is(err, job.ErrNotExecutable):
		return exitError{exitNotExecutable, err}
	}

	return exitError{exitOwnFailure, err}
}

// signalContext returns a context that is canceled by the first SIGINT, SIGTERM or SIGHUP.
func signalContext() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
