package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxPSS is the CPU time after which a pass over smaps_rollup leaves the rest to the next: 1 %
	// of the longest interval.
	maxPSS = 50 * time.Millisecond
	// maxPSSWall is when a pass ends by the wall clock, which also runs while others have the CPU,
	// and while a process is busy with its memory map. That says nothing about the cost, so the
	// next pass asks again.
	maxPSSWall = time.Second
	// restingPart is the share of a core that is spent on processes whose memory does not move, and
	// maxRest is for how long they are left alone at most: other processes may come to share more
	// with them, or less.
	restingPart = 0.0003
	maxRest     = time.Minute
	// maxOnePSS is the CPU time that one process may be expected to take.
	maxOnePSS = 100 * time.Millisecond
	// pacePages is how many pages a process must have for its pace to count.
	pacePages = 4096

	insteadOfPSS = "resident pages are counted instead, shared ones once for each process"
)

// pace is the time that smaps_rollup takes for a resident page. The kernel walks over the page
// tables, where a huge page is one entry.
type pace time.Duration

// firstPace is that of small pages, in a virtual machine.
const firstPace = pace(40 * time.Nanosecond)

// of returns the time that so many pages take.
func (p pace) of(pages uint64) time.Duration {
	return time.Duration(min(float64(p)*float64(pages), float64(time.Hour)))
}

// readMemory measures the memory of the job's processes, if it is due: PSS, or RSS where there is
// no PSS. If no process is left, the last value stays.
func (t *Tree) readMemory() {
	if len(t.ours) == 0 {
		return
	}
	begin := t.clock()
	if t.rssOnly == nil {
		if begin.wall < t.due.memory {
			return
		}
		resident := t.resident()
		if t.steady(resident) && begin.wall < t.measured+t.rest {
			return
		}
		whole := t.readPSS(begin)
		end := t.clock()
		t.due.memory, t.rest = t.afterPSS(begin, end), resting(end.cpu-begin.cpu)
		t.weighed, t.measured = resident, begin.wall
		if !whole {
			t.weighed.processes = 0 // the rest is due as soon as it may be
		}
	}

	if t.rssOnly != nil {
		t.sumRSS()
	}
}

// residency is the resident page count of n processes.
type residency struct {
	processes int
	pages     uint64
}

// resident returns the residency of the newest scan.
func (t *Tree) resident() residency {
	r := residency{processes: len(t.ours)}
	for _, p := range t.ours {
		r.pages += p.pages
	}
	return r
}

// steady reports whether the PSS must be about what it was when it was measured, and need not be
// measured again. The resident pages of several processes stay the same when copy-on-write parts
// pages that they share, but each such page is a minor fault.
func (t *Tree) steady(now residency) bool {
	was := t.weighed
	if t.use.MemoryKind == "" || now.processes != was.processes {
		return false
	}
	// Most pages of many processes may be shared, but it is the PSS that has to be right.
	most := uint64(t.use.Memory) / uint64(os.Getpagesize()) / 100
	if max(now.pages, was.pages)-min(now.pages, was.pages) > most {
		return false
	}
	return now.processes == 1 || t.faults() <= most
}

// faults returns how many minor faults the job's processes have had since their PSS was measured.
// For a process that was not measured it counts all of them.
func (t *Tree) faults() uint64 {
	var n uint64
	for _, p := range t.ours {
		n += p.faults - min(p.faults, p.weighed)
	}
	return n
}

// resting returns for how long processes whose memory does not move are left alone after a pass of
// such a cost.
func resting(cost time.Duration) time.Duration {
	return min(max(time.Duration(float64(cost)/restingPart), maxBeat), maxRest)
}

// afterPSS returns when the next pass over PSS may follow one from begin to end. What was not used
// of its share of a core counts for up to 5 s back: memory that moves after having been steady is
// measured in each scan at first.
func (t *Tree) afterPSS(begin, end instant) time.Duration {
	from := max(t.due.memory, begin.wall-maxBeat)
	return min(from+time.Duration(float64(end.cpu-begin.cpu)/pssPart), begin.wall+maxBeat)
}

// sumRSS adds up the resident pages that the scan found.
func (t *Tree) sumRSS() {
	var bytes float64
	alive := false
	for _, p := range t.ours {
		if !p.dead() {
			alive = true
			bytes += float64(p.rss())
		}
	}
	t.fail("memory", t.rssOnly)
	if alive {
		t.use.Memory, t.use.MemoryKind, t.use.MemoryFresh = bytes, "rss", true
	}
}

// readPSS adds up the PSS of the job's processes, which counts a page that n of them share as one
// n-th for each. The RSS stands in for what cannot be read. Once the budget is spent, the other
// processes count with the PSS that they had, and those that had none are taken to share as much as
// the rest. It reports whether it measured all of them.
func (t *Tree) readPSS(begin instant) (whole bool) {
	var sum pssSum
	var unread failure
	last, whole := begin, true
	for _, p := range t.neediest() {
		if p.dead() {
			continue
		}
		if last.cpu-begin.cpu > maxPSS {
			sum.unmeasured(p)
			whole = false
			continue
		}
		n, err := t.pss(p, last.wall-begin.wall > maxPSSWall, &unread)
		if t.rssOnly != nil {
			return whole
		}
		switch err {
		case nil:
			sum.measured(p, n)
		case errEnding:
			whole = false // should it live on, the next pass measures it
		}
		at := t.clock()
		p.pssAt, p.weighed = at.wall, p.faults
		if p.pages >= pacePages && p.paced {
			t.pace = pace(float64(at.cpu-last.cpu) / float64(p.pages))
		}
		last = at
	}

	t.fail("memory", sum.why(unread.why("the PSS", len(t.ours))))
	if sum.alive == 0 {
		return whole
	}

	t.use.Memory, t.use.MemoryKind, t.use.MemoryFresh = sum.total(), "pss", true
	if unread.n > 0 {
		t.use.MemoryKind = "rss"
	}
	return whole
}

// neediest returns the job's processes in the order in which they are measured: the ones that were
// never measured, the ones whose memory has changed, then the others; each by how long ago they were
// measured.
func (t *Tree) neediest() []*proc {
	need := func(p *proc) int {
		switch {
		case p.pss == 0:
			return 0
		case p.faults != p.weighed:
			return 1
		}
		return 2
	}

	t.byNeed = append(t.byNeed[:0], t.ours...)
	slices.SortFunc(t.byNeed, func(a, b *proc) int {
		return cmp.Or(cmp.Compare(need(a), need(b)), cmp.Compare(a.pssAt, b.pssAt), cmp.Compare(a.pid, b.pid))
	})
	return t.byNeed
}

// A pssSum adds up the memory of processes, in bytes.
type pssSum struct {
	alive          int
	bytes          float64
	resident       float64 // resident bytes of those that bytes counts
	guessed        int
	guessedResides float64
}

// measured adds a process with its PSS.
func (s *pssSum) measured(p *proc, bytes uint64) {
	s.alive++
	s.bytes += float64(bytes)
	s.resident += float64(p.rss())
}

// unmeasured adds a process that this pass does not reach.
func (s *pssSum) unmeasured(p *proc) {
	if p.pss > 0 {
		s.measured(p, p.pss)
		return
	}
	s.alive++
	s.guessed++
	s.guessedResides += float64(p.rss())
}

// total returns the sum, with an estimate for those that were never measured.
func (s *pssSum) total() float64 {
	if !(s.resident > 0) {
		return s.bytes + s.guessedResides
	}
	return s.bytes + s.guessedResides*s.bytes/s.resident
}

// why returns what the sum lacks, unless there is another reason.
func (s *pssSum) why(other error) error {
	if other != nil || s.guessed == 0 {
		return other
	}
	return fmt.Errorf("measure PSS: %.0f ms were not enough for %d of %d processes; "+
		"they are taken to share as much of their pages as the others, until they are measured",
		maxPSS.Seconds()*1e3, s.guessed, s.alive)
}

// pss returns the memory of one process. One that sleeps in the kernel may hold the lock of its
// memory map for long: its last PSS is used, or its RSS. The error says that it has ended.
func (t *Tree) pss(p *proc, late bool, unread *failure) (uint64, error) {
	switch cost := t.pace.of(p.pages); {
	case p.state == 'D' && p.pss > 0:
		return p.pss, nil
	case p.state == 'D':
		return p.rss(), nil
	case late:
		t.note(unread, p.pid, "smaps_rollup", damaged("those before it took more than 1 s"))
		return p.rss(), nil
	case cost > maxOnePSS:
		t.rssOnly = fmt.Errorf("measure PSS: process %d, with %d MiB, would take about %.0f ms; %s",
			p.pid, p.rss()>>20, cost.Seconds()*1e3, insteadOfPSS)
		return 0, nil
	}

	file := "smaps_rollup"
	if p.state == 'Z' { // its first thread has ended, others go on, see dead
		var err error
		if file, err = t.threadRollup(p.pid); err != nil {
			if err != errEnding {
				t.note(unread, p.pid, "smaps_rollup", err)
			}
			return 0, err
		}
	}

	data, err := t.dir.read(p.pid, file)
	if err == nil {
		var n uint64
		if n, err = parsePSS(data); err == nil {
			p.pss, p.paced = n, true
		}
	}

	switch {
	case err == nil:
		return p.pss, nil
	case gone(err) && !t.dir.exists(p.pid):
		return 0, err
	case gone(err):
		return t.withoutMap(p, err, unread)
	}

	t.note(unread, p.pid, "smaps_rollup", err)
	return p.rss(), nil
}

const (
	// errFirstThread is why the memory of a process is unknown.
	errFirstThread = damaged("its first thread has ended, and no other thread has its memory")
	// errEnding is why a process is left out of a pass: it has given its memory back and is about
	// to end.
	errEnding = damaged("all of its threads have ended or are about to")
)

// threadRollup returns the name of the smaps_rollup of a thread other than the first one.
func (t *Tree) threadRollup(pid int32) (name string, err error) {
	first := strconv.Itoa(int(pid))
	threads, err := os.ReadDir(filepath.Join(t.o.Proc, first, "task"))
	if err != nil && t.dir.exists(pid) {
		return "", errFirstThread
	}

	err = errEnding
	for _, e := range threads {
		thread := "task/" + e.Name()
		if e.Name() == first {
			continue
		}
		if t.dir.has(pid, thread+"/smaps_rollup") {
			return thread + "/smaps_rollup", nil
		}
		if t.runs(pid, thread) {
			err = errFirstThread
		}
	}
	return "", err
}

// runs reports whether a thread exists that has not begun to end. The kernel has no smaps_rollup of
// one that has.
func (t *Tree) runs(pid int32, thread string) bool {
	data, err := t.dir.read(pid, thread+"/stat")
	if err != nil {
		return !gone(err)
	}
	return !procfile.Exiting(data)
}

// withoutMap handles a process that exists and has no smaps_rollup. Either it has given its memory
// back and is about to end, or the kernel has no such file.
func (t *Tree) withoutMap(p *proc, err error, unread *failure) (uint64, error) {
	if t.dir.has(int32(cmp.Or(t.o.Root, os.Getpid())), "smaps_rollup") {
		return 0, err
	}
	t.rssOnly = fmt.Errorf("measure PSS: the kernel has no smaps_rollup (Linux 4.14 and newer have it); %s",
		insteadOfPSS)
	return 0, nil
}
