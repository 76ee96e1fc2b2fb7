package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

func TestMerge_TwoNodesBecomeOneReport(t *testing.T) {
	out := t.TempDir()
	for _, args := range [][]string{{"0", "sleep 0.06; exit 0"}, {"1", "exit 4"}, {"1", "exit 0"}} {
		call("run", "--out", out, "--run-id", "r", "--node", args[0], "--", "sh", "-c", args[1])
	}
	dir := filepath.Join(out, "r")
	for _, c := range []struct {
		args  string
		words []string // of an error
	}{
		{"node-0.json node-1.json --to both.json", nil},
		{"node-0.json node-1.json --to both.json", []string{"both.json", "--force"}},
		{"--force node-1.json node-0.json node-1.json --to both.json", nil},
		{"node-1.json node-1.2.json --to bad.json", []string{"node-1.json", "node-1.2.json"}},
		{"both.json node-0.json --to again.json", nil},
	} {
		o := insideIn(t, dir, append([]string{"merge"}, strings.Fields(c.args)...)...)
		if o.Want(t, min(1, len(c.words))); len(c.words) > 0 {
			o.WantLine(t, c.words...)
		}
	}
	if clitest.Exists(filepath.Join(dir, "bad.json")) {
		t.Error("bad.json was written, want no file after an error")
	}
	r := reportertest.ReadFile(t, filepath.Join(dir, "both.json"))
	zero, one := reportertest.ReadFile(t, filepath.Join(dir, "node-0.json")), reportertest.ReadFile(t, filepath.Join(dir, "node-1.json"))
	if len(r.Nodes) != 2 || *r.Run.ExitCode != 4 || !r.Run.Start.Equal(zero.Run.Start.Time) || !r.Run.End.Equal(one.Run.End.Time) {
		t.Errorf("run %+v of %d nodes, want 2 nodes, exit code 4, from the first start to the last end", r.Run, len(r.Nodes))
	}
	if clitest.Read(t, filepath.Join(dir, "again.json")) != clitest.Read(t, filepath.Join(dir, "both.json")) {
		t.Error("merging a node again changed the report")
	}
	text := call("show", "--json", filepath.Join(dir, "both.json")).Out
	var nodes map[string]map[string]float64
	if err := json.Unmarshal([]byte(text), &nodes); err != nil || len(nodes) != 2 ||
		nodes["1"]["wall_seconds"] != one.Run.WallSeconds || nodes["0"]["wall_seconds"] != zero.Run.WallSeconds {
		t.Errorf("show --json: error %v, output %s; want wall times of %v and %v s", err, text, zero.Run.WallSeconds, one.Run.WallSeconds)
	}
	if shown := call("show", filepath.Join(dir, "both.json")).Out; !strings.Contains(shown, "2 nodes") {
		t.Errorf("show of the merged report lacks \"2 nodes\": %s", shown)
	}
}
