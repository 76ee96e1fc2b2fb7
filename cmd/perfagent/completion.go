package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/catalog"
)

// shells are the shells for which completion prints a script.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(s streams) *cobra.Command {
	plain := false
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "print a shell completion script",
		Long: `Print a script for bash, zsh, fish or powershell that completes perfagent's
commands, flags, values, metrics and runs. bash needs the package
bash-completion.`,
		Example: `  source <(perfagent completion bash)
  perfagent completion bash > /etc/bash_completion.d/perfagent
  perfagent completion zsh > "${fpath[1]}/_perfagent"
  perfagent completion fish > ~/.config/fish/completions/perfagent.fish`,
		Args: rangeArgs(1, 1, errors.New("name one shell: bash, zsh, fish or powershell")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.printCompletion(cmd.Root(), args[0], !plain)
		},
	}

	cmd.Flags().BoolVar(&plain, "no-descriptions", false, "complete without descriptions")

	return cmd
}

func (s streams) printCompletion(root *cobra.Command, shell string, descriptions bool) error {
	switch {
	case shell == "bash":
		return root.GenBashCompletionV2(s.rawOut(), descriptions)
	case shell == "zsh" && descriptions:
		return root.GenZshCompletion(s.rawOut())
	case shell == "zsh":
		return root.GenZshCompletionNoDesc(s.rawOut())
	case shell == "fish":
		return root.GenFishCompletion(s.rawOut(), descriptions)
	case shell == "powershell" && descriptions:
		return root.GenPowerShellCompletionWithDesc(s.rawOut())
	case shell == "powershell":
		return root.GenPowerShellCompletion(s.rawOut())
	}

	return fmt.Errorf(`unknown shell "%s"; %s`, shell, text.DidYouMean(text.Nearest(shell, shells), `"%s"`,
		"the shells are bash, zsh, fish and powershell"))
}

// flagValues maps the flags that take the same values in every command to these values.
func flagValues() map[string][]string {
	return map[string][]string{
		"summary":    summaries(),
		"compat":     {"perf.py"},
		"mlflow":     {"auto", "off"},
		"listen":     {"off"},
		"ops":        {"off", "on"},
		"cgroup":     {"auto", "create", "off"},
		"reader":     {"auto", "gopsutil"},
		"log-level":  {"debug", "info", "warn", "error"},
		"log-format": {"console", "json"},
	}
}

// registerCompletions sets the completions of the arguments and flags of all commands. It does nothing unless a shell
// requests completions, because the work would delay the start of a job.
func (s streams) registerCompletions(root *cobra.Command, args []string) {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return
	}

	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "run", "op":
			cmd.ValidArgsFunction = completeCommand
		case "phase":
			cmd.ValidArgsFunction = completePhase
		case "ls", "show", "watch", "plot", "diff", "merge", "push":
			cmd.ValidArgsFunction = s.completeRun
		case "metrics":
			cmd.ValidArgsFunction = completeMetric("")
		case "help":
			cmd.ValidArgsFunction = cobra.FixedCompletions(commandNames(root), cobra.ShellCompDirectiveNoFileComp)
		case "completion":
			cmd.ValidArgsFunction = cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp)
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().VisitAll(takeSeconds)
		registerFlagCompletions(cmd)
	}
}

// registerFlagCompletions sets the completions of the flags of cmd.
func registerFlagCompletions(cmd *cobra.Command) {
	all := flagValues()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		_, f.Usage = pflag.UnquoteUsage(f)
		chosen, isFormat := f.Value.(*format)
		switch values := all[f.Name]; {
		case isFormat:
			complete = cobra.FixedCompletions(chosen.names, cobra.ShellCompDirectiveNoFileComp)
		case values != nil && cmd.Flags().Lookup("mlflow-run-id") == nil: // the --mlflow of push takes only a URI
			complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "out":
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case f.Name == "fail-if":
			complete = completeMetric(" > +10%")
		case f.Name == "metric":
			complete = cobra.FixedCompletions(plotter.SampleKeys(), cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "to" || f.Name == "disk-path":
			return // the shell completes file names
		default:
			complete = cobra.NoFileCompletions
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // an error means an unknown flag or a second registration
	})
}

// completeMetric returns a function that completes the names of metrics and appends the text behind to each.
func completeMetric(behind string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, m := range reporter.Metrics() {
			if strings.HasPrefix(m.Name, toComplete) {
				names = append(names, cobra.CompletionWithDesc(m.Name+behind, m.Meaning))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRun completes the name of a run below --out, or of a file.
func (s streams) completeRun(
	cmd *cobra.Command, _ []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	runs := runFinder{cmd: cmd, out: cmd.Flag("out").Value.String(), streams: s}
	if err := runs.applyDefaults(); err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}

	var names []string
	if strings.HasPrefix(toComplete, "@") {
		names = []string{"@latest", "@-2"}
	}
	all, _ := catalog.List(runs.out)
	for _, run := range all {
		if strings.HasPrefix(run.Name, toComplete) {
			names = append(names, run.Name)
		}
	}

	return names, cobra.ShellCompDirectiveDefault
}

// completePhase completes the command that follows the name of the phase and "--".
func completePhase(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) < 2 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeCommand(cmd, args[2:], toComplete)
}

// completeCommand completes a job's command line: a program in PATH, then files.
func completeCommand(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || strings.ContainsRune(toComplete, filepath.Separator) {
		return nil, cobra.ShellCompDirectiveDefault
	}

	var programs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), toComplete) && executable(filepath.Join(dir, e.Name())) {
				programs = append(programs, e.Name())
			}
		}
	}
	slices.Sort(programs)

	return slices.Compact(programs), cobra.ShellCompDirectiveNoFileComp
}

// executable reports whether path is a regular file with an execute permission.
func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
