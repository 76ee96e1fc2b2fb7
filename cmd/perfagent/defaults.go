package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/durable"
	"github.com/perfagent/perfagent/internal/envfile"
	"github.com/perfagent/perfagent/internal/timeout"
)

const (
	// siteDefaults is the path of the site's defaults file.
	siteDefaults = "/etc/perfagent.env"

	// userDefaults is the name of the user's defaults file in the user's configuration directory.
	userDefaults = "perfagent.env"

	// defaultsTimeout is how long the start of a job waits for the defaults files, because a home directory may hang.
	defaultsTimeout = time.Second

	// maxWarnedLines is the maximum number of bad lines of one file that get a warning each.
	maxWarnedLines = 8
)

// A setting is the value of a flag from an environment variable or a defaults file.
type setting struct {
	variable, value string
	where           string // "/etc/perfagent.env:3"; "" for an environment variable
}

// source returns the origin of the setting for messages: FILE:LINE: VARIABLE or, for an environment variable, VARIABLE.
func (s setting) source() string {
	if s.where == "" {
		return s.variable
	}
	return s.where + ": " + s.variable
}

// defaults holds the settings of the defaults files, the user's before the site's. If a file sets a variable twice, the
// later line comes first and wins.
type defaults struct {
	settings []setting
	warnings []string
}

// readDefaults starts reading the defaults files and returns a function that waits for the result. The files are read
// while the command line is parsed, so the job does not wait for the reading thread to start. A missing file is not an
// error.
func readDefaults(site string) (wait func() defaults) {
	result := make(chan defaults, 1)
	go func() {
		var d defaults
		for _, path := range []string{userFile(), site} {
			if path != "" {
				d.read(path)
			}
		}
		result <- d
	}()

	return sync.OnceValue(func() defaults {
		d, ok := timeout.Receive(result, defaultsTimeout)
		if !ok {
			d.warnings = []string{
				fmt.Sprintf("the files of defaults were not read within %v and are left out", defaultsTimeout),
			}
		}
		return d
	})
}

// userFile returns the path of the user's file, or "" if the user has no home directory. A relative XDG_CONFIG_HOME is
// ignored (XDG Base Directory Specification).
func userFile() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, userDefaults)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}

	return filepath.Join(home, ".config", userDefaults)
}

// read adds the settings of the file at path, and warnings for its bad lines.
func (d *defaults) read(path string) {
	data, err := durable.ReadRegular(path, envfile.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		d.warnings = append(d.warnings, fmt.Sprintf("%s: %v; the file is left out", path, err))
		return
	}

	settings, bad := envfile.Parse(data)
	wrong := make(map[int]string)
	for _, line := range bad {
		wrong[line] = "not PERFAGENT_NAME=VALUE"
	}
	for _, s := range slices.Backward(settings) {
		if !slices.Contains(flagVariables(), s.Name) {
			wrong[s.Line] = unknownVariable(s.Name, flagVariables(), "perfagent run --help")
			continue
		}
		if s.Value != "" { // an empty value means unset, as in the environment
			d.settings = append(d.settings, setting{s.Name, s.Value, fmt.Sprintf("%s:%d", path, s.Line)})
		}
	}
	d.warn(path, wrong)
}

// warn adds a warning for each bad line, at most maxWarnedLines. wrong maps line numbers to reasons.
func (d *defaults) warn(path string, wrong map[int]string) {
	lines := slices.Sorted(maps.Keys(wrong))
	for i, line := range lines {
		if i == maxWarnedLines {
			d.warnings = append(d.warnings, fmt.Sprintf("%s: and %d more bad lines", path, len(lines)-i))
			return
		}
		d.warnings = append(d.warnings, fmt.Sprintf("%s:%d: %s", path, line, wrong[line]))
	}
}

// flagVariables returns the names of the environment variables that set flags.
func flagVariables() []string {
	names := make([]string, len(environment))
	for i, e := range environment {
		names[i] = e.variable
	}

	return names
}

// of returns the settings of the given variable in order of precedence: the environment, then the files.
func (d defaults) of(variable string) []setting {
	var out []setting
	if value := os.Getenv(variable); value != "" {
		out = append(out, setting{variable: variable, value: value})
	}
	for _, s := range d.settings {
		if s.variable == variable {
			out = append(out, s)
		}
	}

	return out
}

// defaultOf returns the setting of the given variable that has the highest precedence, or the zero setting if there is
// none. Use it only for values that need no check: it prints no warnings about bad lines.
func (s streams) defaultOf(variable string) setting {
	if found := s.defaults().of(variable); len(found) > 0 {
		return found[0]
	}
	return setting{}
}

// applyDefaults sets the flags that are not on the command line from variables and files, and checks all options.
// Errors name the flag or the variable. A bad value in a file is skipped with a warning.
func (o *recordOptions) applyDefaults(cmd *cobra.Command) error {
	if err := o.applyQuiet(cmd); err != nil {
		return err
	}

	files := o.streams.defaults()
	for _, warning := range files.warnings {
		o.Log.Warn(warning)
	}

	o.StoreCredentials = o.streams.defaultOf(storeVariable).value
	for _, e := range environment {
		if flag := cmd.Flags().Lookup(e.flag); flag != nil && !flag.Changed {
			if err := o.applySetting(cmd, flag, files.of(e.variable)); err != nil {
				return err
			}
		}
	}
	if flag, err := o.checkAll(cmd); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}

	return nil
}

// applySetting sets flag to the first valid setting. A bad value in a file is skipped with a warning; in a variable it
// is an error. Flags are set in the order of the table environment, so the check of a flag must not depend on a later
// flag.
func (o *recordOptions) applySetting(cmd *cobra.Command, flag *pflag.Flag, settings []setting) error {
	reset := resetter(flag)
	for _, s := range settings {
		err := o.set(cmd, flag, s.value)
		if err == nil {
			at, wrong := o.checkAll(cmd)
			if wrong == nil || at != flag.Name {
				if flag.Name == "node" {
					o.NodeFrom = s.variable
				}
				return nil
			}
			err = wrong
		}

		err = fmt.Errorf("%s: %w", s.source(), valueError(err))
		if s.where == "" {
			return err
		}
		o.Log.Warn(err.Error() + "; the line is left out")
		if reset(); flag.Name == listenToken {
			o.ListenToken = ""
		}
	}

	return nil
}

// resetter returns a function that restores the current value of flag and marks flag as not set.
func resetter(flag *pflag.Flag) func() {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		before := list.GetSlice()
		return func() { _, flag.Changed = list.Replace(before), false }
	}

	before := flag.Value.String()

	return func() { _, flag.Changed = flag.Value.Set(before), false }
}

// set sets flag to value, which comes from a variable or a file. A list is split like PATH for --disk-path, at
// semicolons and newlines for --stop-if, and at white space for the other flags.
func (o *recordOptions) set(cmd *cobra.Command, flag *pflag.Flag, value string) error {
	list, isList := flag.Value.(pflag.SliceValue)
	flag.Changed = flag.Changed || isList
	switch {
	case flag.Name == listenToken: // the variable holds the token, the flag a file name
		o.ListenToken = value
		return nil
	case !isList:
		return cmd.Flags().Set(flag.Name, value)
	case flag.Name == "disk-path":
		return list.Replace(strings.Split(value, string(os.PathListSeparator)))
	case flag.Name == "stop-if":
		return list.Replace(rulesIn(value))
	}
	return list.Replace(strings.Fields(value))
}

// checkAll checks all options. If it returns an error, flag is the name of the flag with the bad value.
func (o *recordOptions) checkAll(cmd *cobra.Command) (flag string, err error) {
	if cmd.Flags().Changed("run-id") && o.RunID == "" {
		return "run-id", errors.New("the name is empty")
	}
	if cmd.Flags().Changed(noPage) {
		o.HTML = map[bool]string{true: agent.Never, false: agent.Always}[o.noPage]
	}
	o.Node = nil
	if cmd.Flags().Changed("node") {
		o.Node = &o.node
	}
	o.PushTimeout = cmp.Or(o.pushTimeout, -1) // 0: no push
	o.StoreEvery = cmp.Or(o.storeEvery, -1)   // 0: never
	o.StopGrace = cmp.Or(o.stopGrace, -1)     // 0: SIGKILL immediately
	o.LogLines = 0
	if cmd.Flags().Changed("log-lines") {
		o.LogLines = cmp.Or(o.logLines, -1) // 0: none
	}
	if flag, err := o.check(); err != nil {
		return flag, err
	}

	var bad *agent.OptionError
	if err := o.Options.Check(); errors.As(err, &bad) {
		return flagOf[bad.Option], bad.Err
	}

	return "", nil
}
