package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		code  int
		words []string
	}{
		{"node-0.json node-1.json --to both.json", 0, nil},
		{"node-0.json node-1.json --to both.json", 1, []string{"both.json", "--force"}},
		{"--force node-1.json node-0.json node-1.json --to both.json", 0, nil},
		{"node-1.json node-1.2.json --to bad.json", 1, []string{"node-1.json", "node-1.2.json"}},
		{"both.json node-0.json --to again.json", 0, nil},
	} {
		o := insideIn(t, dir, append([]string{"merge"}, strings.Fields(c.args)...)...)
		if o.Want(t, c.code); c.code == 0 {
			continue
		}
		o.WantLine(t, c.words...)
	}
	text := call("show", "--json", filepath.Join(dir, "both.json")).Out
	if _, err := os.Stat(filepath.Join(dir, "bad.json")); err == nil {
		t.Error("bad.json was written, want no file after an error")
	}
	r := reportertest.ReadFile(t, filepath.Join(dir, "both.json"))
	zero, one := reportertest.ReadFile(t, filepath.Join(dir, "node-0.json")), reportertest.ReadFile(t, filepath.Join(dir, "node-1.json"))
	if len(r.Nodes) != 2 || *r.Run.ExitCode != 4 || !r.Run.Start.Equal(zero.Run.Start.Time) || !r.Run.End.Equal(one.Run.End.Time) {
		t.Errorf("run %+v of %d nodes, want 2 nodes, exit code 4, from the first start to the last end",
			r.Run, len(r.Nodes))
	}
	again, _ := os.ReadFile(filepath.Join(dir, "again.json"))
	both, _ := os.ReadFile(filepath.Join(dir, "both.json"))
	if string(again) != string(both) {
		t.Error("merging a node again changed the report")
	}
	var nodes map[string]map[string]float64
	if err := json.Unmarshal([]byte(text), &nodes); err != nil || len(nodes) != 2 ||
		nodes["1"]["wall_seconds"] != one.Run.WallSeconds || nodes["0"]["wall_seconds"] != zero.Run.WallSeconds {
		t.Errorf("show --json: error %v, output %s; want wall times of %v and %v s", err, text, zero.Run.WallSeconds, one.Run.WallSeconds)
	}
	if shown := call("show", filepath.Join(dir, "both.json")).Out; !strings.Contains(shown, "2 nodes") {
		t.Errorf("show of the merged report lacks \"2 nodes\": %s", shown)
	}
}
