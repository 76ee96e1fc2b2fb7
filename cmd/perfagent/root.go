package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/internal/text"
)

// streams are the outputs of a command.
type streams struct {
	out, err io.Writer

	// inside reports whether the command line runs inside another program, as in tests: run and sidecar
	// do not take the process over, and the job reads from in and writes to out and err.
	inside bool
	in     io.Reader
}

// execute runs the command line and returns its exit code.
func execute(args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(append([]string{}, args...)) // cobra takes os.Args for nil
	cmd, err := root.ExecuteC()

	code, err := exitCode(cmd.Name(), err)
	if err != nil {
		fmt.Fprintf(s.err, "perfagent: %s\n", text.Printable(err.Error()))
	}

	return code
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "perfagent",
		Short: "what a job really used on this node",
		Long: `perfagent runs a command unchanged and reports what it used on this node and what
it wasted: in the terminal, in a JSON report, and on one HTML page.

  perfagent run -- python train.py       wrap a job
  perfagent watch                        watch it live from a second terminal
  perfagent show                         show the newest report`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}

	root.SetOut(s.out)
	root.SetErr(s.err)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Flags().VisitAll(foldUsage)
		help(cmd, args)
	})

	root.AddCommand(
		newRun(s), newSidecar(s), newShow(s), newLs(s), newPrune(s), newWatch(s), newMerge(s), newPlot(s), newDiff(s), newPush(s),
		newMark(s), newPhase(s), newRecord(s), newMetrics(s), newVersion(s),
	)

	return root
}

// foldUsage wraps the text of a flag.
func foldUsage(f *pflag.Flag) {
	const width, lines = 64, 20
	f.Usage = strings.Join(text.Wrap(f.Usage, width, lines), "\n")
}
