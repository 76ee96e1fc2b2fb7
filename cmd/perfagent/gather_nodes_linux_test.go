package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/storetest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// onNode returns a perfagent run command on a simulated machine, with its own host name and /dev/shm.
func onNode(t *testing.T, node int, dir string, args ...string) *exec.Cmd {
	t.Helper()
	testenv.NeedsRoot(t, "to simulate machines with namespaces")
	unshare := testenv.NeedsTool(t, "unshare", "apt-get install util-linux")
	script := fmt.Sprintf(`hostname node%d && mount -t tmpfs tmpfs /dev/shm && cd '%s' && exec "$P" run --run-id job-7 --node %d "$@"`, node, dir, node)
	return clitest.Script(t, unshare, "--mount", append([]string{"--uts", "sh", "-c", script, "sh"}, args...)...)
}

// Four nodes share only the store. One dies during the run, and one is late. merge writes one page from three final
// reports and a partial one, which it names, and --evict empties the store.
func TestMerge_FourNodesThatShareOnlyAStoreGiveOnePage(t *testing.T) {
	t.Parallel()
	for kind, address := range stores(t) {
		if kind == "ProxyStore" { // it has no partial reports
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			node := func(i int, more ...string) *exec.Cmd {
				args := []string{"--out", fmt.Sprint("out", i), "--store", address, "--store-every", "10s"}
				return onNode(t, i, dir, append(args, more...)...)
			}
			job := []string{"--", "sh", "-c", "echo pid $$; until [ -e done ]; do sleep 0.1; done"}
			var nodes []*clitest.Process
			for i := range 3 {
				nodes = append(nodes, clitest.StartProcess(t, node(i, job...)))
			}
			pids := []int{nodes[0].PID("pid"), nodes[1].PID("pid"), nodes[2].PID("pid")}
			clitest.WaitUntil(t, "node 1 has a partial report", func() bool { return slices.Contains(names(t, address), "job-7/node-1.partial") })
			nodes[1].Signal(syscall.SIGKILL)
			check.Must(t, syscall.Kill(pids[1], syscall.SIGKILL))
			nodes[1].End()
			clitest.Write(t, filepath.Join(dir, "done"), "", 0o600)
			mustEnd(nodes[0], 0)
			mustEnd(nodes[2], 0)

			script := fmt.Sprintf(`exec "$P" merge '%s#job-7' --nodes 3 --wait 10m --to three.json 2>&1`, address)
			cmd := clitest.Script(t, "sh", script)
			cmd.Dir = dir
			waiting := clitest.StartProcess(t, cmd)
			for !strings.Contains(waiting.Next(), "2 of 3 nodes of job-7 are there") {
			}
			clitest.RunCommand(t, node(3, "--", "true")).Want(t, 0)
			if o, _ := waiting.End(); o.Code != 0 {
				t.Errorf("merge --wait: exit code %d, want 0: %s", o.Code, o.Out)
			}

			cmd = clitest.Perfagent(t, "merge", address+"#job-7", "--nodes", "4", "--evict", "--to", "job.json")
			cmd.Dir = dir
			o := mustExit(t, 0, cmd)
			says(t, o, address+"#job-7/node-1.partial is from before the node's end")
			r := readReport(t, filepath.Join(dir, "job.json"))
			if g := r.Run.Gather; g.NodesFound != 3 || !slices.Equal(g.Partial, []int{1}) || len(g.Missing) != 0 || len(r.Nodes) != 4 {
				t.Errorf("gathered %+v, %d nodes; want 3 final nodes, node 1 partial, none missing, 4 nodes", g, len(r.Nodes))
			}
			for name, n := range r.Nodes {
				if host, all := n.Host.Hostname, n.Sampling.Samples; host != "node"+name || all == 0 {
					t.Errorf("node %s: host %s with %d samples, want host node%[1]s with at least one", name, host, all)
				}
			}
			if page := clitest.Read(t, filepath.Join(dir, "job.html")); !strings.Contains(page, "node3") || r.Run.Incomplete == "" {
				t.Errorf("incomplete %q, want a reason, and node3 on the page", r.Run.Incomplete)
			}
			if left := names(t, address); len(left) != 0 {
				t.Errorf("objects left in the store %q, want none", left)
			}
		})
	}
}

// A store that is down during the whole run delays no node, and later one command for each node stores its report.
func TestRun_UnavailableStoreDelaysNoNode(t *testing.T) {
	t.Parallel()
	for kind, address := range stores(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			down := "redis://" + storetest.FreeAddress(t)
			var nodes []*clitest.Process
			for i := range 4 {
				cmd := onNode(t, i, dir, "--out", fmt.Sprint("out", i), "--store", down, "--push-timeout", "1s", "--", "sh", "-c", fmt.Sprint("exit ", i))
				nodes = append(nodes, clitest.StartProcess(t, cmd))
			}
			for i, p := range nodes {
				o, _ := p.End()
				o.Want(t, i)
				says(t, o, "store it with: ")
				mustRun(t, 0, "push", "--store", address, filepath.Join(dir, fmt.Sprint("out", i), "job-7"))
			}
			out := filepath.Join(dir, "job.json")
			clitest.Run(t, "merge", address+"#job-7", "--nodes", "4", "--to", out).Want(t, 0)
			if g := readReport(t, out).Run.Gather; g.NodesFound != 4 {
				t.Errorf("gathered %+v, want 4 nodes", g)
			}
		})
	}
}
