package agent

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	zaptest "go.uber.org/zap/zaptest/observer"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

// Git ignores the default directory. A directory that the user has named or created is not changed.
func TestRun_HidesDefaultOutFromGit(t *testing.T) {
	t.Chdir(t.TempDir())
	o := shell(t, "true")
	ignored := func(out string) bool {
		data, err := os.ReadFile(filepath.Join(out, ".gitignore"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(data) == "*\n"
	}

	for _, c := range []struct {
		name, out string
		before    func() error
		want      bool
	}{
		{"created by perfagent", "", func() error { return nil }, true},
		{"named by the user", "mine", func() error { return nil }, false},
		{"created by the user", "", func() error { return errors.Join(os.RemoveAll(DefaultOut), os.Mkdir(DefaultOut, 0o755)) }, false},
		{"created by the user, with .gitignore", "", func() error {
			return os.WriteFile(filepath.Join(DefaultOut, ".gitignore"), []byte("*.html\n"), 0o644)
		}, false},
	} {
		check.Must(t, c.before())
		o.Out = c.out
		mustRun(t, o)
		if got := ignored(cmp.Or(c.out, DefaultOut)); got != c.want {
			t.Errorf("%s: .gitignore ignores everything: %t, want %t", c.name, got, c.want)
		}
	}
}

// A job that cannot start leaves no directory behind, unless it contains other files.
func TestRun_FailedStartRemovesDefaultOut(t *testing.T) {
	t.Chdir(t.TempDir())
	o := shell(t, "")
	o.Out, o.Args = "", []string{noInterpreter(t)}
	if r, err := Run(t.Context(), o); err == nil {
		t.Fatalf("Run of a script without interpreter: %+v, want an error", r)
	}
	wantAbsent(t, DefaultOut)
}

func init() { earlierTimeout = time.Minute } // however slow the machine is

// A report has the usage of earlier runs of the same command. The first run has no earlier runs.
func TestRun_ReportsEarlierRunsOfTheCommand(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for i := range 3 {
		earlier := cmp.Or(read(t, mustRun(t, shellIn(out, "sleep 0.1"))).Nodes["0"].Earlier, &reporter.Earlier{})
		if earlier.Runs != i || i > 0 && earlier.WallSeconds.Min <= 0 {
			t.Fatalf("run %d: earlier runs %+v, want %d with their times", i, earlier, i)
		}
	}
	if n := read(t, mustRun(t, shellIn(out, "true"))).Nodes["0"]; n.Earlier != nil && n.Wall() < reporter.MinComparedSeconds {
		t.Errorf("a run of %v s: earlier runs %+v, want none", n.Wall(), n.Earlier)
	}
	o := shellIn(out, "exit 3")
	if got := read(t, mustRun(t, o)).Nodes["0"].Earlier; got != nil {
		t.Errorf("another command: earlier runs %+v, want none", got)
	}

	check.Must(t, os.WriteFile(filepath.Join(out, "file"), nil, 0o644)) // the parent of OUT is not a directory
	o.Out = filepath.Join(out, "file", "below")
	if got := read(t, mustRun(t, o)).Nodes["0"].Earlier; got != nil {
		t.Errorf("a directory that cannot be created: earlier runs %+v, want none", got)
	}
}

// A page is written completely, and replaced only by the recording that wrote it. The page of another run is kept.
func TestSavePage_ReplacesOnlyItsOwnPage(t *testing.T) {
	t.Parallel()
	report := &reporter.Report{Run: reporter.Run{ID: "r", Command: []string{"a", "<b>"}}, Nodes: map[string]*reporter.Node{"0": {}}}
	var want bytes.Buffer
	check.Must(t, plotter.WritePage(&want, report, plotter.PageOptions{}))

	dir := t.TempDir()
	name := filepath.Join(dir, "node-0.html")
	core, logged := zaptest.New(zap.WarnLevel)
	saver := func() *session { return &session{o: Options{HTML: Always}, log: zap.New(core), output: &output{}} }
	own, other := saver(), saver()
	for range 2 {
		if got := own.savePage(filepath.Join(dir, "node-0.json"), report); got != name {
			t.Fatalf("savePage = %q, want %q; log %v", got, name, logged.All())
		}
		if data, err := os.ReadFile(name); err != nil || !bytes.Equal(data, want.Bytes()) {
			t.Errorf("the page differs from WritePage's: %d bytes (read error %v), want %d with the same contents",
				len(data), err, want.Len())
		}
	}
	if got := other.savePage(filepath.Join(dir, "node-0.json"), report); got != "" || logged.Len() != 1 {
		t.Errorf("savePage over another run's page = %q, want \"\" and one line in the log: %v", got, logged.All())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("files %v (%v), want only the page", left, err)
	}
}

// If drawing a picture panics, only the page is missing.
func TestSavePage_PanicLosesOnlyThePage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	core, logged := zaptest.New(zap.WarnLevel)
	s := &session{o: Options{HTML: Always}, log: zap.New(core), output: &output{}}
	report := &reporter.Report{Nodes: map[string]*reporter.Node{"0": nil}}
	if got := s.savePage(filepath.Join(dir, "node-0.json"), report); got != "" {
		t.Errorf("savePage = %q, want no page", got)
	}
	if all := logged.All(); len(all) != 1 || !strings.HasPrefix(all[0].Message, "write page: ") {
		t.Errorf("log %v, want one line that begins with \"write page: \"", all)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files %v (%v), want none", left, err)
	}
}
