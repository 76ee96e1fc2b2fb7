package main

import (
	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
)

func newSidecar(s streams) *cobra.Command {
	o := &recordOptions{streams: s, alwaysPrintURL: true}
	cmd := &cobra.Command{
		Use:   "sidecar [flags]",
		Short: "record the host until TERM or INT, then report",
		Long: `Record the host, next to jobs that perfagent did not start.

Recording ends on TERM, INT or HUP, or after the time given with --for. Then
perfagent writes the report and its page. Until then it refreshes the report
every 30 seconds and the page every 5 minutes; with a longer --interval, it
refreshes the report at every sample and the page at every tenth. In a
container, mount the host's /proc and /sys, and set HOST_PROC and HOST_SYS to
their paths. Use --disk-path to name a file system of the host.

Exit code: 0 if a signal or --for ended the recording and the report was
written.`,
		Example: `  perfagent sidecar --out /reports --run-id nightly
  HOST_PROC=/host/proc HOST_SYS=/host/sys perfagent sidecar --disk-path /host`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.sidecar(cmd) },
	}

	addRecordFlags(cmd.Flags(), o)
	o.addFor(cmd)

	return cmd
}

// sidecar records the host until a signal arrives or the time of --for has passed.
func (o *recordOptions) sidecar(cmd *cobra.Command) error {
	if err := o.prepare(cmd); err != nil {
		return err
	}

	ctx, stop := o.signalContext()
	defer stop()

	o.streams.setTitle("perfagent sidecar")
	result, err := agent.Sidecar(ctx, o.Options)
	o.conclude(result)

	return err
}
