package main

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
)

// hasEntry reports whether perfagent has an entry point before the Go runtime on this system.
func hasEntry() bool {
	return runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")
}

func TestVersion_NamesPlainBuild(t *testing.T) {
	t.Parallel()
	line := `^perfagent \S+ \(go1\.\S+, ` + runtime.GOOS + "/" + runtime.GOARCH + "\\)\n"
	for name, c := range map[string]struct{ program, want string }{
		"make build": {clitest.Binary(t), line + "$"},
		"go build":   {clitest.PlainBinary(t), line + "plain go build: ignored signals .*\n.*see docs/wrapping.md\n$"},
	} {
		if !hasEntry() {
			c.want = line + "$"
		}
		for _, args := range []string{"version", "--version", "-V"} {
			got, err := exec.Command(c.program, args).Output()
			if err != nil || !regexp.MustCompile(c.want).Match(got) {
				t.Errorf("%s %s prints %q (%v), want a match of %s", name, args, got, err, c.want)
			}
		}
	}
}

func TestVersion_JSONHasTheRelease(t *testing.T) {
	t.Parallel()
	var got map[string]string
	check.Must(t, json.Unmarshal([]byte(output(t, "version", "--json")), &got))
	want := map[string]string{
		"version": agent.Version(), "commit": got["commit"], "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("version --json (-want +got):\n%s", diff)
	}
}

func TestRelease_StringHasCommitIfKnown(t *testing.T) {
	r := release{Version: "1.2.3", Go: "go1.26.8", OS: "linux", Arch: "arm64"}
	if got, want := r.String(), "perfagent 1.2.3 (go1.26.8, linux/arm64)"; got != want {
		t.Errorf("release %q, want %q", got, want)
	}

	for want, settings := range map[string][]debug.BuildSetting{
		"22b5":       {{Key: "vcs.revision", Value: "22b5"}, {Key: "vcs.modified", Value: "false"}},
		"22b5+dirty": {{Key: "vcs.revision", Value: "22b5"}, {Key: "vcs.modified", Value: "true"}},
	} {
		r.Commit = commit(settings)
		if got, want := r.String(), "perfagent 1.2.3 ("+want+", go1.26.8, linux/arm64)"; got != want {
			t.Errorf("release %q, want %q", got, want)
		}
	}
}
