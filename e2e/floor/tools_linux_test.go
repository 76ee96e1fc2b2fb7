//go:build e2e

package floor

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// gnuTime is the path of GNU time, which is not the shell's time.
const gnuTime = "/usr/bin/time"

// A tool runs a job and prints its usage. around returns the command line for a job and a number of samples per second.
type tool struct {
	name   string
	slow   bool // whether it takes a second or more for an empty job
	around func(job []string, hz int) []string
}

// perfagent returns the tool under test: a copy of the program, like an installed program. The file that the linker
// wrote takes a fifth to a third longer to start, because the page cache has it in smaller pieces.
func perfagent(t *testing.T, flags ...string) tool {
	path := filepath.Join(t.TempDir(), "perfagent")
	data, err := os.ReadFile(clitest.Binary(t))
	if err == nil {
		err = os.WriteFile(path, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tool{name: "perfagent", around: func(job []string, hz int) []string {
		args := append([]string{path, "run", "--quiet", "--interval", interval(hz)}, flags...)
		return append(append(args, "--"), job...)
	}}
}

// others returns the installed tools with which perfagent is compared, and logs the missing tools.
func others(t *testing.T) []tool {
	t.Helper()
	venv, crates := testenv.Repository(t, ".tools/peers/bin"), testenv.Repository(t, ".tools/floor/bin")
	script := testenv.Repository(t, "e2e/floor/testdata/psutil_wrap.py")
	all := []tool{
		{name: gnu, around: func(job []string, _ int) []string {
			return append([]string{gnuTime, "-o", "/dev/null"}, job...)
		}},
		{name: denet, around: func(job []string, hz int) []string {
			ms := interval(hz)
			ms = ms[:len(ms)-len("ms")]
			return append([]string{filepath.Join(crates, "denet"), "-q", "-i", ms, "-m", ms, "-o", "denet.json", "run", "--"}, job...)
		}},
		{name: psutil, around: func(job []string, hz int) []string {
			seconds := (time.Second / time.Duration(hz)).Seconds()
			return append([]string{filepath.Join(venv, "python"), script, format(seconds)}, job...)
		}},
		{name: "rt-rs 0.1.18", slow: true, around: func(job []string, hz int) []string {
			return append([]string{filepath.Join(crates, "resource-tracker"), "--"}, job...)
		}},
		{name: "con-duct 0.23.0", around: func(job []string, hz int) []string {
			every := format((time.Second / time.Duration(hz)).Seconds())
			return append([]string{filepath.Join(venv, "con-duct"), "run", "-l", "NONE", "-p", "duct_", "--fail-time", "0",
				"--sample-interval", every, "--report-interval", "60", "--"}, job...)
		}},
	}

	var there []tool
	for _, peer := range all {
		if _, err := exec.LookPath(peer.around(nil, 1)[0]); err != nil {
			t.Logf("not compared with %s, which is not installed: %v (make floor installs what it can)", peer.name, err)
			continue
		}
		there = append(there, peer)
	}
	return there
}

// interval returns the interval for a number of samples per second, as a duration in milliseconds.
func interval(hz int) string { return format(1e3/float64(hz)) + "ms" }

// loop returns the path of a program in C that reads ten kernel files. Its cost is the minimum cost of a sampler.
func loop(t *testing.T) string {
	t.Helper()
	cc := testenv.NeedsTool(t, "cc", "apt-get install gcc libc6-dev, or your system's packages of them")
	source := testenv.Repository(t, "e2e/floor/testdata/loop.c")
	return clitest.BuildOnce(t, "loop", func(path string) *exec.Cmd { return exec.Command(cc, "-O2", "-o", path, source) })
}
