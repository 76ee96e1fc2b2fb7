package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
)

func newRun(s streams) *cobra.Command {
	o := &recordOptions{streams: s}
	cmd := &cobra.Command{
		Use:        "run [flags] -- CMD [ARG...]",
		SuggestFor: []string{"exec", "start", "wrap"},
		Short:      "run a command and report what it used",
		Long: `Run a command and report what it used and what this node did at the same time.
The command's exit code, streams, signals and terminal are passed through
unchanged. When the command ends, the report is written to
OUT/RUN-ID/node-N.json, and its page beside it (see --html), and the job's
efficiency is printed, with what to ask for to right-size it (see --summary).

Exit code: the command's; 128+n if signal n killed it; 125 if perfagent failed
before it started the command; 126 if the command cannot be executed; 127 if it
was not found.`,
		Example: `  perfagent run -- make -j8
  perfagent run --interval 100ms --tag branch=main -- ./bench.sh
  perfagent run --summary always --out /scratch/reports -- python train.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}

	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.Cgroup, "cgroup", agent.Auto, "how to measure the job's own usage: "+
		"auto (perfagent's control group if nothing else is in it, else the job's processes), "+
		"create (a control group made for the job, if permitted), off (the job's processes)")
	addStopFlags(f, o)
	addRecordFlags(f, o)

	return cmd
}

func (o *recordOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.prepare(cmd); err != nil {
		return err
	}
	if len(args) == 0 {
		return errors.New("no command: perfagent run [flags] -- CMD [ARG...]")
	}

	o.Args, o.piped = args, isPipe(o.streams.out)
	result, err := agent.Run(context.Background(), o.Options)
	o.conclude(result)

	switch {
	case result == nil:
	case result.Reraise:
		reraise(result.Signal)
	case result.FromTerminal:
		// If Ctrl-C on the terminal killed the job under a shell, die of the same signal: the shell then shows the same
		// 128+n, and stops its loop or script as it would without perfagent.
		reraiseForShell(result.Signal)
	}

	return runError(result, err)
}
