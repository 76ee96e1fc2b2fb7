//go:build e2e

package main

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// One node of a run is shown in full, and each other node in one line.
func TestE2E_Watch_ShowsOneNodeInFullAndOthersInOneLineEach(t *testing.T) {
	t.Parallel()
	first := watched(t, "", "--interval", "50ms", "--run-id", "r", "--node", "0")
	dir := first.Cmd.Dir
	second := watched(t, dir, "--interval", "50ms", "--run-id", "r", "--node", "1")
	ended := watched(t, dir, "--interval", "50ms", "--run-id", "r", "--node", "9")
	ended.ends(0)
	w := watchOn(t, dir, nil, "--refresh", "200ms")
	line := regexp.MustCompile(`^node 1 +[▁▂▃▄▅▆▇█]+ +CPU +<?[0-9]+ %  memory +<?[0-9]+ %$`)
	w.next("two nodes", func(f watchFrame) bool {
		return f.row("r, node 0, running") != "" && line.MatchString(f.row("node 1")) && strings.Contains(f.String(), "1 ended before")
	})
	late := watched(t, dir, "--interval", "50ms", "--run-id", "r", "--node", "2") // joins the run
	w.shows("node 1 ", "node 2 ")
	second.ends(5)
	w.shows("node 1 ", "Failed (exit 5) after ")
	first.ends(0)
	w.shows("r, node 0, Succeeded after ", "node 2 ")

	picked := watchOn(t, dir, nil, "--node", "2", "r")
	picked.shows("r, node 2, ", "q quits")
	late.ends(0)
	if left := w.leaves(0); !strings.HasSuffix(left, "\r\nperfagent: run r: 4 nodes, 1 failed (node 1 exit 5); perfagent show perfagent-out/r/node-1.json\r\n") {
		t.Errorf("left on the screen: %s\nwant at its end 4 nodes, 1 failed, and the command for node 1", left)
	}
	wantContains(t, picked.leaves(0), "run r, node 2: Succeeded after", "perfagent show perfagent-out/r/node-2.json")
}

// All nodes are watched to their ends, even if the terminal has fewer lines than the run has nodes.
func TestE2E_Watch_WatchesMoreNodesThanLines(t *testing.T) {
	t.Parallel()
	nodes := []*watchRun{watched(t, "", "--interval", "50ms", "--run-id", "r", "--node", "0")}
	dir := nodes[0].Cmd.Dir
	w := watchOn(t, dir, nil, "--refresh", "100ms", "r")
	w.shows("q quits")
	w.vt.height = 2
	clitest.Resize(t, w.TTY, 2, 80)
	w.next("two lines", func(f watchFrame) bool { return f.wide == "" && len(f.lines) <= 2 })
	for n := 1; n < 4; n++ {
		nodes = append(nodes, watched(t, dir, "--interval", "50ms", "--run-id", "r", "--node", strconv.Itoa(n)))
	}
	w.shows("nodes      3 more")
	for _, n := range []int{1, 0, 3, 2} {
		nodes[n].ends(n)
		if n == 1 { // makes room for node 2
			w.shows("nodes      2 more, 1 ended before")
		}
	}
	wantContains(t, w.leaves(0), "run r: 4 nodes, 3 failed (node 1 exit 1, node 2 exit 2, node 3 exit 3); ")
}

// If a node has several recordings, watch follows the running one.
func TestE2E_Watch_FollowsRunningRecording(t *testing.T) {
	t.Parallel()
	first := watched(t, "", "--run-id", "r", "--interval", "50ms")
	dir := first.Cmd.Dir
	first.ends(0)
	killed := watched(t, dir, "--run-id", "r", "--interval", "50ms")
	killed.Signal(unix.SIGKILL)
	killed.goOn.Close() // the job is still running
	killed.End()
	again := watched(t, dir, "--run-id", "r", "--interval", "50ms", "--compat", "perf.py")
	w := watchOn(t, dir, nil, "r")
	w.shows("r, running for")
	again.ends(4)
	wantContains(t, w.leaves(0), "perf.py's samples of ", "perfagent show perfagent-out/r/node-0.3.json")
	w = watchOn(t, dir, nil, "r") // the journal of the killed perfagent remains
	w.shows("perfagent has been gone since ")
	w.quit()
}

// Watchers do not affect the job, even if one of them is killed and restarted continuously: the job takes as long as
// without watchers, and its report is complete.
func TestE2E_Watch_DoesNotAffectJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	times, missed := make(map[bool][]time.Duration), make(map[bool][]float64)
	for round := range 3 {
		for _, watchers := range []bool{false, true} {
			id := "r" + strconv.Itoa(round) + strconv.FormatBool(watchers)
			cmd := clitest.Perfagent(t, "run", "--run-id", id, "--interval", "100ms", "--", "sh", "-c", "read x; i=0; while [ $i -lt 250000 ]; do i=$((i+1)); done; exit 6")
			stdin, goOn := clitest.Pipe(t)
			cmd.Dir, cmd.Stdin = dir, stdin
			stop := func() {}
			check.Must(t, cmd.Start())
			if watchers {
				stop = watchAndKill(t, dir, id)
			}
			begin := time.Now()
			goOn.Close()
			clitest.Wait(t, cmd)
			took := time.Since(begin)
			stop()
			times[watchers] = append(times[watchers], took)
			if code := cmd.ProcessState.ExitCode(); code != 6 {
				t.Errorf("exit code %d, want 6", code)
			}
			r := reportertest.ReadFile(t, filepath.Join(dir, "perfagent-out", id, "node-0.json"))
			s := r.Nodes["0"].Sampling
			if s.Samples+s.MissedTicks < int64(r.Run.WallSeconds*10)-1 {
				t.Errorf("watchers %v: %d samples, %d missed in %v s; want 10 ticks a second",
					watchers, s.Samples, s.MissedTicks, r.Run.WallSeconds)
			}
			missed[watchers] = append(missed[watchers], float64(s.MissedTicks)/float64(s.Samples+s.MissedTicks))
		}
	}
	ratio := math.Inf(1) // watchers cost the same in each round, other tests do not
	for round, took := range times[true] {
		ratio = min(ratio, float64(took)/float64(times[false][round]))
	}
	t.Logf("the job took %v without watchers, %v with three of them: ratio %.3f", times[false], times[true], ratio)
	if share := slices.Min(missed[true]); share > 0.5 {
		t.Errorf("with watchers %.0f %% of the ticks were missed, want at most 50 %%", 100*share)
	}
	if ratio > 2 { // other tests run concurrently
		t.Errorf("the job took %.2f times as long with watchers, want at most 2", ratio)
	}
}
