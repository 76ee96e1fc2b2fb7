package process

import (
	"fmt"
	"os"
	"time"
)

const (
	// maxPSS is the processor time that a pass over smaps_rollup may take twice in a row;
	// it stops at four times that. It is 1 % of the longest beat. Where the processor is shared
	// a pass may take several times as long as the one before.
	maxPSS = 50 * time.Millisecond
	// maxPSSWall is when a pass ends by the clock on the wall, which also runs while
	// others have the CPU, and while a process is busy with its memory map. That
	// says nothing of the cost, so the next pass asks again.
	maxPSSWall = time.Second
	// maxOnePSS is the processor time that one process may be expected to take.
	maxOnePSS = 100 * time.Millisecond
	// pacePages is how many pages a process must have to tell the pace.
	pacePages = 4096

	insteadOfPSS = "resident pages are counted instead, shared ones once for each process"
)

// pace is the time that smaps_rollup takes for a resident page. The kernel walks
// over the page tables, where a huge page is one entry.
type pace time.Duration

// firstPace is that of small pages, in a virtual machine.
const firstPace = pace(40 * time.Nanosecond)

func (p pace) of(pages uint64) time.Duration {
	return time.Duration(min(float64(p)*float64(pages), float64(time.Hour)))
}

// readMemory measures the memory of the job's processes, if it is due: PSS, or RSS
// once PSS has cost too much. With no process left, the last value stays.
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
		if t.steady(resident) && begin.wall < t.measured+maxBeat {
			return
		}
		t.readPSS(begin)
		t.due.memory = t.afterPSS(begin, t.clock())
		t.weigh(resident, begin.wall)
	}
	if t.rssOnly != nil {
		t.sumRSS()
	}
}

// residence is how many pages so many processes have.
type residence struct {
	processes int
	pages     uint64
}

// resident is that of the newest scan.
func (t *Tree) resident() residence {
	r := residence{processes: len(t.ours)}
	for _, p := range t.ours {
		r.pages += p.pages
	}
	return r
}

// steady tells whether the PSS must be about what it was when it was measured: it is then
// not asked for again. The resident pages of several processes stay as they are when pages
// that they share by copy-on-write part; but each such page is a minor fault.
func (t *Tree) steady(now residence) bool {
	was := t.weighed
	if t.use.MemoryKind == "" || now.processes != was.processes {
		return false
	}
	// Of the pages of many, most may be shared: it is the PSS that is to be right.
	most := uint64(t.use.Memory) / uint64(os.Getpagesize()) / 100
	if max(now.pages, was.pages)-min(now.pages, was.pages) > most {
		return false
	}
	return now.processes == 1 || t.faults() <= most
}

// faults is how many minor faults the job's processes had since PSS was measured; of one
// that began since, all.
func (t *Tree) faults() uint64 {
	var n uint64
	for _, p := range t.ours {
		n += p.faults - min(p.faults, p.weighed)
	}
	return n
}

// weigh notes what there was when PSS was measured.
func (t *Tree) weigh(r residence, at time.Duration) {
	t.weighed, t.measured = r, at
	for _, p := range t.ours {
		p.weighed = p.faults
	}
}

// afterPSS is when a pass over PSS may follow on one from begin to end. What was not used of
// its part of a core counts for up to 5 s back: memory that moves after having been steady
// is measured in each scan at first.
func (t *Tree) afterPSS(begin, end instant) time.Duration {
	from := max(t.due.memory, begin.wall-maxBeat)
	return min(from+time.Duration(float64(end.cpu-begin.cpu)/pssPart), begin.wall+maxBeat)
}

// sumRSS takes the resident pages that the scan found.
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

// readPSS adds up the PSS of the job's processes, which counts a page that n of
// them share as a n-th for each. In the place of what cannot be read stands the
// RSS. It sets rssOnly when it is to be the last of its kind.
func (t *Tree) readPSS(begin instant) {
	var bytes float64
	var unread failure
	alive := 0
	last := begin
	for _, p := range t.ours {
		if p.dead() {
			continue
		}
		n, err := t.pss(p, last.wall-begin.wall > maxPSSWall, &unread)
		if t.rssOnly != nil {
			return
		}
		if err == nil {
			alive++
			bytes += float64(n)
		}
		at := t.clock()
		if p.pages >= pacePages && p.paced {
			t.pace = pace(float64(at.cpu-last.cpu) / float64(p.pages))
		}
		last = at
		if took := at.cpu - begin.cpu; took > 4*maxPSS || took > maxPSS && t.dear {
			t.rssOnly = fmt.Errorf("measure PSS: it took %.0f ms for %d of %d processes; %s",
				(at.cpu-begin.cpu).Seconds()*1e3, alive, len(t.ours), insteadOfPSS)
			return
		}
	}
	t.dear = last.cpu-begin.cpu > maxPSS
	t.fail("memory", unread.why("the PSS", len(t.ours)))
	if alive == 0 {
		return
	}
	t.use.Memory, t.use.MemoryKind, t.use.MemoryFresh = bytes, "pss", true
	if unread.n > 0 {
		t.use.MemoryKind = "rss"
	}
}

// pss is the memory of one process. One that sleeps in the kernel may hold the lock
// of its memory map for long: it has its last PSS, or its RSS. The error says that
// it has ended.
func (t *Tree) pss(p *proc, late bool, unread *failure) (uint64, error) {
	switch cost := t.pace.of(p.pages); {
	case p.state == 'D' && p.pss > 0:
		return p.pss, nil
	case p.state == 'D':
		return p.rss(), nil
	case p.state == 'Z': // threads of it still run, see dead
		t.note(unread, p.pid, "smaps_rollup", damaged("its first thread has ended, and with it what the kernel says of its memory"))
		return 0, nil
	case late:
		t.note(unread, p.pid, "smaps_rollup", damaged("those before it took more than 1 s"))
		return p.rss(), nil
	case cost > maxOnePSS:
		t.rssOnly = fmt.Errorf("measure PSS: process %d, with %d MiB, would take about %.0f ms; %s",
			p.pid, p.rss()>>20, cost.Seconds()*1e3, insteadOfPSS)
		return 0, nil
	}
	data, err := t.dir.read(p.pid, "smaps_rollup")
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

// withoutMap is for a process that is there and whose smaps_rollup is not. It has
// given its memory back and is about to end, or the kernel has no such file.
func (t *Tree) withoutMap(p *proc, err error, unread *failure) (uint64, error) {
	if t.dir.has(int32(t.o.Root), "smaps_rollup") {
		return 0, err
	}
	t.rssOnly = fmt.Errorf("measure PSS: the kernel has no smaps_rollup (Linux 4.14 and newer have it); %s", insteadOfPSS)
	return 0, nil
}
