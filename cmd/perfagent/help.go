package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/internal/table"
	"github.com/perfagent/perfagent/reporter/summary"
)

// A flagGroup is a section of a command's help.
type flagGroup struct {
	title  string
	record bool // only in commands that record; elsewhere these flags have other meanings
	flags  []string
}

// flagGroups are the sections that follow the common flags. All flags that are not in them are common flags.
var flagGroups = []flagGroup{
	{"What is measured", true, []string{"disk-path", "cgroup", "ops", "ops-chart", "scrape", "scrape-interval"}},
	{"Where the reports are", false, []string{"out", "run-id", "node", "html"}},
	{"Stopping the job", true, []string{"stop-if", "stop-grace"}},
	{"Live page", true, []string{"listen", "listen-token-file"}},
	{"MLflow", false, []string{"mlflow", "mlflow-run-id", "mlflow-experiment", "push-timeout"}},
	{"Stores", false, []string{"store", "store-every"}},
	{"For a site", true, []string{"on-end", "redact"}},
	{"For experts", false, []string{"max-length", "reader", "compat", "cpus", "log-level", "log-format"}},
}

func newHelp(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "describe a command and its flags",
		Args:  rangeArgs(0, 1, errors.New("one command, please")),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return printHelp(s.out, root)
			}
			named, _, err := root.Find(args)
			if err != nil || named == root {
				return unknownCommand(root, args)
			}
			return printHelp(s.out, named)
		},
	}
}

// printHelp prints the description, usage, commands and flags of cmd, at most 80 columns wide.
func printHelp(w io.Writer, cmd *cobra.Command) error {
	describeHelpFlag(cmd)
	var out strings.Builder
	what := cmd.Long
	if what == "" {
		what = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}
	fmt.Fprintf(&out, "%s\n\nUsage:\n", what)
	if cmd.HasParent() {
		fmt.Fprintf(&out, "  %s\n", cmd.UseLine())
	} else {
		fmt.Fprintf(&out, "  %s COMMAND [flags]\n", cmd.Name())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&out, "\nExamples:\n%s\n", cmd.Example)
	}

	writeCommands(&out, cmd)
	writeFlags(&out, cmd)
	if !cmd.HasParent() {
		fmt.Fprintf(&out, "\n%s COMMAND --help describes a command and its flags.\n", cmd.Name())
	}

	_, err := io.WriteString(w, out.String())
	return err
}

// describeHelpFlag adds --help to cmd, with perfagent's description.
func describeHelpFlag(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Usage = "print this help"
}

// writeCommands writes the subcommands of cmd by group.
func writeCommands(out *strings.Builder, cmd *cobra.Command) {
	for _, g := range cmd.Groups() {
		t := nameTable(14)
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID {
				t.Add(table.Texts("  "+c.Name(), c.Short)...)
			}
		}
		writeEntries(out, g.Title, t)
	}
}

// writeFlags writes the flags of cmd by group.
func writeFlags(out *strings.Builder, cmd *cobra.Command) {
	records := cmd.Flags().Lookup("interval") != nil
	groups := make([][]*pflag.Flag, 1+len(flagGroups)) // the common flags first
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		i := slices.IndexFunc(flagGroups, func(g flagGroup) bool {
			return slices.Contains(g.flags, f.Name) && (records || !g.record)
		})
		groups[i+1] = append(groups[i+1], f)
	})

	for i, flags := range groups {
		title := "Common flags"
		if i > 0 {
			title = flagGroups[i-1].title
		}
		t := nameTable(28)
		for _, f := range flags {
			t.Add(table.Texts(flagEntry(f))...)
		}
		writeEntries(out, title, t)
	}
}

// flagEntry returns the names of f, such as "-q, --quiet", and its description with the default unless that is zero or
// empty.
func flagEntry(f *pflag.Flag) (name, meaning string) {
	name = "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}

	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		name += " " + value
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		usage += " (default " + strings.Trim(f.DefValue, "[]") + ")"
	}

	return name, usage
}

// nameTable returns an empty table of names and descriptions. The descriptions begin at the given column of the screen.
func nameTable(column int) *table.Table {
	return &table.Table{Columns: []table.Column{{Min: column - 2, Max: column - 2}, {Wrap: true}}}
}

// writeEntries writes t under title, or nothing if t is empty.
func writeEntries(out *strings.Builder, title string, t *table.Table) {
	if len(t.Rows) > 0 {
		fmt.Fprintf(out, "\n%s:\n", title)
		_ = t.WriteText(out, summary.Width, false) // a strings.Builder never fails
	}
}
