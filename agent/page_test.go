package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	zaptest "go.uber.org/zap/zaptest/observer"

	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

// A page is written completely, and replaced only by its writer; another page is kept.
func TestSavePage_ReplacesOnlyItsOwnPage(t *testing.T) {
	t.Parallel()
	report := &reporter.Report{Run: reporter.Run{ID: "r", Command: []string{"a", "<b>"}}, Nodes: map[string]*reporter.Node{"0": {}}}
	var want bytes.Buffer
	if err := plotter.WritePage(&want, report, plotter.PageOptions{}); err != nil {
		t.Fatal(err)
	}

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

// A panic in a picture costs only the page.
func TestSavePage_PanicCostsOnlyThePage(t *testing.T) {
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
