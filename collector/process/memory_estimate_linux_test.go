package process

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
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

// The parts of the memory add up to the PSS. If they are unknown for any process, they are unknown for the job.
func TestTree_DividesMemoryIntoParts(t *testing.T) {
	const parts = "Pss_Anon: 600 kB\nPss_File: 100 kB\nPss_Shmem: 300 kB\n"
	line := func(pid int, rollup string) treeLine {
		return treeLine{pid: pid, parent: 100, start: 60, pages: 300, pssKB: 1000, rollup: rollup}
	}
	for name, c := range map[string]struct {
		lines []treeLine
		want  [4]float64 // anonymous, files, shared, huge pages; in KiB
	}{
		"processes":          {[]treeLine{line(200, parts), line(201, parts+"SwapPss: 50 kB\nPrivate_Hugetlb: 2048 kB\n")}, [4]float64{1200, 200, 600, 2048}},
		"before Linux 5.3":   {[]treeLine{line(200, "")}, [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}},
		"one without parts":  {[]treeLine{line(200, parts), line(201, "")}, [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}},
		"a zombie":           {[]treeLine{line(200, parts), {pid: 201, parent: 200, start: 80, state: "Z"}}, [4]float64{600, 100, 300, 0}},
		"too large for PSS":  {[]treeLine{{pid: 200, parent: 100, start: 60, pages: 3 << 20, pssKB: 12 << 20, rollup: parts}}, [4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}},
		"damaged, too large": {[]treeLine{line(200, "Pss_Anon: 600 kB\nPss_Shmem: 700 kB\n")}, [4]float64{600, 0, 700, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			p := treeFixture(t)
			for _, l := range c.lines {
				p.put(l)
			}
			u := treeRead(t, p.tree(nil))
			got := [4]float64{u.Anon / 1024, u.File / 1024, u.Shmem / 1024, u.HugeTLB / 1024}
			check.True(t, fmt.Sprint(got) == fmt.Sprint(c.want), "parts in KiB = %v, want %v; usage %+v", got, c.want, u)
		})
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
	check.True(t, least >= 118 && most <= 150, "memory = %.1f to %.1f MiB, want 118 to 150", least, most)
}

// The growth of a process without its first thread is noticed.
func TestTree_NoticesGrowthWithoutFirstThread(t *testing.T) {
	testenv.SkipIfShort(t, "half a second")
	tree := treeOwn(t)
	j := treeStart(t, treeSelf("leaderless 32"))
	j.line(t)
	before := treeRead(t, tree)
	check.Value(j.input.Write([]byte("x")))(t)
	j.line(t)
	if u := treeRead(t, tree); !u.MemoryFresh || u.Memory < before.Memory+60<<20 || tree.jobProcs[0].rss() < 90<<20 {
		t.Errorf("usage after growth by 64 MiB %+v, want 60 MiB more than %+v", u, before)
	}
}

// A sum of resident sizes counts shared pages several times, so the lower bound is only the largest of them, or the sum
// of the measured PSS.
func TestTree_LowerBoundCountsSharedPagesOnce(t *testing.T) {
	kib := float64(os.Getpagesize() >> 10)
	for name, c := range map[string]struct {
		processes []treeLine
		unread    int // how many of the last processes have no readable smaps_rollup
		memory    float64
		proven    float64 // KiB
	}{
		"PSS":                              {[]treeLine{{pages: 50, pssKB: 400}, {pages: 50, pssKB: 300}}, 0, 700, 700},
		"pages shared with other programs": {[]treeLine{{pages: 500, pssKB: 400}}, 0, 400, 500 * kib},
		"resident sizes":                   {[]treeLine{{pages: 600}, {pages: 500}, {pages: 400}}, 3, 1500 * kib, 600 * kib},
		"mostly PSS":                       {[]treeLine{{pages: 50, pssKB: 3000}, {pages: 50, pssKB: 5000}, {pages: 400}}, 1, 8000 + 400*kib, 8000},
	} {
		p := treeFixture(t)
		for i, l := range c.processes {
			l.pid, l.parent, l.start = 200+i, 100, 60
			p.put(l)
			if path := filepath.Join(p.dir, "20"+string(rune('0'+i)), "smaps_rollup"); i >= len(c.processes)-c.unread {
				p.remove(path)
				must(p.tb, os.Mkdir(path, 0o755))
			}
		}
		tree := p.tree(nil)
		for range 2 { // the second Read does not measure memory
			u := treeRead(t, tree)
			if u.Memory != c.memory*1024 || u.MemoryLowerBound != c.proven*1024 || !u.MemoryUpToDate {
				t.Errorf("%s: memory %v KiB, want %v; lower bound %v KiB, want %v; up to date %v, want true",
					name, u.Memory/1024, c.memory, u.MemoryLowerBound/1024, c.proven, u.MemoryUpToDate)
			}
		}
	}
}

// Measured memory is up to date as long as nothing changes. If resident sizes rise while the measurement is deferred,
// Memory is raised to the lower bound that they imply; if they fall, Memory may be too high.
func TestTree_RaisesDeferredMemoryToLowerBound(t *testing.T) {
	page := float64(os.Getpagesize())
	many := func(pages ...int) (out []treeLine) {
		for i, n := range pages {
			out = append(out, treeLine{pid: 200 + i, parent: 100, start: 60, pages: n, pssKB: 4000})
		}
		return out
	}
	for name, c := range map[string]struct {
		before, after []treeLine
		memory        float64
		holds         bool
	}{
		"unchanged":                {many(2000), many(2000), 4000 << 10, true},
		"one process grew":         {many(2000), many(3000), 4000<<10 + 1000*page, true},
		"one process shrank":       {many(2000), many(1000), 4000 << 10, false},
		"one of two grew":          {many(2000, 2000), many(2000, 9000), 9000 * page, true},
		"one of two grew a little": {many(100, 2000), many(1000, 2000), 8000 << 10, true},
		"two became four":          {many(1000, 1000), many(1000, 1000, 1000, 1000), 8000 << 10, true},
		"one of two shrank":        {many(1000, 1000), many(1000, 100), 8000 << 10, false},
	} {
		p := treeFixture(t)
		for _, l := range c.before {
			p.put(l)
		}
		tree, clock := p.timed(time.Millisecond)
		treeRead(t, tree)
		tree.due.memory = clock.at.mono + time.Hour
		for _, l := range c.after {
			p.put(l)
		}
		clock.at.mono += time.Second
		u := treeRead(t, tree)
		check.True(t, !u.Skipped && !u.MemoryFresh && u.Memory == c.memory && u.MemoryUpToDate == c.holds,
			"%s: memory %v, want %v; up to date %v, want %v: %+v", name, u.Memory, c.memory, u.MemoryUpToDate, c.holds, u)
	}
}

// treeHold allocates mib MiB in a memory file after one byte of input, and releases them after another byte.
func treeHold(how string, mib int) {
	next := func() { _, _ = os.Stdin.Read(make([]byte, 1)) }
	fmt.Println("ready")
	next()

	fd, err := unix.MemfdCreate("held", unix.MFD_CLOEXEC)
	if how == "tmpfs" {
		fd, err = unix.Open("/dev/shm", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	}
	treeMust(err)
	size := mib << 20
	treeMust(unix.Ftruncate(fd, int64(size)))
	mapped := map[string]int{"mapped": size, "half": size / 2}[how]
	if mapped > 0 {
		data := treeValue(unix.Mmap(fd, 0, mapped, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
		for i := 0; i < len(data); i += 4096 {
			data[i] = 1
		}
	}
	block := make([]byte, 1<<16)
	for at := mapped; at < size; at += len(block) {
		treeValue(unix.Pwrite(fd, block, int64(at)))
	}
	fmt.Println("held")
	next()
	if mapped == 0 {
		treeMust(unix.Close(fd))
	}
	fmt.Println("closed")
	next()
}

// Memory files count once, as in their control group, whether processes have mapped them or only hold them open.
func TestTree_CountsFilesInMemory(t *testing.T) {
	const mib = 24 // containers have 64 MiB of /dev/shm
	for _, how := range []string{"memfd", "tmpfs", "mapped", "half"} {
		t.Run(how, func(t *testing.T) {
			tree := treeOwn(t)
			j := treeStart(t, treeSelf("hold "+how+" "+strconv.Itoa(mib)))
			step := func(want string) float64 {
				if got := j.line(t); got != want {
					t.Fatalf("the job printed %q, want %q", got, want)
				}
				u := treeRead(t, tree)
				check.True(t, u.MemoryKind == "pss", "usage %+v, want a PSS", u)
				_, _ = j.input.Write([]byte("x"))
				return u.Memory / (1 << 20)
			}
			before, held, after := step("ready"), step("held"), step("closed")
			if grown := held - before; grown < 0.98*mib || grown > 1.05*mib+1 {
				t.Errorf("job holds a file of %d MiB: its memory grew from %.1f to %.1f MiB, want growth by 98 to 105 %% of the file",
					mib, before, held)
			}
			if how == "memfd" || how == "tmpfs" {
				check.True(t, after <= before+1,
					"memory after the file was closed = %.1f MiB, want %.1f as before it was opened", after, before)
			}
		})
	}
}

// Growth of the host's shared memory that no process holds is reported separately.
func TestTree_ReportsUnownedSharedMemorySeparately(t *testing.T) {
	const much = 1 << 40 // more than any host has, so changes by other processes do not matter
	tree := treeOwn(t)
	treeStart(t, treeSelf("linger 1")).line(t)
	tree.shared.before -= much
	if u := treeRead(t, tree); !(u.Unowned > much/2 && u.Unowned < 2*much) || u.Memory > much/2 {
		t.Errorf("usage %+v, want Unowned of about %v bytes, and Memory without them", u, float64(much))
	}
	tree.shared.most = much // as if the job had closed the file since
	if left := tree.LeftoverShared(); left > much/2 {
		t.Errorf("LeftoverShared = %v for a file that was already part of Memory, want at most %v", left, float64(much/2))
	}
	tree.shared.most = 0
	running := NewTree(Options{Root: os.Getpid(), Running: true})
	defer running.Close()
	running.jobProcs = []*proc{{measuredMemory: measuredMemory{rollup: rollup{shmem: much}}}}
	running.readShared(running.clock())
	was := tree.shared.before + much - running.shared.before
	check.True(t, was > much/2 && was < 2*much, "%v bytes of the running job are excluded, want about %v", was, float64(much))
	left := tree.LeftoverShared()
	check.True(t, left > much/2 && left < 2*much, "LeftoverShared = %v, want about %v", left, float64(much))
}

// opens creates descriptors of a process. links are the targets and mounts the mount IDs, by descriptor.
func (p treeProc) opens(pid int, links map[int]string, mounts map[int]int) {
	p.tb.Helper()
	must(p.tb, os.MkdirAll(filepath.Join(p.dir, strconv.Itoa(pid), "fd"), 0o755))
	for fd, to := range links {
		must(p.tb, os.Symlink(to, filepath.Join(p.dir, strconv.Itoa(pid), "fd", strconv.Itoa(fd))))
		if mounts[fd] == 0 {
			continue
		}
		p.file(pid, "fdinfo/"+strconv.Itoa(fd), fmt.Sprintf("pos:\t0\nflags:\t0100002\nmnt_id:\t%d\nino:\t9\n", mounts[fd]))
	}
}

const treeMounts = `21 1 0:21 / / rw - ext4 /dev/vda rw
22 21 0:22 / /shm rw,relatime shared:3 - tmpfs tmpfs rw,size=1024k
23 21 0:23 / /net rw - nfs4 server:/export rw
`

// Only files on a tmpfs are measured. Each counts once, and files older than the job count only with their growth.
func TestTree_CountsOnlyOpenFilesOnTmpfs(t *testing.T) {
	p := treeFixture(t)
	block := strings.Repeat("x", 256<<10)
	file := func(name string, blocks int) (path string, bytes float64) {
		path = filepath.Join(t.TempDir(), name)
		p.write(path, strings.Repeat(block, blocks))
		var st unix.Stat_t
		must(p.tb, unix.Stat(path, &st))
		return path, float64(st.Blocks * blockSize)
	}
	shm, shmBytes := file("shm", 4)
	net, _ := file("net", 4)
	old, oldBytes := file("old", 2)
	disk, _ := file("disk", 4)

	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 8})
	p.put(treeLine{pid: 201, parent: 100, start: 60, pssKB: 8})
	for _, pid := range []int{200, 201} {
		p.file(pid, "mountinfo", treeMounts)
	}
	p.opens(200, map[int]string{0: "pipe:[17]", 1: shm, 2: net, 3: disk, 4: "/dev/null", 5: shm}, map[int]int{1: 22, 2: 23, 3: 21, 4: 22, 5: 22})
	p.opens(201, map[int]string{7: shm, 8: old}, map[int]int{7: 22, 8: 22})
	tree := p.tree(nil)
	tree.shared.begun = time.Time{}
	if u := treeRead(t, tree); u.Memory != 16<<10+shmBytes+oldBytes {
		t.Errorf("size of open files = %v bytes, want %v", u.Memory-16<<10, shmBytes+oldBytes)
	}

	tree = p.tree(nil)
	tree.shared.begun = time.Now().Add(time.Hour)
	u := treeRead(t, tree)
	check.True(t, u.Memory == 16<<10, "memory = %v bytes, want %d without files older than the job", u.Memory, 16<<10)
	p.write(old, strings.Repeat(block, 3))
	var st unix.Stat_t
	must(p.tb, unix.Stat(old, &st))
	tree.shared.known = false // so that the next Read reads descriptors
	if u := treeRead(t, tree); u.Memory != 16<<10+float64(st.Blocks*blockSize)-oldBytes {
		t.Errorf("size of open files = %v bytes, want %v, the growth of the old file",
			u.Memory-16<<10, float64(st.Blocks*blockSize)-oldBytes)
	}
}

// If there are more descriptors than are read at a time, later reads continue with the rest, and known files still
// count.
func TestTree_ReadsManyDescriptorsInParts(t *testing.T) {
	testenv.SkipIfShort(t, "half a second")
	p := treeFixture(t)
	path := filepath.Join(t.TempDir(), "file")
	p.write(path, strings.Repeat("x", 1<<20))
	links, mounts := map[int]string{}, map[int]int{}
	for fd := range maxDescriptors + 100 {
		links[fd] = "socket:[1]"
	}
	p.put(treeLine{pid: 200, parent: 100, start: 60, pssKB: 8})
	p.opens(200, links, mounts)
	p.put(treeLine{pid: 201, parent: 100, start: 60, pssKB: 8})
	p.file(201, "mountinfo", treeMounts)
	p.opens(201, map[int]string{3: path}, map[int]int{3: 22})
	tree := p.tree(nil)
	tree.shared.begun = time.Time{}
	for look, want := range []bool{false, true, true, true} {
		tree.shared.known = false
		u := treeRead(t, tree)
		check.True(t, (u.Memory > 1<<20) == want, "read %d: memory = %v bytes, want more than 1 MiB: %v", look, u.Memory, want)
	}
	p.remove(filepath.Join(p.dir, "201", "fd", "3"))
	for range 4 {
		tree.shared.known = false
		treeRead(t, tree)
	}
	u := treeRead(t, tree)
	check.True(t, u.Memory <= 1<<20, "memory after the file was closed = %v bytes, want at most 1 MiB", u.Memory)
}

// Mappings are matched with open files by device and inode. Mappings of other files do not count.
func TestSharedMemory_AddMappingsCountsOnlyOpenFiles(t *testing.T) {
	id := fileID{unix.Mkdev(0, 0x1d), 42}
	s := sharedMemory{files: map[fileID]*openFile{id: {bytes: 1 << 20}}}
	s.addMappings([]byte(`557e20d2c000-557e20d2e000 r--p 00000000 fe:00 42                          /usr/bin/x
7f0000000000-7f0000080000 rw-s 00000000 00:1d 42                          /dev/shm/x (deleted)
7f0000100000-7f0000180000 rw-s 00080000 00:1d 43                          /dev/shm/y
7f0000200000-7f0000210000 rw-p 00000000 00:00 0
nonsense
zz-yy rw-s 0 00:1d 42 x
`))
	got := s.files[id].mapped
	check.True(t, got == 0x80000, "mapped bytes of the file = %#x, want 0x80000", got)
}
