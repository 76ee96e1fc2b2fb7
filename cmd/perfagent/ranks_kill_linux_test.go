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

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter/catalog"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// Whenever perfagents of ranks are killed, be it the one that measures the host or the last one while it closes the
// node: the exit codes of the others are those of their jobs, no rank's recording is lost, and none is there twice.
func TestRanks_RandomKills(t *testing.T) {
	t.Parallel()
	const ranks, kills, each = 8, 100, 4
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))

	for range kills / each {
		s := newStep(t, ranks)
		killRanks(s, r, each)
	}
}

// killRanks runs a step of which some perfagents are killed at random moments.
func killRanks(s *step, r *rand.Rand, kills int) {
	s.t.Helper()
	cmds := make([]*exec.Cmd, s.ranks)
	for rank := range cmds {
		cmds[rank] = s.command(rank, "--interval", "20ms", "--html", "never", "--summary", "never", "--",
			"sh", "-c", fmt.Sprintf("sleep 0.%d; exit %d", r.IntN(4), rank))
		if err := cmds[rank].Start(); err != nil {
			s.t.Fatal(err)
		}
	}

	killed := make(map[int]bool)
	var all sync.WaitGroup
	for _, rank := range r.Perm(s.ranks)[:kills] {
		killed[rank] = true
		after := time.Duration(r.IntN(500)) * time.Millisecond
		all.Go(func() {
			time.Sleep(after)
			_ = cmds[rank].Process.Signal(syscall.SIGKILL) // it may have ended
		})
	}
	for rank, cmd := range cmds {
		clitest.Wait(s.t, cmd)
		if code := cmd.ProcessState.ExitCode(); code != rank && !(killed[rank] && code == -1) {
			s.t.Errorf("rank %d: exit code %d", rank, code)
		}
		if cmd.ProcessState.ExitCode() == rank {
			delete(killed, rank)
		}
	}
	all.Wait()

	s.expectRanks(killed)
}

// expectRanks fails the test unless each rank is in the run once. One that was killed before it had a file may be
// missing.
func (s *step) expectRanks(killed map[int]bool) {
	s.t.Helper()
	found, err := catalog.Find(filepath.Dir(s.out), s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, path := range found.Paths() {
		r, err := reportfile.Read(path, 0)
		if err != nil {
			if st, statErr := os.Stat(path); statErr == nil && st.Size() == 0 { // killed before the first line
				continue
			}
			s.t.Fatal(err)
		}
		for _, n := range r.Nodes {
			for rank := range n.Ranks {
				seen[rank]++
			}
		}
	}
	for rank := range s.ranks {
		n := seen[fmt.Sprint(rank)]
		if n > 1 || n == 0 && !killed[rank] {
			s.t.Errorf("rank %d is there %d times (killed: %v); %s", rank, n, killed, strings.Join(found.Paths(), " "))
		}
	}
}

// 256 ranks that begin and end at once are one node.
func TestRanks_Many(t *testing.T) {
	t.Parallel()
	s := newStep(t, 256)
	var cmds []*exec.Cmd
	for rank := range s.ranks {
		cmd := s.command(rank, "--html", "never", "--summary", "never", "--", "true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for rank, cmd := range cmds {
		clitest.Wait(t, cmd)
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("rank %d: exit code %d", rank, code)
		}
	}

	s.expect("node-0.json")
	if _, n := s.node(); len(n.Ranks) != s.ranks {
		t.Errorf("%d ranks", len(n.Ranks))
	}
}
