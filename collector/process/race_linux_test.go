package process

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/testenv"
)

// Swap and huge pages are part of Memory; shared huge pages count once.
func TestTree_MemoryIncludesSwapAndHugePages(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 1000, rollup: "Swap: 900 kB\nSwapPss: 300 kB\nPrivate_Hugetlb: 2048 kB\nShared_Hugetlb: 4096 kB\n"})
	p.put(treeLine{pid: 201, parent: 100, start: 60, pssKB: 1000, rollup: "SwapPss: 100 kB\nPrivate_Hugetlb: 0 kB\nShared_Hugetlb: 4096 kB\n"})
	p.put(treeLine{pid: 202, parent: 100, start: 60, pages: 10})
	p.file(202, "status", "Name:\tx\nVmRSS:\t40 kB\nRssShmem:\t0 kB\nVmSwap:\t50 kB\nHugetlbPages:\t2048 kB\n")
	p.write(filepath.Join(p.dir, "202", "smaps_rollup"), "")
	u := treeRead(t, p.tree(nil))
	rss := float64(findProc(p.read().all, 202).rss())
	if want := (2000+400+50+2*2048+4096)*1024.0 + rss; u.Memory != want || u.Swap != 450<<10 {
		t.Errorf("usage %+v, want %v bytes of memory, including 450 KiB of swap", u, want)
	}
}

// read returns a Tree after its first Read.
func (p treeProc) read() *Tree {
	tree := p.tree(nil)
	treeRead(p.tb, tree)
	return tree
}

// Without PSS, swap and huge pages come from the status file.
func TestTree_ReadsSwapWithoutPSS(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, pages: 3 << 20})
	p.file(200, "status", "VmRSS:\t1 kB\nVmSwap:\t2048 kB\nHugetlbPages:\t1024 kB\n")
	tree := p.tree(nil)
	treeRead(t, tree)
	u := treeRead(t, tree)
	if p := tree.jobProcs[0]; u.MemoryKind != "rss" || u.Memory != float64(p.rss()+3072<<10) || u.Swap != 2048<<10 {
		t.Errorf("usage %+v, want the RSS of %d bytes plus 3072 KiB, including 2048 KiB of swap", u, p.rss())
	}
}

// A process of 132 MiB shares all of its memory with workers that end, start, or call exec during the pass that
// measures them. The measured memory is neither lower nor higher, and the next scan repeats the pass.
func TestTree_MemoryIsCorrectDuringForkJoin(t *testing.T) {
	const kib = 132 << 10
	line := func(pid, sharers int) treeLine {
		pss, private := kib/sharers, 0
		if sharers == 1 {
			private = kib
		}
		return treeLine{pid: pid, parent: 100, start: 60, pages: kib / 4, pssKB: pss, rollup: fmt.Sprintf(
			"Pss_Anon: %d kB\nPss_Shmem: 0 kB\nPrivate_Dirty: %d kB\nAnonymous: %d kB\n", pss, private, kib)}
	}
	small := func(pid int) treeLine { return treeLine{pid: pid, parent: 100, start: 60, pages: 100, pssKB: 40} }
	const main = 300
	for name, c := range map[string]struct {
		workers []int                        // IDs; workers with an ID below main's are measured before it
		sharers int                          // number of processes that share the memory when the pass begins
		at      int                          // number of processes that are measured before the change
		then    func(p treeProc, tree *Tree) // makes the change
	}{
		"workers end before they are measured": {[]int{301, 302}, 3, 1, func(p treeProc, _ *Tree) { p.end(301); p.end(302) }},
		"workers end after they are measured":  {[]int{201, 202}, 3, 2, func(p treeProc, _ *Tree) { p.end(201); p.end(202); p.put(line(main, 1)) }},
		"one of two workers ends":              {[]int{201, 302}, 3, 1, func(p treeProc, _ *Tree) { p.end(201); p.put(line(main, 2)); p.put(line(302, 2)) }},
		"workers execute a small program":      {[]int{201, 202}, 3, 3, func(p treeProc, _ *Tree) { p.put(small(201)); p.put(small(202)); p.put(line(main, 1)) }},
		"workers start":                        {nil, 3, 1, func(_ treeProc, tree *Tree) { tree.newestPID = -1 }}, // it is no longer the newest ID
	} {
		t.Run(name, func(t *testing.T) {
			p := treeFixture(t)
			for _, pid := range append(c.workers, main) {
				p.put(line(pid, c.sharers))
			}
			tree := p.tree(nil)
			clock, looks := &treeClock{look: 10 * time.Millisecond}, 0
			tree.clock = func() clockReading {
				if looks++; looks == 3+c.at { // Read and readMemory read the clock first, then each measured process does
					c.then(p, tree)
				}
				return clock.now()
			}
			if u := treeRead(t, tree); u.Memory != kib<<10 || u.MemoryKind != "pss" {
				t.Errorf("memory %.1f MiB of kind %q, want 132.0 MiB of kind pss", u.Memory/(1<<20), u.MemoryKind)
			}

			for _, pid := range c.workers {
				p.remove(filepath.Join(p.dir, strconv.Itoa(pid)))
			}
			p.put(line(main, 1))
			clock.at.mono += time.Second // less than the pause of at least 2 s that the cost of the pass requires
			if u := treeRead(t, tree); !u.MemoryFresh || u.Memory != kib<<10 {
				t.Errorf("usage in the scan after a race %+v, want %v KiB, measured again", u, kib)
			}
		})
	}
}

// A process of 120 MiB forks short-lived workers fifty times. The measured memory is never less than the memory of the
// process, and never more than its memory plus the memory of the workers.
func TestTree_MemoryIsCorrectDuringFiftyForkJoins(t *testing.T) {
	python := treePython(t)
	j := treeStart(t, exec.Command(python, "-c", `
import os, sys
block = bytearray(120 << 20)
for i in range(0, len(block), 4096): block[i] = 1
print("ready", flush=True)
for _ in range(50):
    workers = []
    for _ in range(3):
        worker = os.fork()
        if worker == 0:
            os._exit(0)
        workers.append(worker)
    for worker in workers:
        os.waitpid(worker, 0)
print("done", flush=True)
sys.stdin.read()
`))
	j.ready(t)
	done := make(chan string, 1)
	go func() { done <- j.line(t) }()
	passes, least, most := 0, 1e9, 0.0
	for over := false; !over; {
		tree := treeOwn(t) // a new Tree does not defer its first measurement
		for range 3 {
			u := treeRead(t, tree)
			if u.MemoryFresh {
				passes++
			}
			least, most = min(least, u.Memory/(1<<20)), max(most, u.Memory/(1<<20))
		}
		tree.Close()
		select {
		case got := <-done:
			if over = true; got != "done" {
				t.Fatalf("the job printed %q, want done", got)
			}
		default:
		}
	}
	t.Logf("memory in %d passes: %.1f to %.1f MiB", passes, least, most)
	if least < 118 || most > 150 {
		t.Errorf("memory = %.1f to %.1f MiB, want 118 to 150", least, most)
	}
}

// The growth of a process without its first thread is noticed.
func TestTree_NoticesGrowthWithoutFirstThread(t *testing.T) {
	testenv.SkipIfShort(t, "half a second")
	tree := treeOwn(t)
	j := treeStart(t, treeSelf("leaderless 32"))
	j.line(t)
	before := treeRead(t, tree)
	if _, err := j.input.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	j.line(t)
	if u := treeRead(t, tree); !u.MemoryFresh || u.Memory < before.Memory+60<<20 || tree.jobProcs[0].rss() < 90<<20 {
		t.Errorf("usage after growth by 64 MiB %+v, want 60 MiB more than %+v", u, before)
	}
}
