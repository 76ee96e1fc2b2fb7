package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/job"
)

// plainBuild is what version adds for a build without the entry point before the Go runtime.
const plainBuild = " (plain go build: ignored signals other than HUP, INT, TSTP, TTIN, TTOU, CONT " +
	"are not passed on; see docs/limits.md)"

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var settings []debug.BuildSetting
			if info, ok := debug.ReadBuildInfo(); ok {
				settings = info.Settings
			}
			_, err := fmt.Fprintln(s.out, versionLine(agent.Version(), settings, job.PlainBuild()))
			return err
		},
	}
}

// versionLine returns the line that version prints: the version and, if the build knows it, the commit.
func versionLine(version string, settings []debug.BuildSetting, plain bool) string {
	line := fmt.Sprintf("perfagent %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if commit := commit(settings); commit != "" {
		line += " commit " + commit
	}
	if plain {
		line += plainBuild
	}

	return line
}

// commit returns the commit of the checkout that was built, followed by "+dirty" if there were
// changes, or "" if the build does not know it. A pseudo-version contains its prefix.
func commit(settings []debug.BuildSetting) string {
	var revision, dirty string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}

	if revision == "" {
		return ""
	}

	return revision + dirty
}
