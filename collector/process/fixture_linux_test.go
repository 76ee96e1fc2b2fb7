package process

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/collectortest"
)

// A treeProc is a directory with a procfs that the test writes.
type treeProc struct {
	tb  testing.TB
	dir string
}

// A treeLine describes one process of a treeProc.
type treeLine struct {
	pid, parent   int
	start         uint64
	comm, state   string
	ticks         [4]int
	threads       int
	pages, pssKB  int
	faults        int
	read, written int
	rollup        string // more lines of smaps_rollup
}

func treeFixture(tb testing.TB) treeProc {
	p := treeProc{tb, tb.TempDir()}
	p.put(treeLine{pid: 1, start: 1})
	p.put(treeLine{pid: 100, parent: 1, start: 50, ticks: [4]int{7, 7, 7, 7}, pages: 9, pssKB: 9, read: 9, written: 9})
	return p
}

func (p treeProc) file(pid int, name, data string) {
	p.tb.Helper()
	collectortest.Write(p.tb, filepath.Join(p.dir, fmt.Sprint(pid)), name, []byte(data))
}

// put writes the files of a process.
func (p treeProc) put(l treeLine) {
	p.tb.Helper()
	if l.state == "" {
		l.state = "S"
	}
	p.file(l.pid, "stat", fmt.Sprintf("%d (%s) %s %d 1 1 0 -1 4194304 %d 20 30 40 %d %d %d %d 20 0 %d 0 %d 1000 %d 18446744073709551615 1 1 0\n",
		l.pid, l.comm, l.state, l.parent, l.faults, l.ticks[0], l.ticks[1], l.ticks[2], l.ticks[3], max(l.threads, 1), l.start, l.pages))
	p.file(l.pid, "smaps_rollup", fmt.Sprintf("00400000-7fff0000 ---p 00000000 00:00 0                          [rollup]\nRss:    %8d kB\nPss:    %8d kB\nPss_Dirty:   1 kB\n%s",
		4*l.pages, l.pssKB, l.rollup))
	p.file(l.pid, "io", fmt.Sprintf("rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n", l.read, l.written))
}

// family writes processes given as PID<PARENT@START, such as "200<100@60 300<200@70".
func (p treeProc) family(text string) {
	p.tb.Helper()
	for word := range strings.FieldsSeq(text) {
		var l treeLine
		check.Value(fmt.Sscanf(word, "%d<%d@%d", &l.pid, &l.parent, &l.start))(p.tb)
		p.put(l)
	}
}

// sized returns a child of the root with the given memory.
func sized(pid, pages, pssKB int) treeLine {
	return treeLine{pid: pid, parent: 100, start: 60, pages: pages, pssKB: pssKB}
}

// several writes processes of the job with the IDs from first up to, but not including, end.
func (p treeProc) several(first, end int, l treeLine) {
	for l.pid, l.parent, l.start = first, 100, 60; l.pid < end; l.pid++ {
		p.put(l)
	}
}

// replace writes a new process with the ID of a process that ended.
func (p treeProc) replace(l treeLine) {
	p.tb.Helper()
	dir := filepath.Join(p.dir, fmt.Sprint(l.pid))
	aside := filepath.Join(p.dir, "aside")
	must(p.tb, os.Rename(dir, aside))
	p.put(l)
	p.remove(aside)
}

func (p treeProc) remove(path string) {
	p.tb.Helper()
	must(p.tb, os.RemoveAll(path))
}

func (p treeProc) end(pids ...int) {
	p.tb.Helper()
	for _, pid := range pids {
		p.remove(filepath.Join(p.dir, fmt.Sprint(pid)))
	}
}

// tree returns a Tree with root 100 that never defers a scan.
func (p treeProc) tree(ignore func(int) bool) *Tree {
	t := NewTree(Options{Proc: p.dir, Root: 100, Ignore: ignore})
	treeReadFreely(t)
	p.tb.Cleanup(t.Close)
	return t
}

func treeRead(tb testing.TB, t *Tree) TreeUsage {
	tb.Helper()
	u := check.Value(t.Read())(tb)
	return u
}

// wantMemory reads the tree, and fails the test unless the job has the given memory, measured again or not.
func wantMemory(t *testing.T, tree *Tree, kib float64, fresh bool, what string) TreeUsage {
	t.Helper()
	u := treeRead(t, tree)
	check.True(t, u.Memory == kib*1024 && u.MemoryFresh == fresh, "memory %s = %v KiB, measured again: %v; want %v KiB, %v; usage %+v",
		what, u.Memory/1024, u.MemoryFresh, kib, fresh, u)
	return u
}

// treeWant reads the tree, and ends the test unless the job has exactly the processes in want.
func treeWant(tb testing.TB, t *Tree, want ...int) TreeUsage {
	tb.Helper()
	u := treeRead(tb, t)
	var got []int
	for _, p := range t.jobProcs {
		got = append(got, int(p.pid))
	}
	if !slices.Equal(got, want) {
		tb.Fatalf("processes of the job = %v, want %v", got, want)
	}
	return u
}

func TestTree_SumsProcessesOfJob(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 60, parent: 200, start: 90, comm: "has) R 1 (all\n) S 1", ticks: [4]int{1, 2, 3, 4}, threads: 3, pages: 10, pssKB: 16, read: 100, written: 10}) // IDs have wrapped around, so its parent has a higher one
	p.put(treeLine{pid: 150, parent: 1, start: 60, ticks: [4]int{100, 100, 100, 100}, pages: 1000, read: 1})
	p.put(treeLine{pid: 200, parent: 100, start: 80, comm: "a b", ticks: [4]int{100, 50, 20, 10}, threads: 2, pages: 5, pssKB: 8, read: 1, written: 1000})
	p.put(treeLine{pid: 201, parent: 200, start: 80, state: "Z", comm: "zombie", ticks: [4]int{5, 5, 0, 0}})
	p.put(treeLine{pid: 210, parent: 100, start: 81, comm: "query", ticks: [4]int{1000, 0, 0, 0}})
	p.put(treeLine{pid: 211, parent: 210, start: 82, ticks: [4]int{1000, 0, 0, 0}})
	p.put(treeLine{pid: 220, parent: 200, start: 83, state: "D", pages: 7, pssKB: 1 << 20})
	must(t, os.Mkdir(filepath.Join(p.dir, "99999999999"), 0o755))
	tree := p.tree(func(pid int) bool { return pid == 210 })
	page := float64(os.Getpagesize())
	u := treeWant(t, tree, 60, 200, 201, 220)
	u.Unowned = 0 // depends on the host
	want := TreeUsage{CPUSeconds: 2, Processes: 3, Threads: 6, Memory: 24<<10 + 7*page, MemoryKind: "pss", IO: IO{101, 1010, 12, 16},
		IOFresh: true, MemoryFresh: true, Fresh: true}
	u.MemoryUpToDate, u.MemoryLowerBound = false, 0
	u.Anon, u.File, u.Shmem, u.HugeTLB = 0, 0, 0, 0 // tested in TestTree_DividesMemoryIntoParts
	check.True(t, fmt.Sprint(u) == fmt.Sprint(want), "usage\ngot  %+v\nwant %+v", u, want)
	if first := tree.jobProcs[0]; first.pid != 60 || first.start != 90 || first.rss() != uint64(10*page) {
		t.Errorf("first process %+v, want ID 60, start 90 and 10 pages", first)
	}
}

// Processes of the job and their children remain in the job when they are adopted.
func TestTree_KeepsAdoptedProcesses(t *testing.T) {
	p := treeFixture(t)
	p.family("200<100@60 300<200@70")
	tree := p.tree(nil)
	treeWant(t, tree, 200, 300)
	p.end(200)
	p.family("300<1@70 301<300@71")
	for range 2 * recheck {
		treeWant(t, tree, 300, 301)
	}
}

func TestTree_DropsProcessWithReusedID(t *testing.T) {
	p := treeFixture(t)
	p.family("150<1@55 151<1@55 300<100@70 301<300@71 400<100@70")
	tree := p.tree(nil)
	treeWant(t, tree, 300, 301, 400)
	p.replace(treeLine{pid: 300, parent: 1, start: 90})   // the old process was in the job; its child remains there
	p.replace(treeLine{pid: 150, parent: 100, start: 91}) // the new process is in the job
	treeWant(t, tree, 150, 301, 400)
	p.put(treeLine{pid: 302, parent: 300, start: 89}) // cannot be a child of a younger process
	treeWant(t, tree, 150, 301, 400)
	p.put(treeLine{pid: 400, parent: 1, start: 95}) // reuses the directory, so the inode is unchanged
	treeWant(t, tree, 150, 301)
	p.put(treeLine{pid: 151, parent: 100, start: 95}) // reuses the directory, so the change is noticed only after recheck scans
	for range recheck - 1 {
		treeRead(t, tree)
	}
	treeWant(t, tree, 150, 151, 301)
}

func TestTree_LeavesOutIgnoredProcesses(t *testing.T) {
	p := treeFixture(t)
	p.family("200<100@60 210<100@60 211<210@61 212<211@61")
	which := 0
	tree := p.tree(func(pid int) bool { return pid == which })
	treeWant(t, tree, 200, 210, 211, 212)
	which = 210 // ignored only after it was known as a process of the job
	treeWant(t, tree, 200)
	which = 0 // it has ended, and the root has adopted its children
	p.end(210)
	p.put(treeLine{pid: 211, parent: 100, start: 61})
	treeWant(t, tree, 200)
	p.replace(treeLine{pid: 212, parent: 200, start: 99})
	treeWant(t, tree, 200, 212)
}

// Processes in a cycle of parents, or with a parent that does not exist, are not in the job.
func TestTree_LeavesOutProcessesWithImpossibleParents(t *testing.T) {
	p := treeFixture(t)
	p.family("200<100@60 300<301@60 301<300@60 302<302@60 303<9999@60 304<303@60")
	tree := p.tree(nil)
	treeWant(t, tree, 200)
	p.put(treeLine{pid: 303, parent: 200, start: 60}) // its parent has just ended
	treeWant(t, tree, 200, 303, 304)
}

// Processes change between the list and the reads, and between two reads. Ignore makes the changes, because it is
// called after all processes have been read once.
func TestTree_ToleratesChangesDuringScan(t *testing.T) {
	p := treeFixture(t)
	second := [4]int{100, 0, 0, 0}
	p.put(treeLine{pid: 10, parent: 100, start: 60})
	p.put(treeLine{pid: 20, parent: 300, start: 70, ticks: second}) // is read before its parent, which has a higher ID
	p.put(treeLine{pid: 21, parent: 20, start: 71, ticks: second})
	p.put(treeLine{pid: 30, parent: 300, start: 70, ticks: second})
	p.put(treeLine{pid: 40, parent: 250, start: 70, ticks: second}) // its parent is not listed
	p.put(treeLine{pid: 50, parent: 260, start: 70, ticks: second}) // its parent ends
	p.put(treeLine{pid: 60, parent: 270, start: 70, ticks: second}) // its parent's ID now belongs to another process
	p.put(treeLine{pid: 270, parent: 1, start: 99})
	p.put(treeLine{pid: 300, parent: 100, start: 60, ticks: second})
	done := false
	tree := p.tree(func(int) bool {
		if !done {
			done = true
			p.end(20) // its parent waited for it
			p.put(treeLine{pid: 300, parent: 100, start: 60, ticks: [4]int{100, 0, 100, 0}})
			p.put(treeLine{pid: 21, parent: 100, start: 71, ticks: second})
			p.put(treeLine{pid: 250, parent: 10, start: 65})
			p.put(treeLine{pid: 50, parent: 100, start: 70, ticks: second})
			p.put(treeLine{pid: 60, parent: 100, start: 70, ticks: second})
		}
		return false
	})

	u := treeWant(t, tree, 10, 21, 30, 40, 50, 60, 250, 300)
	check.True(t, u.CPUSeconds == 6, "CPU time in the scan during which a process was waited for = %v s, want 6", u.CPUSeconds)
	u = treeWant(t, tree, 10, 21, 30, 40, 50, 60, 250, 300)
	check.True(t, u.CPUSeconds == 7, "CPU time in the scan after a process was waited for = %v s, want 7", u.CPUSeconds)
}

func TestTree_FailsWithoutRoot(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, ticks: [4]int{100, 0, 0, 0}})
	tree := p.tree(nil)
	treeWant(t, tree, 200)
	fails := func(want string) {
		t.Helper()
		u, err := tree.Read()
		check.True(t, err != nil && strings.Contains(err.Error(), want) && math.IsNaN(u.CPUSeconds) && math.IsNaN(u.Memory) && !u.Fresh,
			"usage %+v, error %v; want unknown usage and an error with %q", u, err, want)
	}

	p.put(treeLine{pid: 100, parent: 1, start: 99})
	p.replace(treeLine{pid: 100, parent: 1, start: 99})
	fails("another process has its ID")
	p.file(100, "stat", "nonsense")
	p.replace(treeLine{pid: 100, parent: 1, start: 50})
	treeWant(t, tree, 200)
	p.end(100)
	fails("no such process")
	p.remove(p.dir)
	fails("no such file or directory")
	if tree.Close(); tree.held != 0 {
		t.Errorf("%d stat files are open after Close, want 0", tree.held)
	}
}

// treeDamages are ways to damage a kernel file.
var treeDamages = map[string]func(treeProc, string){
	"empty": func(p treeProc, path string) { p.write(path, "") },
	"short": func(p treeProc, path string) { p.write(path, "200 (x") },
	"nonsense": func(p treeProc, path string) {
		p.write(path, "200 (x) S x -1 \x00\xff Pss: -5 kB\nPss: x\nread_bytes: 1e9\n")
	},
	"huge":      func(p treeProc, path string) { p.write(path, strings.Repeat("Pss: 1 kB\n", 1e6)) },
	"overflow":  func(p treeProc, path string) { p.write(path, "200 (x) S"+strings.Repeat(" 99999999999999999999", 50)) },
	"directory": func(p treeProc, path string) { must(p.tb, os.Mkdir(path, 0o755)) },
	"fifo":      func(p treeProc, path string) { must(p.tb, unix.Mkfifo(path, 0o644)) },
	"missing":   func(treeProc, string) {},
}

func (p treeProc) write(path, data string) { must(p.tb, os.WriteFile(path, []byte(data), 0o644)) }

// must ends a test on an error. same compares two values.
var must, same = check.Must, collectortest.Same

func TestTree_DamagedFileAffectsOnlyItsNumbers(t *testing.T) {
	for _, file := range []string{"stat", "io", "smaps_rollup"} {
		for name, damage := range treeDamages {
			t.Run(file+"/"+name, func(t *testing.T) { treeDamaged(t, file, name == "missing", damage) })
		}
	}
}

func treeDamaged(t *testing.T, file string, missing bool, damage func(treeProc, string)) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, ticks: [4]int{100, 0, 0, 0}, pages: 3, pssKB: 8, read: 5, written: 6})
	p.put(treeLine{pid: 201, parent: 100, start: 60, ticks: [4]int{100, 0, 0, 0}, pages: 5, pssKB: 4, read: 1, written: 1})
	known := p.tree(nil)
	treeWant(t, known, 200, 201)
	path := filepath.Join(p.dir, "200", file)
	p.remove(path)
	damage(p, path)
	for what, tree := range map[string]*Tree{"known process": known, "new process": p.tree(nil)} {
		known := what == "known process"
		tree.measured = -maxInterval // so that memory is measured again
		u := treeRead(t, tree)
		want := TreeUsage{CPUSeconds: 2, Processes: 2, Threads: 2, Memory: 12 << 10, MemoryKind: "pss", IO: IO{6, 7, 6, 8}}
		failed := map[string]string{"stat": "stat", "io": "io", "smaps_rollup": "memory"}[file]
		switch {
		case file == "stat" && (missing || !known):
			want = TreeUsage{CPUSeconds: 1, Processes: 1, Threads: 1, Memory: 4 << 10, MemoryKind: "pss", IO: IO{1, 1, 3, 4}}
			if missing {
				failed = ""
			}
		case file == "io":
			want.IO = IO{1, 1, 3, 4}
		case file == "smaps_rollup" && missing: // as if the process had released its memory
			want.Memory, failed = 4<<10, ""
		case file == "smaps_rollup":
			want.Memory, want.MemoryKind = float64(4<<10+3*os.Getpagesize()), "rss"
		}
		want.IOFresh, want.MemoryFresh, want.Fresh = true, true, true
		got := u
		got.Anon, got.File, got.Shmem, got.HugeTLB = 0, 0, 0, 0                              // tested in TestTree_DividesMemoryIntoParts
		got.Failed, got.MemoryUpToDate, got.MemoryLowerBound, got.Unowned = nil, false, 0, 0 // tested in TestTree_LowerBoundCountsSharedPagesOnce; Unowned depends on the host
		check.True(t, fmt.Sprint(got) == fmt.Sprint(want), "%s: usage\ngot  %+v\nwant %+v", what, got, want)
		check.True(t, (failed != "" || u.Failed == nil) && (failed == "" || len(u.Failed) == 1 && u.Failed[failed] != nil),
			"%s: failures %v, want only a failure of %q", what, u.Failed, failed)
		if err := u.Failed[failed]; err != nil && (!strings.Contains(err.Error(), "1 of ") || !strings.Contains(err.Error(), path+": ")) {
			t.Errorf("%s: failure %q, want it to count 1 process and to name %s", what, err, path)
		}
	}
}

// If no process has a file, the kernel does not provide it.
func TestTree_CountsRSSWithoutRollup(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, pages: 3})
	for _, file := range []string{"100/smaps_rollup", "100/io", "200/smaps_rollup", "200/io"} {
		p.remove(filepath.Join(p.dir, file))
	}
	u := treeWant(t, p.tree(nil), 200)
	check.True(t, u.Memory == float64(3*os.Getpagesize()) && u.MemoryKind == "rss" && math.IsNaN(u.ReadBytes) && math.IsNaN(u.WriteBytes) &&
		u.Failed["memory"] != nil && errors.Is(u.Failed["io"], unix.ENOENT) && !u.IOFresh,
		"usage %+v, want an RSS of 3 pages, unknown I/O, and failures of memory and io", u)
}

func TestTree_KeepsLastMemoryWithoutProcesses(t *testing.T) {
	p := treeFixture(t)
	tree := p.tree(nil)
	u := treeWant(t, tree)
	check.True(t, u.CPUSeconds == 0 && u.Processes == 0 && math.IsNaN(u.Memory) && u.MemoryKind == "" && u.ReadBytes == 0 && u.Failed == nil,
		"usage of a job that never had a process %+v, want zeros, unknown memory and no failure", u)
	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 8})
	treeWant(t, tree, 200)
	p.end(200)
	u = treeWant(t, tree)
	check.True(t, u.Memory == 8<<10 && !u.MemoryFresh && u.Processes == 0,
		"usage after the end of the last process %+v, want its last memory, not fresh", u)
}

// A treeClock is advanced by the test. Each call of now takes the CPU time look.
type treeClock struct {
	at   clockReading
	look time.Duration
	tree *Tree
}

func (c *treeClock) now() clockReading {
	c.at.cpu += c.look
	return c.at
}

// after advances the clock, and returns its tree.
func (c *treeClock) after(d time.Duration) *Tree {
	c.at.mono += d
	return c.tree
}

// timed returns a Tree with root 100 and its clock; each reading of the clock takes the CPU time look.
func (p treeProc) timed(look time.Duration) (*Tree, *treeClock) {
	tree := p.tree(nil)
	clock := &treeClock{clockReading{mono: time.Hour}, look, tree}
	tree.clock = clock.now
	return tree, clock
}

func TestTree_DefersExpensiveScans(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 8})
	tree, c := p.timed(15 * time.Millisecond)
	treeWant(t, tree, 200) // the first scan does not defer the second
	u := wantMemory(t, tree, 8, false, "in the second scan")
	check.True(t, !u.Skipped && u.Fresh && !u.IOFresh, "second scan: usage %+v, want a fresh scan with the I/O of the first", u)
	p.put(treeLine{pid: 200, parent: 100, start: 60, ticks: [4]int{100, 0, 0, 0}, pages: 9, pssKB: 9, read: 7})
	u = wantMemory(t, c.after(749*time.Millisecond), 8, false, "749 ms after a scan of 15 ms")
	check.True(t, u.Skipped && !u.Fresh && u.CPUSeconds == 0 && u.Processes == 1, "usage %+v, want a skipped scan", u)
	u = treeRead(t, c.after(time.Millisecond))
	check.True(t, !u.Skipped && u.Fresh && u.CPUSeconds == 1 && !u.MemoryFresh && !u.IOFresh,
		"750 ms after a scan of 15 ms: usage %+v, want a fresh scan without memory and I/O", u)
	u = wantMemory(t, c.after(4250*time.Millisecond), 9, true, "5 s after the first scan")
	check.True(t, u.IOFresh && u.ReadBytes == 7, "5 s after the first scan: usage %+v, want fresh I/O", u)
}

// A pass over PSS that has taken 50 ms leaves the remaining processes to the next pass. They are assumed to share as
// much memory as the others, and come first in the next pass.
func TestTree_MeasuresPSSInParts(t *testing.T) {
	p := treeFixture(t)
	p.several(200, 205, treeLine{pages: 1000, pssKB: 400})
	p.put(sized(204, 500, 900))
	tree, c := p.timed(15 * time.Millisecond)
	u := wantMemory(t, tree, 4*400+200, true, "after the first pass")
	wantFailed(t, u, "pss", "50 ms were not enough for 1 of 5 processes")
	for pid := 200; pid < 204; pid++ { // without page faults, so the change is not noticed
		p.put(sized(pid, 1000, 500))
	}
	wantFailed(t, wantMemory(t, c.after(maxInterval), 900+4*400, true, "after the second pass"), "pss", "")
	wantMemory(t, c.after(maxIdleScanInterval-time.Second), 900+4*400, false, "before a minute has passed")
	wantMemory(t, c.after(time.Second), 900+4*500, true, "after a minute")
}

// wantFailed fails the test unless the memory is of the given kind, and could not be measured for the given reason.
func wantFailed(t *testing.T, u TreeUsage, kind, why string) {
	t.Helper()
	err := fmt.Sprint(u.Failed["memory"])
	check.True(t, u.MemoryKind == kind && strings.Contains(err, why) && (why == "") == (u.Failed["memory"] == nil),
		"memory of kind %s, failure %s; want kind %s, failure %q", u.MemoryKind, err, kind, why)
}

// The second pass of a round measures the remaining processes, and rereads those that have changed or could not be
// measured exactly.
func TestTree_RemeasuresChangedProcessesInEachPass(t *testing.T) {
	grown, sleeping := sized(201, 100, 400), sized(201, 100, 0)
	grown.faults, sleeping.state = 99, "D"
	for name, c := range map[string]struct {
		first, then  treeLine
		before, want float64 // KiB
	}{
		"grows":               {sized(201, 1, 4), grown, 24, 420},
		"shrinks":             {sized(201, 100, 400), sized(201, 1, 4), 420, 24},
		"slept in the kernel": {sleeping, sized(201, 100, 40), 420, 60},
		"is unchanged":        {sized(201, 1, 4), sized(201, 1, 4), 24, 24},
	} {
		p := treeFixture(t)
		p.several(200, 206, treeLine{pages: 1, pssKB: 4})
		p.put(c.first)
		tree, clock := p.timed(15 * time.Millisecond)
		wantMemory(t, tree, c.before, true, "of a process that "+name+", after the first pass")
		p.put(c.then)
		u := wantMemory(t, clock.after(maxInterval), c.want, true, "of a process that "+name+", after the second pass")
		wantFailed(t, u, "pss", "")
	}
}

// If processes end during a round, the next round follows without a pause, because the remaining processes may have
// shared pages with them.
func TestTree_StartsNewRoundAfterProcessesEnded(t *testing.T) {
	p := treeFixture(t)
	p.several(200, 205, treeLine{pages: 1000, pssKB: 400})
	tree, clock := p.timed(15 * time.Millisecond)
	treeRead(t, tree) // measures 200 to 203
	p.end(201, 202, 203, 204)
	p.put(sized(200, 1000, 2000))
	treeRead(t, clock.after(maxInterval))
	wantMemory(t, clock.after(maxInterval), 2000, true, "of the remaining process")
}

// Idle processes are measured even if other processes change before each pass and take up all of its time.
func TestTree_MeasuresIdleProcessesAmongBusyOnes(t *testing.T) {
	p := treeFixture(t)
	busy := func(pass int) { p.several(200, 206, treeLine{pages: 1000, pssKB: 400, faults: 10_000 * pass}) }
	busy(1)
	p.put(sized(206, 1000, 400))
	tree, clock := p.timed(15 * time.Millisecond)
	treeRead(t, tree)
	treeRead(t, clock.after(maxInterval))
	p.put(sized(206, 1000, 4000)) // without page faults, so the change is not noticed
	var u TreeUsage
	for pass := range int(maxIdleScanInterval/maxInterval) + 2 {
		busy(pass + 2)
		u = treeRead(t, clock.after(maxInterval))
	}
	check.True(t, u.Memory == (6*400+4000)<<10,
		"memory after more than a minute = %v KiB, want %v; usage %+v", u.Memory/1024, 6*400+4000, u)
}

// A process that grows before an uninterruptible sleep is measured once it wakes up.
func TestTree_MeasuresProcessAfterUninterruptibleSleep(t *testing.T) {
	p := treeFixture(t)
	line := sized(200, 1, 4)
	p.put(line)
	p.put(sized(201, 1, 4))
	tree, clock := p.timed(time.Millisecond)
	treeRead(t, tree)
	line.state, line.pages, line.pssKB, line.faults = "D", 1000, 2000, 1000
	p.put(line)
	wantMemory(t, clock.after(maxInterval), 8, true, "during the sleep, as before,")
	line.state = "S"
	p.put(line)
	wantMemory(t, clock.after(maxInterval), 2004, true, "after the sleep")
}

// A zombie has no memory, so it does not prevent the memory of the other processes from being steady.
func TestTree_MemoryIsSteadyDespiteZombie(t *testing.T) {
	p := treeFixture(t)
	p.several(200, 202, treeLine{pages: 1000, pssKB: 400, faults: 1000})
	tree, clock := p.timed(time.Millisecond)
	treeRead(t, tree)
	p.put(treeLine{pid: 201, parent: 100, start: 60, state: "Z", faults: 2000})
	passes := 0
	for range 4 {
		if u := treeRead(t, clock.after(maxInterval/2)); u.MemoryFresh {
			passes++
		}
	}
	u := wantMemory(t, tree, 400, false, "of a job with a zombie")
	check.True(t, passes <= 2 && u.MemoryUpToDate, "%d passes, want at most 2; up to date: %v, want true", passes, u.MemoryUpToDate)
}

// A process that could not be read is reported in the passes that do not try to read it, too.
func TestTree_ReportsUnreadProcessInEachPass(t *testing.T) {
	p := treeFixture(t)
	p.several(200, 206, treeLine{pages: 1, pssKB: 4})
	must(t, os.WriteFile(filepath.Join(p.dir, "200", "smaps_rollup"), []byte("damaged"), 0o600))
	tree, c := p.timed(15 * time.Millisecond)
	for pass, wait := range []time.Duration{maxInterval, maxIdleScanInterval, maxInterval, 0} {
		wantFailed(t, wantMemory(t, tree, 24, true, fmt.Sprint("in pass ", pass)), "rss", "1 of 6")
		c.after(wait)
	}
}

func TestIdleScanInterval_GrowsWithCost(t *testing.T) {
	const ms = time.Millisecond
	for cost, want := range map[time.Duration]time.Duration{0: maxInterval, 1.5e6: maxInterval, 6 * ms: 20_000 * ms, 1000 * ms: maxIdleScanInterval} {
		same(t, fmt.Sprintf("idleScanInterval(%v)", cost), idleScanInterval(cost), want)
	}
}

func TestTree_CountsRSSOfVeryLargeProcess(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, pages: 3 << 20, pssKB: 1})
	u := wantMemory(t, p.tree(nil), float64(3<<10*os.Getpagesize()), true, "of a process with 12 GiB")
	check.True(t, u.MemoryKind == "rss" && u.Failed["memory"] != nil, "usage %+v, want the RSS and a failure of memory", u)
}

// A process whose first thread has ended while another runs is not a zombie.
func TestTree_CountsProcessWithoutFirstThread(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, state: "Z", threads: 2})
	u := treeRead(t, p.tree(nil))
	same(t, "processes, threads", []float64{u.Processes, u.Threads}, []float64{1, 2})
	wantFailed(t, u, u.MemoryKind, "1 of 1")
}

func FuzzTreeStat(f *testing.F) {
	own, _ := os.ReadFile("/proc/self/stat")
	f.Add(own, int32(os.Getpid()))
	f.Add([]byte("7 (a) b) (c\n)) Z 1 1 1 0 -1 4 0 0 0 0 1 2 3 4 20 0 1 0 5 0 0 9"), int32(7))
	f.Add([]byte("7 (x) R"+strings.Repeat(" 18446744073709551615", 30)), int32(7))
	f.Fuzz(func(t *testing.T, data []byte, pid int32) {
		s, err := parseStat(data, pid)
		if err != nil {
			return
		}
		if !(s.ticks >= 0) || s.threads < 0 || s.ppid < 0 || s.state == 0 || s.pages > maxPages {
			t.Fatalf("parseStat accepted %+v, want numbers >= 0 and a state", s)
		}
	})
}

func FuzzTreePSS(f *testing.F) {
	own, _ := os.ReadFile("/proc/self/smaps_rollup")
	f.Add(own)
	f.Add([]byte("Pss: 18446744073709551615 kB\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseRollup(data); err == nil && (r.pss%1024 != 0 || !strings.Contains(string(data), "Pss:")) {
			t.Fatalf("parseRollup accepted %+v without a Pss line in kB", r)
		}
		_, _ = parseStatus(data)
	})
}

func FuzzTreeIO(f *testing.F) {
	own, _ := os.ReadFile("/proc/self/io")
	f.Add(own)
	f.Add([]byte("read_bytes: 1\nwrite_bytes: -1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		io, err := parseIO(data)
		if err == nil && (!strings.Contains(string(data), "read_bytes:") || !strings.Contains(string(data), "write_bytes:")) || err != nil && io != (IO{}) {
			t.Fatalf("parseIO returned %+v, error %v; want an error and no numbers if a line is missing", io, err)
		}
	})
}

func FuzzTreeDirectory(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00aaaaaaaa\x18\x00\x04123\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range sorted(appendPIDs(nil, data)) {
			if p.pid <= 0 || p.pid > maxPIDs {
				t.Fatalf("process ID = %d, want 1 to %d", p.pid, maxPIDs)
			}
		}
	})
}

// A Read with Request.Now is not deferred, whatever the previous Read cost.
func TestTree_RequestNowIsNotDeferred(t *testing.T) {
	p := treeFixture(t)
	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 8})
	tree := p.tree(nil)
	treeWant(t, tree, 200)
	tree.due.scan, tree.due.io = 1<<62, 1<<62
	check.True(t, treeRead(t, tree).Skipped, "a scan that was not due was not skipped")
	tree.Next.Now = true
	u := treeRead(t, tree)
	check.True(t, !u.Skipped && u.Fresh && u.IOFresh, "usage with Request.Now %+v, want a fresh scan with fresh I/O", u)
}

// Unchanged memory is not measured at each Read; changed memory is measured at the next Read.
func TestTree_MeasuresChangedMemoryAtNextRead(t *testing.T) {
	p := treeFixture(t)
	p.put(sized(200, 1000, 8))
	tree := p.tree(nil)
	treeWant(t, tree, 200)
	wantMemory(t, tree, 8, false, "that is unchanged")
	p.put(sized(200, 1011, 9))
	wantMemory(t, tree, 9, true, "after growth")
	p.put(sized(201, 1, 1))
	wantMemory(t, tree, 10, true, "with a second process")
	tree.measured -= maxInterval
	wantMemory(t, tree, 10, true, "5 s after the last measurement")
}

// Copy-on-write may split pages that two processes share without a change of their resident sizes, but each split
// causes a minor fault. A single process shares no pages within the job, so its faults do not matter.
func TestTree_NoticesCopyOnWriteByFaults(t *testing.T) {
	p := treeFixture(t)
	first := treeLine{pid: 200, parent: 100, start: 60, pages: 1000, pssKB: 2000, faults: 5000}
	second := treeLine{pid: 201, parent: 200, start: 61, pages: 1000, pssKB: 2000, faults: 70}
	p.put(first)
	tree := p.tree(nil)
	treeWant(t, tree, 200)
	first.faults += 5000
	p.put(first)
	wantMemory(t, tree, 2000, false, "of a single process after page faults")
	p.put(second)
	treeWant(t, tree, 200, 201)
	page := os.Getpagesize() >> 10
	second.pssKB, second.faults = 4000, 70+2*2000/page/100 // 1 % of the PSS
	p.put(second)
	wantMemory(t, tree, 4000, false, "after faults for 1 % of the PSS")
	second.faults++
	p.put(second)
	wantMemory(t, tree, 6000, true, "after faults for more than 1 % of the PSS")
	wantMemory(t, tree, 6000, false, "that is unchanged")
	p.replace(treeLine{pid: 201, parent: 200, start: 99, pages: 1000, pssKB: 3000, faults: 90}) // fewer faults in total
	wantMemory(t, tree, 5000, true, "after a process was replaced")
}

// Passes over PSS take 0.5 % of a core in the long run. Up to 5 s of unused budget are carried over, and passes are at
// most 5 s apart, whatever they cost.
func TestTree_AfterPSSKeepsBudget(t *testing.T) {
	at := func(wall, cpu int) clockReading {
		return clockReading{time.Duration(wall) * time.Second, time.Duration(cpu) * time.Millisecond}
	}

	for _, c := range []struct {
		due, begin, cost, want int // s, s, ms, s
	}{
		{0, 1000, 10, 997}, {997, 1000, 10, 999}, {999, 1000, 10, 1001}, {1001, 1001, 10, 1003},
		{900, 1000, 5, 996}, {1000, 1000, 25, 1005}, {1000, 1000, 60, 1005}, {900, 1000, 60, 1005},
	} {
		tree := &Tree{}
		tree.due.memory = at(c.due, 0).mono
		if got := tree.afterPSS(at(c.begin, 100), at(c.begin+1, 100+c.cost)); got != at(c.want, 0).mono {
			t.Errorf("pass of %d ms at %d s, due at %d s: next pass at %v, want %d s", c.cost, c.begin, c.due, got, c.want)
		}
	}
}

// named returns a Tree with Members that never defers a scan.
func (p treeProc) named(ignore func(int) bool, pids ...int) *Tree {
	t := NewTree(Options{Proc: p.dir, Members: pids, Ignore: ignore})
	treeReadFreely(t)
	p.tb.Cleanup(t.Close)
	return t
}

// wantUse reads the tree, and fails the test unless CPU time and storage I/O are as given.
func wantUse(tb testing.TB, t *Tree, seconds, read, written float64) {
	tb.Helper()
	u := treeRead(tb, t)
	check.True(tb, math.Abs(u.CPUSeconds-seconds) <= 1e-9 && u.ReadBytes == read && u.WriteBytes == written,
		"CPU time %v s, %v bytes read, %v written; want %v s, %v, %v", u.CPUSeconds, u.ReadBytes, u.WriteBytes, seconds, read, written)
}

func TestTree_IncludesMembersAndDescendants(t *testing.T) {
	p := treeFixture(t)
	p.family("110<100@60 120<110@70 121<120@71 200<1@60 210<200@60 300<1@60")
	tree := p.named(func(pid int) bool { return pid == 120 }, 100, 200)
	treeWant(t, tree, 100, 110, 200, 210)

	p.put(treeLine{pid: 121, parent: 110, start: 71}) // its ignored parent has ended, and a member has adopted it
	p.end(120)
	treeWant(t, tree, 100, 110, 200, 210)

	p.end(100)
	p.family("110<1@60 111<110@90")
	treeWant(t, tree, 110, 111, 200, 210)

	p.put(treeLine{pid: 100, parent: 1, start: 95}) // a new process with the ID of the ended member
	p.put(treeLine{pid: 101, parent: 100, start: 96})
	treeWant(t, tree, 110, 111, 200, 210)
}

func TestTree_MissingMemberIsAnError(t *testing.T) {
	p := treeFixture(t)
	_, err := p.named(nil, 100, 555).Read()
	check.True(t, err != nil, "Read with a missing member returned no error")
}

// An ended process counts once: as part of the parent that waited for it, or with its last known usage.
func TestTree_CountsEndedMemberOnce(t *testing.T) {
	const root = 28 // ticks of the fixture's process 100
	grown := func(children int) treeLine {
		return treeLine{pid: 100, parent: 1, start: 50, ticks: [4]int{7, 7, 7 + children, 7}, read: 9, written: 9}
	}
	child := treeLine{pid: 110, parent: 100, start: 60, ticks: [4]int{10, 10, 0, 0}, read: 5, written: 6}
	below := treeLine{pid: 120, parent: 110, start: 70, ticks: [4]int{30, 0, 0, 0}, read: 1, written: 1}
	for _, c := range []struct {
		name                   string
		end                    []int
		after                  treeLine
		seconds, read, written float64
	}{
		{"waited for", []int{120, 110}, grown(55), (root + 55) / 100., 9, 9},
		{"within the kernel's rounding", []int{120, 110}, grown(49), (root + 49) / 100., 9, 9},
		{"not waited for", []int{120, 110}, grown(0), (root + 50) / 100., 9, 9},
		{"only one waited for", []int{120, 110}, grown(20), (root + 50) / 100., 9, 9},
		{"all ended", []int{120, 110, 100}, treeLine{}, (root + 50) / 100., 15, 16},
		{"only the grandchild left", []int{110, 100}, treeLine{}, (root + 50) / 100., 15, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := treeFixture(t)
			p.put(child)
			p.put(below)
			tree := p.named(nil, 100)
			wantUse(t, tree, (root+50)/100., 15, 16)
			if c.after.pid != 0 {
				p.put(c.after)
			}
			for _, pid := range c.end {
				p.end(pid)
			}
			for range 2 { // the second Read must not add it again
				wantUse(t, tree, c.seconds, c.read, c.written)
			}
		})
	}
}

// Storage I/O that could not be read remains unknown after the process has ended.
func TestTree_UnreadableIOOfEndedMemberStaysUnknown(t *testing.T) {
	p := treeFixture(t)
	p.file(100, "io", "nothing\n")
	tree := p.named(nil, 100)
	for range 2 {
		if u := treeRead(t, tree); !math.IsNaN(u.ReadBytes) || !math.IsNaN(u.WriteBytes) || u.IOFresh {
			t.Errorf("read %v, written %v, fresh %v; want NaN, NaN, false", u.ReadBytes, u.WriteBytes, u.IOFresh)
		}
		p.end(100)
	}
}
