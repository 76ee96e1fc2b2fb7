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
func TestPage_IsSaved(t *testing.T) {
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
			t.Fatalf("the page is %q: %v", got, logged.All())
		}
		if data, err := os.ReadFile(name); err != nil || !bytes.Equal(data, want.Bytes()) {
			t.Errorf("%d bytes (%v), want %d", len(data), err, want.Len())
		}
	}
	if got := other.savePage(filepath.Join(dir, "node-0.json"), report); got != "" || logged.Len() != 1 {
		t.Errorf("another's page was replaced by %q: %v", got, logged.All())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("there are %v (%v)", left, err)
	}
}

// A panic in a picture costs only the page.
func TestPage_Panics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	core, logged := zaptest.New(zap.WarnLevel)
	s := &session{o: Options{HTML: Always}, log: zap.New(core), output: &output{}}
	report := &reporter.Report{Nodes: map[string]*reporter.Node{"0": nil}}
	if got := s.savePage(filepath.Join(dir, "node-0.json"), report); got != "" {
		t.Errorf("there is a page %s", got)
	}
	if all := logged.All(); len(all) != 1 || !strings.HasPrefix(all[0].Message, "write page: ") {
		t.Errorf("it says %v", all)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("there are %v (%v)", left, err)
	}
}
