package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
)

func newAttach(s streams) *cobra.Command {
	o := &recordOptions{streams: s, alwaysPrintURL: true}
	ready := false
	cmd := &cobra.Command{
		Use:   "attach PID... [flags]",
		Short: "record processes that are already running",
		Long: `Record processes that are already running, with their children.

Recording ends when the last of the processes has ended, on TERM, INT or HUP, or
after the time given with --for. Then perfagent writes the report and its page.
What the processes used before recording began is not included. The processes
are not affected, and you need no privileges to attach to your own.

Exit code: 0 if the report was written; 1 if there is no such process, or no
report.`,
		Example: `  perfagent attach 4242
  perfagent attach $(pgrep -f train.py) --for 10m --interval 100ms`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if ready {
				o.OnReady = o.printReady
			}
			return o.attach(cmd, args)
		},
	}

	addRecordFlags(cmd.Flags(), o)
	o.addFor(cmd)
	cmd.Flags().BoolVar(&ready, "ready", false,
		"print a line of JSON on stdout when recording has begun: run_id, pid, dir, marks")

	return cmd
}

// attach records the given processes until all of them have ended, a signal requests the report, or the time given with
// --for has passed.
func (o *recordOptions) attach(cmd *cobra.Command, args []string) error {
	if err := o.prepare(cmd); err != nil {
		return err
	}
	pids, err := processIDs(args)
	if err != nil {
		return err
	}
	// The parent may have exited and closed its ends of the pipes. The report must be written anyway.
	signal.Ignore(syscall.SIGPIPE)

	ctx, stop := o.signalContext()
	defer stop()

	o.streams.setTitle("perfagent attach " + strings.Join(args, " "))
	result, err := agent.Attach(ctx, pids, o.Options)
	o.conclude(result)

	return err
}

// processIDs parses the arguments of attach: one or more positive process IDs.
func processIDs(args []string) ([]int, error) {
	if len(args) == 0 {
		return nil, errors.New("name a process: perfagent attach PID…")
	}

	var pids []int
	for _, arg := range args {
		pid, err := strconv.ParseInt(arg, 10, 32)
		if err != nil || pid <= 0 {
			return nil, fmt.Errorf("%q is not a process ID; pgrep -f finds those of a command", arg)
		}
		pids = append(pids, int(pid))
	}

	return pids, nil
}

// printReady prints r as one line of JSON on stdout.
func (o *recordOptions) printReady(r agent.ReadyInfo) {
	line, _ := json.Marshal(r) // cannot fail: r has only strings and a number
	fmt.Fprintf(o.streams.out, "%s\n", line)
}

// addFor declares --for, which ends attach and sidecar without a signal.
func (o *recordOptions) addFor(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&o.length, "for", 0, "stop recording after `TIME` (default: never)")
}

// signalContext returns a context that is canceled by the first signal that requests the report, or after the time
// given with --for.
func (o *recordOptions) signalContext() (context.Context, func()) {
	ctx, stop := signalContext()
	if o.length == 0 {
		return ctx, stop
	}

	timed, cancel := context.WithTimeout(ctx, o.length)

	return timed, func() { cancel(); stop() }
}
