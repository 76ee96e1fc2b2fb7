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
		Use:        "run [flags] -- COMMAND [ARG...]",
		SuggestFor: []string{"exec", "start", "wrap"},
		Short:      "run a command and report what it used",
		Long: `Run a command unchanged, and report what it used and why it ended.

The command's exit code, streams, signals and terminal are passed through. When
it ends, perfagent writes the report, DIR/RUN-ID/node-N.json, and a page next to
it, unless the command succeeded in less than 2 s. Then it prints what the
command used, why it ended, and what to ask for next time.

Exit code: the command's own; 128+N if signal N ended it; 125, 126 or 127 if it
could not be started.`,
		Example: `  perfagent run -- python train.py
  perfagent run --tag branch=main -- make -j8
  perfagent run --stop-if 'job_memory_mb > 8000' -- ./solver`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}

	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.Cgroup, "cgroup", agent.Auto, "`how` to measure the job: create (in its own control group), "+
		"off (by its processes) or auto\n (use perfagent's control group if nothing else is in it, otherwise add up the "+
		"processes); create needs permission to make a control group")
	f.IntVar(&o.logLines, "log-lines", agent.DefaultLogLines, "after a failure, keep the last `N` lines of stderr or "+
		"stdout, if it is a file; 0 means none\n; if given, the reports in MLflow and stores have them, too")
	addStopFlags(f, o)
	addRecordFlags(f, o)

	return cmd
}

func (o *recordOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.prepare(cmd); err != nil {
		return err
	}
	if len(args) == 0 {
		return errors.New("no command: perfagent run [flags] -- COMMAND [ARG...]")
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
