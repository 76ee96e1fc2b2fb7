package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/internal/text"
)

// streams holds the standard streams and the defaults of a command line.
type streams struct {
	out, err io.Writer

	// embedded is set if the command line runs inside another program, as in tests. Then run, attach and sidecar do not
	// take over the process, and the job reads from in and writes to out and err.
	embedded bool
	in       io.Reader

	// defaults waits until the defaults files are read, and returns their settings. It is nil if there are no files.
	defaults func() defaults
}

// execute runs the command line and returns its exit code.
func execute(args []string, s streams) int {
	if s.defaults == nil {
		s.defaults = func() defaults { return defaults{} }
	}

	if logins := redact.Logins(ownArgsAndEnv(args)); len(logins) > 0 { // an error message may end up in a log
		s.err = redact.NewWriter(s.err, logins)
	}
	s = s.inLocale()
	root := newRoot(s, calledIn(args))
	customizeCobra(root, s, args)
	cmd, err := root.ExecuteC()

	code, err := exitCode(cmd.Name(), err)
	if err != nil {
		// The error may begin with the name of the command, which the prefix already contains.
		words := strings.TrimPrefix(strings.TrimPrefix(err.Error(), cmd.Name()+" "), cmd.Name()+": ")
		fmt.Fprintf(s.err, "%s: %s\n", cmd.CommandPath(), text.Printable(words))
	}

	return code
}

// ownArgsAndEnv returns the input meant for perfagent rather than for a job: the arguments before "--", and the
// PERFAGENT_ variables.
func ownArgsAndEnv(args []string) []string {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	out := slices.Clip(args)
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "PERFAGENT_") {
			out = append(out, variable)
		}
	}
	return out
}

// warn prints a warning. Commands inside a job use it because marks and records must never make a script fail.
func (s streams) warn(err error) {
	fmt.Fprintf(s.err, "perfagent: warning: %s\n", text.Printable(err.Error()))
}

// newRoot returns the root command with all subcommands, or with only the called one and help (see calledIn).
func newRoot(s streams, called string) *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "perfagent",
		Short: "what a job really used on this node",
		Long: `perfagent runs a command unchanged, and reports what it used, why it ended, and
what to ask for next time: in the terminal, in a JSON report, and on one HTML
page. It needs neither root nor a daemon.

  perfagent run -- python train.py       wrap a job
  perfagent watch                        watch it live from a second terminal
  perfagent show                         show the newest report`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return s.printVersion()
			}
			return cmd.Help()
		},
	}

	addHelpFlag(root)
	root.Flags().BoolVarP(&version, "version", "V", false, "print the version")
	root.Flags().SetInterspersed(false) // if "run" was forgotten, the flags are the program's
	addCommands(root, s, called)

	return root
}

// commandGroups are the commands, grouped as in the help.
var commandGroups = []struct {
	title    string
	commands []namedCommand
}{
	{"Record", []namedCommand{{"run", newRun}, {"attach", newAttach}, {"sidecar", newSidecar}}},
	{"Look", []namedCommand{
		{"ls", newLs}, {"show", newShow}, {"watch", newWatch}, {"plot", newPlot}, {"diff", newDiff}, {"env", newEnv},
	}},
	{"Keep and send", []namedCommand{{"merge", newMerge}, {"push", newPush}, {"prune", newPrune}}},
	{"Inside a job", []namedCommand{{"mark", newMark}, {"phase", newPhase}, {"op", newOp}}},
	{"Help", []namedCommand{
		{"metrics", newMetrics}, {"version", newVersion}, {"completion", newCompletion}, {"install", newInstall},
		{"help", newHelp},
	}},
}

// A namedCommand is the name of a command and its constructor.
type namedCommand struct {
	name string
	make func(streams) *cobra.Command
}

// calledIn returns the name of the called command if no other is needed: constructing all commands and flags would
// delay the job. It returns "" for help, completion and unknown commands.
func calledIn(args []string) string {
	if len(args) == 0 || args[0] == "help" || args[0] == "completion" {
		return ""
	}
	for _, g := range commandGroups {
		if slices.ContainsFunc(g.commands, func(c namedCommand) bool { return c.name == args[0] }) {
			return args[0]
		}
	}

	return ""
}

// addCommands adds all commands, or only help and the called one.
func addCommands(root *cobra.Command, s streams, called string) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			if called != "" && c.name != called && c.name != "help" {
				continue
			}
			cmd := c.make(s)
			cmd.GroupID = g.title
			addHelpFlag(cmd)
			root.AddCommand(cmd)
			if c.name == "help" {
				root.SetHelpCommand(cmd) // otherwise cobra adds another help command
			}
		}
	}

	root.CompletionOptions.DisableDefaultCmd = true // perfagent defines its own completion command
}

// customizeCobra replaces cobra's help and error messages with perfagent's. It visits only the flags of the called
// command, to start the job sooner.
func customizeCobra(root *cobra.Command, s streams, args []string) {
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetArgs(append([]string{}, args...)) // for nil, cobra would take os.Args
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_ = printHelp(s.out, cmd, cmd.Flags().Changed("help")) // there is no other place to report a closed stdout
	})

	if called, _, err := root.Find(args); err == nil {
		called.Flags().VisitAll(takeSeconds)
	}
	s.registerCompletions(root, args)
}
