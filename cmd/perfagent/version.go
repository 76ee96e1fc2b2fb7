package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/job"
)

// plainBuild is printed for a build without the entry point that runs before the Go runtime.
const plainBuild = "plain go build: ignored signals other than HUP, INT, TSTP, TTIN, TTOU, CONT\n" +
	"are not passed on; see docs/wrapping.md"

func newVersion(s streams) *cobra.Command {
	var format *format
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "print the version",
		Long: `Print the version, the commit if the build knows it, the version of Go, and the
system that it was built for. perfagent --version prints the same.`,
		Example: `  perfagent version
  perfagent version --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if format.name == formatJSON {
				return s.printJSON(thisRelease())
			}
			return s.printVersion()
		},
	}

	format = addFormat(cmd.Flags(), formatText, formatJSON)

	return cmd
}

// A release identifies a build of perfagent.
type release struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // "" = unknown
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// thisRelease returns the release of this program.
func thisRelease() release {
	r := release{Version: agent.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		r.Commit = commit(info.Settings)
	}

	return r
}

// String returns "perfagent VERSION (COMMIT, GO, OS/ARCH)".
func (r release) String() string {
	built := r.Go + ", " + r.OS + "/" + r.Arch
	if r.Commit != "" {
		built = r.Commit + ", " + built
	}

	return "perfagent " + r.Version + " (" + built + ")"
}

func (s streams) printVersion() error {
	line := thisRelease().String()
	if job.LacksEntryPoint() {
		line += "\n" + plainBuild
	}
	_, err := fmt.Fprintln(s.out, line)

	return err
}

// commit returns the commit of the build, followed by "+dirty" for a modified checkout, or "" if unknown.
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
