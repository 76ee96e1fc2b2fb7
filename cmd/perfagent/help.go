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

// briefFlags are the flags that -h shows for the commands that record, in this order. --help shows them first. Other
// commands have few flags, so -h shows them all.
var briefFlags = []string{
	"out", "run-id", "interval", "tag", "quiet", "summary", "for", "stop-if", "cgroup", "mlflow", "listen", "store", "ops",
}

// flagGroups are the sections of --help that follow the other flags.
var flagGroups = []flagGroup{
	{"What is measured", true, []string{"disk-path", "scrape", "scrape-interval", "ops-chart"}},
	{"While the job runs", true, []string{"listen-token-file", "ready", "stop-grace"}},
	{"Reports", true, []string{"no-page", "node", "log-lines", "store-every", "push-timeout"}},
	{"For administrators", true, []string{"on-end", "redact"}},
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
				return printHelp(s.out, root, true)
			}
			named, _, err := root.Find(args)
			if err != nil || named == root {
				return unknownCommand(root, args)
			}
			return printHelp(s.out, named, true)
		},
	}
}

// addHelpFlag declares --help. -h is not declared, so pflag returns ErrHelp for it, and its help can be shorter.
func addHelpFlag(cmd *cobra.Command) {
	usage := "print this help"
	if records(cmd) {
		usage += "; -h is shorter"
	}
	cmd.Flags().Bool("help", false, usage)
	cmd.Flags().Lookup("help").Shorthand = "h" // for the help and completions only
}

// records reports whether cmd is run, attach or sidecar. These have so many flags that -h shows only briefFlags.
func records(cmd *cobra.Command) bool { return cmd.Flags().Lookup("interval") != nil }

// printHelp prints the description, usage, commands and flags of cmd, at most 80 columns wide. If all is false, it
// prints the short help of a command that records.
func printHelp(w io.Writer, cmd *cobra.Command, all bool) error {
	all = all || !records(cmd)
	about, exitCode, _ := strings.Cut(cmd.Long, "\n\nExit code: ")
	if !all {
		about, _, _ = strings.Cut(about, "\n\n")
	}
	if about == "" {
		about = strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\nUsage:\n", about)
	if cmd.HasParent() {
		fmt.Fprintf(&out, "  %s\n", cmd.UseLine())
	} else {
		fmt.Fprintf(&out, "  %s COMMAND [flags]\n", cmd.Name())
	}
	if cmd.Example != "" {
		fmt.Fprintf(&out, "\nExamples:\n%s\n", cmd.Example)
	}

	writeCommands(&out, cmd)
	writeFlags(&out, cmd, all)
	if exitCode != "" {
		fmt.Fprintf(&out, "\nExit code: %s\n", exitCode)
	}
	if !cmd.HasParent() {
		fmt.Fprintf(&out, "\n%s COMMAND --help describes a command and its flags.\n", cmd.Name())
	}

	_, err := io.WriteString(w, out.String())
	return err
}

// writeCommands writes the subcommands of cmd by group.
func writeCommands(out *strings.Builder, cmd *cobra.Command) {
	for _, g := range cmd.Groups() {
		t := nameTable(14)
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && !c.Hidden {
				t.Add(table.Texts("  "+c.Name(), c.Short)...)
			}
		}
		writeEntries(out, g.Title, t)
	}
}

// writeFlags writes the flags of cmd by group. If all is false, it writes only the first group, without details.
func writeFlags(out *strings.Builder, cmd *cobra.Command, all bool) {
	groups := make([][]*pflag.Flag, 1+len(flagGroups)) // the flags in no group come first
	for _, name := range briefFlags {
		if f := cmd.Flags().Lookup(name); records(cmd) && f != nil {
			groups[0] = append(groups[0], f)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		i := slices.IndexFunc(flagGroups, func(g flagGroup) bool {
			return slices.Contains(g.flags, f.Name) && (records(cmd) || !g.record)
		})
		if f.Name != "help" && !slices.Contains(groups[0], f) {
			groups[i+1] = append(groups[i+1], f)
		}
	})

	if !all {
		t := flagTable(24, groups[0], false)
		t.Add(table.Texts("  -h", "print this; --help prints all flags and their variables")...)
		writeEntries(out, "Flags", t)
		return
	}
	writeEntries(out, "Flags", flagTable(28, append(groups[0], cmd.Flags().Lookup("help")), true))
	for i, g := range flagGroups {
		writeEntries(out, g.title, flagTable(28, groups[i+1], true))
	}
}

// flagTable returns the table of flags. The descriptions begin at the given column.
func flagTable(column int, flags []*pflag.Flag, details bool) *table.Table {
	t := nameTable(column)
	for _, f := range flags {
		name, meaning, more := flagEntry(f)
		if details {
			meaning += more
		}
		t.Add(table.Texts(name, meaning+defaultOf(f))...)
	}
	return t
}

// flagEntry returns the names of f, such as "-q, --quiet", its description, and the details that follow it. In the
// usage text of a flag, a line break precedes the details.
func flagEntry(f *pflag.Flag) (name, meaning, details string) {
	name = "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}

	value, usage := pflag.UnquoteUsage(f)
	switch value {
	case "":
	case "duration":
		name += " TIME"
	case "int":
		name += " N"
	default:
		name += " " + strings.ToUpper(value)
	}
	meaning, details, _ = strings.Cut(usage, "\n")

	return name, meaning, strings.ReplaceAll(details, "\n", "")
}

// defaultOf returns the default of f in parentheses, or "" if it is zero or empty.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	return " (default " + strings.Trim(f.DefValue, "[]") + ")"
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
