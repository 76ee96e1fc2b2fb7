package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/internal/timeout"
)

// applyQuiet makes -q set --summary never.
func (o *recordOptions) applyQuiet(cmd *cobra.Command) error {
	switch {
	case !o.quiet:
		return nil
	case cmd.Flags().Changed("summary"):
		return errors.New("-q is --summary never: use one of the two")
	}
	return cmd.Flags().Set("summary", "never")
}

// warn logs probable mistakes in flags and variables. The job runs anyway.
func (o *recordOptions) warn(cmd *cobra.Command) {
	for _, name := range unknownVariables(os.Environ()) {
		o.Log.Warn(unknownVariable(name, knownVariables(), "perfagent "+helpOf(cmd)))
	}

	if !cmd.Flags().Changed("disk-path") {
		return
	}
	for _, path := range o.DiskPaths {
		there := func() bool { _, err := os.Stat(path); return !errors.Is(err, fs.ErrNotExist) }
		if is, answered := timeout.Call(200*time.Millisecond, there); answered && !is {
			o.Log.Warn("--disk-path " + path + " is not there; its file system is not measured")
		}
	}
}

// unknownVariable returns the warning about a variable that is not in known. lister is the command that lists the known
// variables.
func unknownVariable(name string, known []string, lister string) string {
	if renamed := newNames[name]; renamed != nil {
		return name + " is not known; it is now " + renamed[0]
	}
	return name + " is not known; " + text.DidYouMean(text.Nearest(name, known), "%s", lister+" names the variables")
}

// variablePrefix is the prefix of all of perfagent's environment variables.
const variablePrefix = "PERFAGENT_"

// knownVariables returns the variables that perfagent reads, and those that it sets for a job.
func knownVariables() []string {
	ours := []string{marks.Variable, marks.PhaseVariable, agent.ParentVariable}
	return slices.Concat(flagVariables(), intake.Variables(), ours)
}

// unknownVariables returns the sorted names of PERFAGENT_ variables that perfagent does not know. It ignores the
// variables of perfagent's tests, and those that Kubernetes sets for a Service named perfagent.
func unknownVariables(environ []string) []string {
	var names []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, variablePrefix)
		if ours && !foreign(rest) && !slices.Contains(knownVariables(), name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)

	return slices.Compact(names)
}

// foreign reports whether the variable PERFAGENT_name is set by the tests or by Kubernetes.
func foreign(name string) bool {
	return strings.HasPrefix(name, "TEST_") || strings.HasPrefix(name, "SERVICE_") ||
		name == "PORT" || strings.HasPrefix(name, "PORT_")
}
