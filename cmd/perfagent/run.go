package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
)

func newRun(s streams) *cobra.Command {
	o := &recordOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG...]",
		Short: "run a command untouched and report what it used",
		Long: `Run a command and report what this node did meanwhile. The command's exit code,
streams, signals and terminal are as without perfagent. When the command ends
the report is written to OUT/RUN-ID/node-N.json, and its page beside it.

Exit code: the command's; 128+n when signal n killed it; 125 when perfagent
failed before the command was started; 126 when it cannot be executed; 127 when
it was not found.`,
		Example: `  perfagent run -- make -j8
  perfagent run --interval 100ms --tag branch=main -- ./bench.sh
  perfagent run --summary always --out /scratch/reports -- python train.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}

	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.Cgroup, "cgroup", agent.Auto, "where the job's own use is counted: auto (our control group where nobody else is in it, else its processes), create (a group made for it, where permitted), off (its processes)")
	addRecordFlags(f, o)

	return cmd
}

func (o *recordOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.prepare(cmd); err != nil {
		return err
	}
	if len(args) == 0 {
		return errNoCommand
	}

	o.Args = args
	result, err := agent.Run(context.Background(), o.Options)
	o.conclude(result)

	// A job that died of the terminal's Ctrl-C under a shell takes us along by the same signal:
	// the shell shows the same 128+n, and stops its loop or script as it would without us.
	if result != nil && result.FromTerminal {
		dieWithShell(result.Signal)
	}

	return runError(result, err)
}
