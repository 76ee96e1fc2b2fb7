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

// streams are the outputs of a command.
type streams struct {
	out, err io.Writer

	// embedded reports whether the command line runs inside another program, as in tests: run and sidecar
	// do not take the process over, and the job reads from in and writes to out and err.
	embedded bool
	in       io.Reader

	// defaults waits for the files of defaults; nil if there are none.
	defaults func() defaults
}

// execute runs the command line and returns its exit code.
func execute(args []string, s streams) int {
	if s.defaults == nil {
		s.defaults = noDefaults
	}

	if logins := redact.Logins(ownArgsAndEnv(args)); len(logins) > 0 { // a line may end up in a log
		s.err = redact.NewWriter(s.err, logins)
	}
	s = s.inLocale()
	root := newRoot(s, calledIn(args))
	customizeCobra(root, s, args)
	cmd, err := root.ExecuteC()

	code, err := exitCode(cmd.Name(), err)
	if err != nil {
		// The error may begin with the operation, which the line names already.
		words := strings.TrimPrefix(strings.TrimPrefix(err.Error(), cmd.Name()+" "), cmd.Name()+": ")
		fmt.Fprintf(s.err, "%s: %s\n", cmd.CommandPath(), text.Printable(words))
	}

	return code
}

// ownArgsAndEnv returns what somebody wrote for perfagent and not for a job: the arguments up to "--", and its
// variables.
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

// warn prints a line on what goes wrong without harm: what a job says about itself never fails a script.
func (s streams) warn(err error) {
	fmt.Fprintf(s.err, "perfagent: warning: %s\n", text.Printable(err.Error()))
}

// newRoot returns the command perfagent with all of its commands, or with the called one only, see calledIn.
func newRoot(s streams, called string) *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "perfagent",
		Short: "what a job really used on this node",
		Long: `perfagent runs a command unchanged and reports what it used, what it wasted, and
why it died: in the terminal, in a JSON report, and on one HTML page. Like seff
and jobstats it tells the efficiency of a job, of any job on Linux, and how to
right-size the next one.

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

	root.Flags().BoolVarP(&version, "version", "V", false, "print the version")
	root.Flags().SetInterspersed(false) // the flags of a program whose run was forgotten are not ours
	addCommands(root, s, called)

	return root
}

// commandGroups are the commands, in the groups in which help lists them.
var commandGroups = []struct {
	title    string
	commands []namedCommand
}{
	{"Record", []namedCommand{{"run", newRun}, {"attach", newAttach}, {"sidecar", newSidecar}}},
	{"Look", []namedCommand{{"ls", newLs}, {"show", newShow}, {"watch", newWatch}, {"plot", newPlot}, {"diff", newDiff}}},
	{"Keep and send", []namedCommand{{"merge", newMerge}, {"push", newPush}, {"prune", newPrune}}},
	{"Inside a job", []namedCommand{{"mark", newMark}, {"phase", newPhase}, {"record", newRecord}}},
	{"Help", []namedCommand{
		{"metrics", newMetrics}, {"env", newEnv}, {"version", newVersion}, {"completion", newCompletion},
		{"install", newInstall}, {"help", newHelp},
	}},
}

// A namedCommand makes the command with a name.
type namedCommand struct {
	name string
	make func(streams) *cobra.Command
}

// calledIn returns the command that is called, if no other one need be made: a job waits for as long as the commands
// and their flags take. It returns "" for help, completion, and whatever is no command.
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

// addCommands adds all commands, or only help and the one that is called.
func addCommands(root *cobra.Command, s streams, called string) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			if called != "" && c.name != called && c.name != "help" {
				continue
			}
			cmd := c.make(s)
			cmd.GroupID = g.title
			root.AddCommand(cmd)
			if c.name == "help" {
				root.SetHelpCommand(cmd) // else cobra makes one of its own
			}
		}
	}

	root.CompletionOptions.DisableDefaultCmd = true // completion is a command of our own
}

// customizeCobra makes the commands speak perfagent's own words, in help and errors. Only the flags of the command
// that is called are looked at: a job waits.
func customizeCobra(root *cobra.Command, s streams, args []string) {
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetArgs(append([]string{}, args...)) // cobra takes os.Args for nil
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_ = printHelp(s.out, cmd) // there is no other place to report that stdout is gone
	})

	if called, _, err := root.Find(args); err == nil {
		called.Flags().VisitAll(takeSeconds)
	}
	s.registerCompletions(root, args)
}
