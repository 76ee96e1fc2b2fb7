package main

import (
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// What users and scripts know of the version's line.
const plainSuffix = " (plain go build: ignored signals other than HUP, INT, TSTP, TTIN, TTOU, CONT " +
	"are not passed on; see docs/limits.md)"

// hasEntry reports whether this system has an entry point before the Go runtime.
func hasEntry() bool {
	return runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")
}

func TestVersion_OfBothBuilds(t *testing.T) {
	t.Parallel()
	const line = `^perfagent \S+ go1\.\S+ `
	system := runtime.GOOS + "/" + runtime.GOARCH

	want := regexp.MustCompile(line + system + "\n$")
	released, err := exec.Command(clitest.Binary(t), "version").Output()
	if err != nil || !want.Match(released) {
		t.Errorf("make build: %q, %v", released, err)
	}

	if hasEntry() {
		want = regexp.MustCompile(line + system + regexp.QuoteMeta(plainSuffix) + "\n$")
	}
	got, err := exec.Command(clitest.PlainBinary(t), "version").Output()
	if err != nil || !want.Match(got) {
		t.Errorf("go build: %q, %v", got, err)
	}
}

func TestVersionLine_SaysWhatTheBuildKnows(t *testing.T) {
	settings := func(list ...string) (out []debug.BuildSetting) {
		for i := 0; i < len(list); i += 2 {
			out = append(out, debug.BuildSetting{Key: list[i], Value: list[i+1]})
		}
		return out
	}
	system := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for name, c := range map[string]struct {
		version  string
		settings []debug.BuildSetting
		plain    bool
		want     string
	}{
		"no stamp": {version: "devel", plain: true, want: "devel " + system + plainSuffix},
		"release":  {version: "v1.2.3", plain: true, want: "v1.2.3 " + system + plainSuffix},
		"commit":   {version: "v0.0.0-2026-22b51bcb8d72", want: "v0.0.0-2026-22b51bcb8d72 " + system},
		"checkout": {version: "v1.2.3", settings: settings("vcs.revision", "22b5", "vcs.modified", "false"),
			want: "v1.2.3 " + system + " commit 22b5"},
		"changed checkout": {version: "v1.2.3", settings: settings("vcs.revision", "22b5", "vcs.modified", "true"),
			want: "v1.2.3 " + system + " commit 22b5+dirty"},
		"plain": {version: "v1.2.3", settings: settings("vcs.revision", "22b5"), plain: true,
			want: "v1.2.3 " + system + " commit 22b5" + plainSuffix},
	} {
		if got := versionLine(c.version, c.settings, c.plain); got != "perfagent "+c.want {
			t.Errorf("%s: %q, want perfagent %q", name, got, c.want)
		}
	}
}
