//go:build e2e

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// If the perfagents of some ranks are killed at random times, the others keep the exit codes of their jobs, and each
// rank's recording exists exactly once. Any perfagent may be killed, even the one that measures the host, and the last
// one while it combines the node.
func TestE2E_Ranks_RandomKillsLoseNoOtherRank(t *testing.T) {
	t.Parallel()
	const ranks, kills, each = 8, 100, 4 // at least kills in all steps, at most each in one step
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))

	var all killFigures
	for ; all.killed < kills && !t.Failed(); all.steps++ {
		killRanks(newStep(t, ranks), r, each, &all)
	}
	t.Logf("of %d ranks, %d were killed while running; %d have a report, %d a journal, %d no file; %d of %d nodes were combined",
		ranks*all.steps, all.killed, all.reports, all.journals, all.nothing, all.closed, all.steps)
}

// killFigures counts the outcomes of ranks.
type killFigures struct{ steps, killed, reports, journals, nothing, closed int }

// killRanks runs a step and kills some perfagents at random moments.
func killRanks(s *step, r *rand.Rand, kills int, f *killFigures) {
	s.t.Helper()
	cmds, tenths := make([]*exec.Cmd, s.ranks), make([]int, s.ranks) // duration of each job in tenths of a second
	for rank := range cmds {
		tenths[rank] = r.IntN(4)
		cmds[rank] = s.command(rank, "--interval", "20ms", "--no-page", "--summary", "never", "--",
			"sh", "-c", fmt.Sprintf("sleep 0.%d; exit %d", tenths[rank], rank))
		check.Must(s.t, cmds[rank].Start())
	}

	killed := make(map[int]bool)
	var all sync.WaitGroup
	for _, rank := range r.Perm(s.ranks)[:kills] {
		killed[rank] = true
		after := time.Duration(r.IntN(100*tenths[rank]+100)) * time.Millisecond
		all.Go(func() {
			time.Sleep(after)
			_ = cmds[rank].Process.Signal(syscall.SIGKILL) // the process may have ended
		})
	}
	for rank, cmd := range cmds {
		clitest.Wait(s.t, cmd)
		if code := cmd.ProcessState.ExitCode(); code != rank && !(killed[rank] && code == -1) {
			s.t.Errorf("rank %d: exit code %d, want %[1]d, or -1 if killed", rank, code)
		}
		if cmd.ProcessState.ExitCode() == rank {
			delete(killed, rank)
		}
	}
	all.Wait()

	f.killed += len(killed)
	s.expectRanks(killed, f)
}

// expectRanks checks that each rank is in the run once. A rank that was killed before it created a file may be missing.
func (s *step) expectRanks(killed map[int]bool, f *killFigures) {
	s.t.Helper()
	found, err := catalog.Find(filepath.Dir(s.out), s.id)
	check.Must(s.t, err)
	seen := make(map[string]int)
	for _, path := range found.Paths() {
		r, err := reportfile.Read(path, 0)
		if err != nil {
			if st, statErr := os.Stat(path); statErr == nil && st.Size() == 0 { // killed before it wrote the first line
				continue
			}
			s.t.Fatal(err)
		}
		n := r.Nodes["0"]
		for rank := range n.Ranks {
			seen[rank]++
		}
		if filepath.Ext(path) == ".jsonl" {
			f.journals++
		} else {
			f.reports += len(n.Ranks)
		}
		if len(n.Ranks) == s.ranks {
			f.closed++
		}
	}
	for rank := range s.ranks {
		n := seen[fmt.Sprint(rank)]
		if n > 1 || n == 0 && !killed[rank] {
			s.t.Errorf("rank %d is in %d files (killed: %v), want exactly 1: %s",
				rank, n, killed, strings.Join(found.Paths(), " "))
		}
		if n == 0 {
			f.nothing++
		}
	}
}

// When the last rank is killed at any moment while it combines the node, no rank is lost or duplicated.
func TestE2E_Ranks_KillWhileCombiningLosesNoRank(t *testing.T) {
	t.Parallel()
	const ranks, tries = 8, 40
	var f killFigures
	for try := range tries {
		s := newStep(t, ranks)
		var last rankProcess
		for rank := range ranks {
			if p := s.launch(rank, "exit 0"); rank < ranks-1 {
				p.finish().Want(t, 0)
			} else {
				last = p
			}
		}
		last.release()
		time.Sleep(time.Duration(try) * time.Millisecond)
		last.Signal(syscall.SIGKILL)
		last.End()
		s.expectRanks(map[int]bool{}, &f)
	}
	t.Logf("%d of %d nodes were combined before the kill; %d ranks have a report, %d a journal", f.closed, tries, f.reports, f.journals)
}

// 256 concurrent ranks become one node.
func TestE2E_Ranks_256RanksBecomeOneNode(t *testing.T) {
	t.Parallel()
	s := newStep(t, 256)
	var cmds []*exec.Cmd
	for rank := range s.ranks {
		cmd := s.command(rank, "--no-page", "--summary", "never", "--", "true")
		check.Must(t, cmd.Start())
		cmds = append(cmds, cmd)
	}
	for rank, cmd := range cmds {
		clitest.Wait(t, cmd)
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("rank %d: exit code %d, want 0", rank, code)
		}
	}

	s.expect("node-0.json")
	if _, n := s.node(); len(n.Ranks) != s.ranks {
		t.Errorf("the node has %d ranks, want %d", len(n.Ranks), s.ranks)
	}
}
