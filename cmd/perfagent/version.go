package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/job"
)

// plainBuild is what version says of a build without the entry point before the Go runtime.
const plainBuild = " (plain go build: ignored signals other than HUP, INT, TSTP, TTIN, TTOU, CONT " +
	"are not passed on; see docs/limits.md)"

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(s.out, versionLine(info, job.PlainBuild()))
			return err
		},
	}
}

// versionLine describes this program. info may be nil.
func versionLine(info *debug.BuildInfo, plain bool) string {
	line := fmt.Sprintf("perfagent %s %s %s/%s", moduleVersion(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if commit := commit(info); commit != "" {
		line += " commit " + commit
	}
	if plain {
		line += plainBuild
	}
	return line
}

// version is the module's, as the build stamped it; "devel" without a stamp.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return moduleVersion(info)
}

func moduleVersion(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// commit returns the commit of the checkout that was built, followed by "+dirty" if there were
// changes, or "" if the build does not know it. A pseudo-version has its beginning, too.
func commit(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	var revision, dirty string
	for _, s := range info.Settings {
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
