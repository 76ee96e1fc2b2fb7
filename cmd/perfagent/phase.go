package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/collector/marks"
)

func newPhase(s streams) *cobra.Command {
	end := false
	cmd := &cobra.Command{
		Use:   "phase NAME [-- COMMAND [ARG...]]",
		Short: "begin or end a phase of the run",
		Long: `Begin a phase of the job, or end it with --end. The report shows what each phase
used. A phase lasts until the next one begins.

With a command, the phase lasts as long as the command. The command's exit code,
streams, signals and terminal are passed through unchanged, and its environment
contains PERFAGENT_PHASE=NAME. Afterwards any outer phase resumes.

Outside perfagent no phase is recorded, and the command runs normally.

Exit code: the command's own, as in perfagent run; 0 without a command, even if
the phase could not be recorded; 125 for incorrect usage.`,
		Example: `  perfagent phase train
  perfagent phase --end
  perfagent phase link -- make all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, command, err := phaseArgs(args, cmd.ArgsLenAtDash(), end)
			switch {
			case err != nil:
				return err
			case command != nil:
				return s.runInPhase(name, command)
			}
			s.writeMark(marks.Line{IsPhase: true, Text: name})
			return nil
		},
	}

	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&end, "end", false, "end the phase without beginning another")

	return cmd
}

// phaseArgs returns the name of the phase ("" for --end) and the command, if any. dash is the number of arguments
// before the first "--", or -1 if there is none.
func phaseArgs(args []string, dash int, end bool) (name string, command []string, err error) {
	switch {
	case end && len(args) > 0:
		return "", nil, errors.New("--end takes no name: perfagent phase --end")
	case end:
		return "", nil, nil
	case len(args) == 0 || args[0] == "" || dash == 0:
		return "", nil, errors.New("no name: perfagent phase NAME [-- COMMAND [ARG...]]")
	case len(args) == 1:
		return args[0], nil, nil
	case args[1] != "--" || len(args) == 2:
		return "", nil, errors.New(
			"a name is one argument; a command follows --: perfagent phase NAME [-- COMMAND [ARG...]]")
	}

	return args[0], args[2:], nil
}

// runInPhase runs the command args inside the named phase and returns its exit code as an error. It handles signals and
// streams as perfagent run does.
func (s streams) runInPhase(name string, args []string) error {
	command, err := s.resolve(args, marks.PhaseVariable+"="+name)
	if err != nil {
		return runError(nil, err)
	}

	s.writeMark(marks.Line{IsPhase: true, Text: name})
	status, err := s.runCommand("phase", command)
	s.writeMark(marks.Line{IsPhase: true, Text: os.Getenv(marks.PhaseVariable)})

	return finishCommand(status, err)
}
