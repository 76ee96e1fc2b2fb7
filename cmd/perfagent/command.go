package main

import (
	"fmt"
	"os"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/job"
)

// resolve returns the command that runs args with env added to its environment. If the process limits leave no room for
// perfagent and the command, this process becomes the command (exec), and resolve returns only if that fails.
func (s streams) resolve(args []string, env ...string) (job.Command, error) {
	path, err := job.Resolve(args[0])
	if err != nil {
		return job.Command{}, redact.Rules{}.Error(err, args)
	}

	command := job.Command{Path: path, Args: args, Env: env, FallbackEnviron: os.Environ()}
	if !s.embedded && job.Headroom(nil) != nil {
		return command, job.Exec(command, nil)
	}

	return command, nil
}

// setTitle replaces the command line that other processes see (ps). It does nothing if perfagent runs inside another
// program.
func (s streams) setTitle(text string) {
	if !s.embedded {
		job.SetTitle(text)
	}
}

// runCommand runs command and waits for its end. It handles signals and streams as perfagent run does, but writes no
// report. name is the perfagent command to show in the process title.
func (s streams) runCommand(name string, command job.Command) (job.Status, error) {
	var signals *job.Signals
	if s.embedded {
		command.Stdin, command.Stdout, command.Stderr = s.in, rawWriter(s.out), rawWriter(s.err)
	} else {
		signals = job.Catch()
	}

	s.setTitle("perfagent: " + name)
	j, err := job.Start(command, signals)
	if err != nil {
		return job.Status{}, redact.Rules{}.Error(err, command.Args)
	}
	s.setTitle(fmt.Sprintf("perfagent: %s of process %d", name, j.PID()))

	status := j.Wait()
	j.ReapHelpers()

	return status, nil
}

// finishCommand returns the exit code in status as an error, or the error for err if the command was not started. If
// Ctrl-C killed the command and perfagent's parent is a shell, this process dies of the same signal instead.
func finishCommand(status job.Status, err error) error {
	switch {
	case err != nil:
		return runError(nil, err)
	case status.FromTerminal:
		reraiseForShell(status.Signal)
	}

	return runError(&agent.Result{ExitCode: status.ExitCode}, status.Err)
}
