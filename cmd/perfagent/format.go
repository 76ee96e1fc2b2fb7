package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/internal/text"
)

// Output formats that the commands share.
const (
	formatText     = "text"
	formatTable    = "table"
	formatMarkdown = "md"
	formatCSV      = "csv"
	formatJSON     = "json"
)

// A format is the value of --format, which --json also sets.
type format struct {
	name  string   // the chosen format
	names []string // the possible formats, the default first
	given bool
}

// addFormat declares --format and --json. The first of names is the default.
func addFormat(f *pflag.FlagSet, names ...string) *format {
	o := &format{name: names[0], names: names}
	f.VarP(o, "format", "f", "output format: "+text.Choice(names))
	f.BoolFunc("json", "short for --format json", func(value string) error {
		if wanted, err := strconv.ParseBool(value); err != nil || !wanted {
			return err
		}
		return o.Set(formatJSON)
	})

	return o
}

// String implements pflag.Value.
func (o *format) String() string { return o.name }

// Type implements pflag.Value.
func (o *format) Type() string { return "format" }

// Set implements pflag.Value.
func (o *format) Set(name string) error {
	chosen := name
	if name == "markdown" {
		chosen = formatMarkdown
	}
	switch {
	case !slices.Contains(o.names, chosen):
		return fmt.Errorf("%q is not %s", name, text.Choice(o.names))
	case o.given && chosen != o.name:
		return fmt.Errorf("only one format can be printed, not both %s and %s", o.name, chosen)
	}
	o.name, o.given = chosen, true

	return nil
}
