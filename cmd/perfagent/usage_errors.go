package main

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/agent/pusher"
	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/internal/text"
)

// newNames maps old names of commands, flags and variables to the new ones. If a flag has several new names, the first
// one that the command accepts applies.
var newNames = map[string][]string{
	"record":         {"op"},
	"--html":         {"--" + noPage, "--to"},
	"--output":       {"--to", "--out"},
	"PERFAGENT_HTML": {noPageVariable},
}

// noArguments checks that a command has no arguments.
var noArguments = rangeArgs(0, 0, errors.New("takes no arguments"))

// rangeArgs returns a check that returns wrong unless the number of arguments is between least and most. A negative
// most means no limit.
func rangeArgs(least, most int, wrong error) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return wrong
		}
		return nil
	}
}

// unknownCommand returns the error for an unknown command. It suggests perfagent run if args[0] is a program, else a
// command with a similar name.
func unknownCommand(root *cobra.Command, args []string) error {
	var rules redact.Rules // an error message may end up in a log
	word := rules.Args(args[:1])[0]
	if _, err := exec.LookPath(args[0]); err == nil {
		meant := pusher.ShellCommand(append([]string{root.Name(), "run", "--"}, rules.Args(args)...))
		return fmt.Errorf(`unknown command "%s"; %s`, word, text.DidYouMean(meant, `"%s"`, ""))
	}

	if renamed := newNames[word]; renamed != nil {
		return fmt.Errorf(`unknown command "%s"; it is now "%s"`, word, renamed[0])
	}

	return fmt.Errorf(`unknown command "%s"; %s`, word, text.DidYouMean(commandMeant(root, word), `"%s"`,
		root.Name()+" --help lists the commands"))
}

// commandMeant returns the command that has word as a synonym (SuggestFor) or a similar name, or "".
func commandMeant(root *cobra.Command, word string) string {
	for _, c := range root.Commands() {
		if slices.Contains(c.SuggestFor, word) {
			return c.Name()
		}
	}

	return text.Nearest(word, commandNames(root))
}

// commandNames returns the names of the commands in the help.
func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}

	return names
}

// flagError replaces an error of pflag with perfagent's message.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		noValue *pflag.ValueRequiredError
		bad     *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return unknownLetter(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &noValue):
		return fmt.Errorf("--%s: the value is missing", noValue.GetFlag().Name)
	case errors.As(err, &bad):
		return fmt.Errorf("--%s: %w", bad.GetFlag().Name, valueError(err))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is not a flag; %s", syntax.GetSpecifiedFlag(), listsFlags(cmd))
	}

	return err
}

// helpOf returns the arguments of perfagent that print the help of cmd.
func helpOf(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()) + " --help")
}

// listsFlags returns a hint that names the command for listing the flags of cmd.
func listsFlags(cmd *cobra.Command) string { return "perfagent " + helpOf(cmd) + " lists the flags" }

// unknownFlag returns the error for an unknown flag, with a suggestion.
func unknownFlag(cmd *cobra.Command, name string) error {
	for _, renamed := range newNames["--"+name] {
		if cmd.Flags().Lookup(strings.TrimPrefix(renamed, "--")) != nil {
			return fmt.Errorf("unknown flag --%s; it is now %s", name, renamed)
		}
	}

	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	meant := text.Nearest(name, names)

	if meant == "" && !cmd.HasParent() {
		for _, c := range cmd.Commands() {
			if c.Flags().Lookup(name) != nil {
				return fmt.Errorf("unknown flag --%s; flags follow the command, as in perfagent %s --%s",
					name, c.Name(), name)
			}
		}
	}

	return fmt.Errorf("unknown flag --%s; %s", name, text.DidYouMean(meant, "--%s", listsFlags(cmd)))
}

// unknownLetter is like unknownFlag, for a flag of one letter.
func unknownLetter(cmd *cobra.Command, letter string) error {
	meant := ""
	for _, other := range []string{strings.ToUpper(letter), strings.ToLower(letter)} {
		if len(other) == 1 && cmd.Flags().ShorthandLookup(other) != nil {
			meant = other
		}
	}

	return fmt.Errorf("unknown flag -%s; %s", letter, text.DidYouMean(meant, "-%s", listsFlags(cmd)))
}

// valueError replaces pflag's error about the value of a flag with perfagent's message. It returns other errors
// unchanged.
func valueError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}

	cause, number := bad.Unwrap(), new(strconv.NumError)
	if !errors.As(cause, &number) {
		return cause
	}

	wanted := "a whole number"
	if strings.HasPrefix(bad.GetFlag().Value.Type(), "bool") {
		wanted = "true or false"
	}

	return fmt.Errorf("%q is not %s", bad.GetValue(), wanted)
}
