package main

import (
	"fmt"
	"os"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/job"
)

// resolve returns the command of a command line. Where there is no room for two processes, this one becomes the
// command.
func (s streams) resolve(args []string, env ...string) (job.Command, error) {
	path, err := job.Resolve(args[0])
	if err != nil {
		return job.Command{}, redact.Rules{}.Error(err, args)
	}

	command := job.Command{Path: path, Args: args, Env: env, Plain: os.Environ()}
	if !s.inside && job.Headroom(nil) != nil {
		return command, job.Exec(command, nil)
	}

	return command, nil
}

// title makes text the command line that others see of perfagent.
func (s streams) title(text string) {
	if !s.inside {
		job.SetTitle(text)
	}
}

// wait runs a command to its end, in the manners of run, but without a report. name is the command of perfagent.
func (s streams) wait(name string, command job.Command) (job.Status, error) {
	var signals *job.Signals
	if s.inside {
		command.Stdin, command.Stdout, command.Stderr = s.in, asItIs(s.out), asItIs(s.err)
	} else {
		signals = job.Catch()
	}

	s.title("perfagent: " + name)
	j, err := job.Start(command, signals)
	if err != nil {
		return job.Status{}, redact.Rules{}.Error(err, command.Args)
	}
	s.title(fmt.Sprintf("perfagent: %s of process %d", name, j.Pid()))

	status := j.Wait()
	j.ReapHelpers()

	return status, nil
}

// concluded returns the exit code of a command as an error, or the error because of which it was not started. If the
// terminal's Ctrl-C killed the command under a shell, this process dies of the same signal.
func concluded(status job.Status, err error) error {
	switch {
	case err != nil:
		return runError(nil, err)
	case status.FromTerminal:
		dieWithShell(status.Signal)
	}

	return runError(&agent.Result{ExitCode: status.ExitCode}, status.Err)
}
