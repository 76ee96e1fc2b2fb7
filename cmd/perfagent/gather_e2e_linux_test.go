//go:build e2e

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
)

// merge waits for late nodes until the number of nodes in the reports or in --nodes is reached, but no longer than
// --wait.
func TestE2E_Merge_WaitsForNodesUpToLimit(t *testing.T) {
	t.Parallel()
	for kind, address := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			begin := func(name, flags string) *clitest.Process {
				script := fmt.Sprintf(`exec "$P" merge '%s#job' --to '%s/%s' --no-page %s 2>&1`, address, dir, name, flags)
				return clitest.StartProcess(t, clitest.Script(t, "sh", script))
			}
			heard := func(p *clitest.Process, words string) {
				for !strings.Contains(p.Next(), words) {
				}
			}
			first, second := begin("a.json", "--wait 10m"), begin("b.json", "--wait 10m --nodes 3")
			heard(first, "0 of ? nodes of job are there; waiting for up to 10m0s")
			heard(second, "0 of 3 nodes of job are there")
			put(t, address, "job/node-0", 0, 2)
			put(t, address, "job/node-1.partial", 1, 2)
			heard(first, "1 of 2 nodes of job are there")
			put(t, address, "job/node-1", 1, 2)
			if o, _ := first.End(); o.Code != 0 {
				t.Errorf("merge that waits for the reported nodes: exit code %d, want 0: %s", o.Code, o.Out)
			}
			put(t, address, "job/node-2", 2, 2)
			if o, _ := second.End(); o.Code != 0 {
				t.Errorf("merge that waits for --nodes: exit code %d, want 0: %s", o.Code, o.Out)
			}
			if g := readReport(t, filepath.Join(dir, "b.json")).Run.Gather; g.NodesFound != 3 || g.WaitedSeconds <= 0 {
				t.Errorf("gathered %+v, want 3 nodes after a wait", g)
			}

			begun := time.Now()
			o := mustRun(t, 1, "merge", address+"#job", "--to", dir+"/c.json", "--no-page", "--nodes", "4", "--wait", "1s")
			says(t, o, "1 of 4 nodes missing: 3 (no object job/node-3 in ")
			if took := time.Since(begun); took < time.Second {
				t.Errorf("merge --wait ended after %v, want at least 1s", took)
			}
			o = mustRun(t, 1, "merge", address+"#none", "--to", dir+"/d.json", "--wait", "100ms")
			if !strings.Contains(o.Err, "no run none in "+address) || clitest.Exists(dir+"/d.json") {
				t.Errorf("stderr %s, want \"no run none in\" and no report written", o.Err)
			}
		})
	}
}
