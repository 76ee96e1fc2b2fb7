package main

import (
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"
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
	if got := output(t, "version"); !want.MatchString(got) {
		t.Errorf("make build: %q", got)
	}

	if hasEntry() {
		want = regexp.MustCompile(line + system + regexp.QuoteMeta(plainSuffix) + "\n$")
	}
	got, err := exec.Command(plainBinary(t), "version").Output()
	if err != nil || !want.Match(got) {
		t.Errorf("go build: %q, %v", got, err)
	}
}

func TestVersionLine_SaysWhatTheBuildKnows(t *testing.T) {
	info := func(version string, settings ...string) *debug.BuildInfo {
		b := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			b.Settings = append(b.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return b
	}
	system := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for name, c := range map[string]struct {
		info  *debug.BuildInfo
		plain bool
		want  string
	}{
		"no information": {nil, false, "devel " + system},
		"no stamp":       {info("(devel)"), true, "devel " + system + plainSuffix},
		"release":        {info("v1.2.3"), true, "v1.2.3 " + system + plainSuffix},
		"commit":         {info("v0.0.0-2026-22b51bcb8d72"), false, "v0.0.0-2026-22b51bcb8d72 " + system},
		"checkout": {info("v1.2.3", "vcs.revision", "22b5", "vcs.modified", "false"), false,
			"v1.2.3 " + system + " commit 22b5"},
		"changed checkout": {info("v1.2.3", "vcs.revision", "22b5", "vcs.modified", "true"), false,
			"v1.2.3 " + system + " commit 22b5+dirty"},
		"plain": {info("v1.2.3", "vcs.revision", "22b5"), true, "v1.2.3 " + system + " commit 22b5" + plainSuffix},
	} {
		if got := versionLine(c.info, c.plain); got != "perfagent "+c.want {
			t.Errorf("%s: %q, want perfagent %q", name, got, c.want)
		}
	}
}
