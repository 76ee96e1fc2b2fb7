package process

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// maxPSS is the CPU time after which a pass over smaps_rollup leaves the rest to the next pass: 1 % of maxInterval.
	maxPSS = 50 * time.Millisecond
	// maxPSSElapsed is the elapsed time after which a pass uses RSS for the remaining processes. Elapsed time includes
	// other processes' turns on the CPU, and waits for busy memory maps. It does not measure the cost, so the next pass
	// tries again.
	maxPSSElapsed = time.Second
	// idleScanPart is the share of a core for measuring memory that seems unchanged, and maxIdleScanInterval is the
	// longest interval between these measurements. They are needed because processes outside the job may share more or
	// fewer pages with the job than before.
	idleScanPart        = 0.0003
	maxIdleScanInterval = time.Minute
	// maxOnePSS is the maximum expected CPU time for one process's smaps_rollup. Above it, RSS replaces PSS
	// permanently.
	maxOnePSS = 100 * time.Millisecond
	// minCostPages is the minimum number of pages of a process that updates pageCost.
	minCostPages = 4096
	// raceSlack is the fraction by which the lower bound must exceed the sum of a pass before the pass is treated as
	// raced.
	raceSlack = 0.01

	rssFallbackNote = "resident pages are counted instead, and shared pages once for each process"
)

// pageCost is the CPU time for smaps_rollup per resident page. It varies, because the kernel walks the page tables,
// where a huge page is one entry.
type pageCost time.Duration

// defaultPageCost is the cost per small page in a virtual machine.
const defaultPageCost = pageCost(40 * time.Nanosecond)

// of returns the CPU time for the given number of pages.
func (p pageCost) of(pages uint64) time.Duration {
	return time.Duration(min(float64(p)*float64(pages), float64(time.Hour)))
}

// A measuredMemory is the last measured memory of a process. If pss is 0, the memory was never measured.
type measuredMemory struct {
	rollup
	counted         uint64 // bytes in the sum: the PSS or its replacement
	exact           bool   // counted is the PSS
	unread          error  // why the PSS could not be read; nil = it could
	faultsAtMeasure uint64 // minor faults when it was measured
	pagesAtMeasure  uint64 // resident pages when it was measured
	pssAt           time.Duration
}

// hasMoved reports whether the memory of a process may have changed since it was measured.
func (p *proc) hasMoved() bool { return p.faults != p.faultsAtMeasure || p.pages != p.pagesAtMeasure }

// readMemory measures the memory of the job's processes, if due: PSS, or RSS if there is no PSS, and the shared memory
// that they only hold open. If no process is left, the last value remains.
func (t *Tree) readMemory() {
	if len(t.jobProcs) == 0 {
		return
	}
	begin := t.clock()
	t.host = readHost()
	if t.rssOnly == nil {
		t.measurePSS(begin)
	}
	if t.rssOnly != nil {
		t.sumRSS()
	}
	t.readShared(begin)
	if t.use.MemoryKind != "" {
		t.use.Memory = t.mapped + t.openShared()
	}
	t.use.Shmem = t.mappedShmem + t.openShared()
}

// openShared returns the shared memory that is only open, without the part that was mapped after the files were read.
func (t *Tree) openShared() float64 {
	if math.IsNaN(t.mappedShmem) {
		return t.shared.open
	}
	return min(t.shared.open, max(0, t.shared.total-t.mappedShmem))
}

// measurePSS makes a pass over PSS, if due. A pass that raced with the start or end of a process is repeated at the
// next scan, but not twice in a row, because each repetition exceeds the budget.
func (t *Tree) measurePSS(begin clockReading) {
	if begin.mono < t.due.memory && !t.repeatPass {
		return
	}
	if t.isSteady(t.resident()) && begin.mono < t.measured+t.idleScanFor {
		return
	}

	if !t.round.open || begin.mono > t.measured+2*maxInterval {
		t.round = round{began: begin.mono, processes: len(t.jobProcs), swapped: t.host.swap}
	}
	whole, raced := t.readPSS(begin)
	t.repeatPass = raced && !t.repeatPass
	end := t.clock()
	t.round.open = !whole && !raced
	t.round.cost += end.cpu - begin.cpu
	t.due.memory, t.idleScanFor = t.afterPSS(begin, end), idleScanInterval(t.round.cost)
	t.measuredResidency, t.swapped, t.measured = t.residencyAtMeasure(), t.round.swapped, begin.mono
	if !whole || raced {
		t.measuredResidency.processes = 0 // the next pass is due as soon as the budget allows
	}
}

// A round measures every process at least once, in one or several passes.
type round struct {
	open      bool          // a pass has left some processes to the next one
	began     time.Duration // start of the first pass
	processes int           // number of the job's processes at the start of the round
	cost      time.Duration // CPU time of all passes
	swapped   float64       // the host's swap in use, at the start of the round
}

// residency is the number of processes and their total resident pages.
type residency struct {
	processes int
	pages     uint64
}

// resident returns the residency of the newest scan.
func (t *Tree) resident() residency {
	r := residency{processes: len(t.jobProcs)}
	for _, p := range t.jobProcs {
		r.pages += p.pages
	}
	return r
}

// residencyAtMeasure returns the residency that the round has measured: the number of processes at its start, and the
// pages of each process when it was measured. Processes that have ended since the start are included in the number
// because they may have shared pages with the others.
func (t *Tree) residencyAtMeasure() residency {
	r := residency{processes: t.round.processes}
	for _, p := range t.jobProcs {
		if !p.dead() {
			r.pages += p.pagesAtMeasure
		}
	}
	return r
}

// isSteady reports whether the PSS must be nearly the same as when it was measured. now is the residency of the newest
// scan. The number of resident pages does not change when copy-on-write splits shared pages, but each split causes a
// minor fault.
func (t *Tree) isSteady(now residency) bool {
	was := t.measuredResidency
	if t.use.MemoryKind == "" || now.processes != was.processes {
		return false
	}
	if math.Abs(t.host.swap-t.swapped) > t.mapped/100 { // swapping makes room for new pages
		return false
	}
	// Take 1 % of the PSS, not of the resident pages, which may be far more if many processes share pages.
	most := uint64(t.mapped) / uint64(os.Getpagesize()) / 100
	if max(now.pages, was.pages)-min(now.pages, was.pages) > most {
		return false
	}
	huge := t.hugePages()
	if huge { // huge pages are not resident pages, and one fault may add 1 GiB
		most = 0
	}
	return now.processes == 1 && !huge || t.faults() <= most
}

// hasHugePages reports whether the host has a pool of huge pages, or may create one on demand.
func hasHugePages() bool {
	files, _ := filepath.Glob("/sys/kernel/mm/hugepages/*/nr_*hugepages")
	return slices.ContainsFunc(files, func(file string) bool {
		data, err := os.ReadFile(file)
		n, ok := procfile.ParseCount(bytes.TrimSpace(data))
		return err == nil && ok && n > 0
	})
}

// faults returns how many minor faults the job's processes have had since their PSS was measured. It counts all faults
// of a process that was never measured.
func (t *Tree) faults() uint64 {
	var n uint64
	for _, p := range t.jobProcs {
		if !p.dead() {
			n += p.faults - min(p.faults, p.faultsAtMeasure)
		}
	}
	return n
}

// idleScanInterval returns how long memory that seems unchanged is not measured, given the cost of the last round.
func idleScanInterval(cost time.Duration) time.Duration {
	return min(max(time.Duration(float64(cost)/idleScanPart), maxInterval), maxIdleScanInterval)
}

// afterPSS returns when the next pass may begin, after a pass from begin to end. Up to 5 s of unused budget are carried
// over, so that memory that changes after a steady phase is measured in each scan at first.
func (t *Tree) afterPSS(begin, end clockReading) time.Duration {
	from := max(t.due.memory, begin.mono-maxInterval)
	return min(from+time.Duration(float64(end.cpu-begin.cpu)/pssPart), begin.mono+maxInterval)
}

// sumRSS sets the memory to the sum of the resident pages from the scan and the last known swap.
func (t *Tree) sumRSS() {
	var sum pssSum
	for _, p := range t.jobProcs {
		if !p.dead() {
			sum.measured(p, p.rss())
		}
	}
	t.fail("memory", t.rssOnly)
	if sum.alive > 0 {
		t.setMemory(&sum, "rss")
	}
}

// setMemory stores sum as the memory of the job, of the given MemoryKind.
func (t *Tree) setMemory(sum *pssSum, kind string) {
	t.mapped = sum.total() + sum.swap + sum.huge + sum.hugeShared
	t.use.Swap, t.use.MemoryKind, t.use.MemoryFresh = sum.swap, kind, true
	t.use.Anon, t.use.File, t.use.HugeTLB = sum.anon, sum.file, sum.huge+sum.hugeShared
	if t.mappedShmem = sum.shmem; sum.partial {
		t.use.Anon, t.use.File, t.use.HugeTLB, t.mappedShmem = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
}

// A passEntry is the result of a pass for one process.
type passEntry struct {
	*proc
	bytes uint64
	guess bool // neither this pass nor an earlier one has measured it
}

// readPSS sums the PSS of the job's processes; PSS counts a page that n processes share as 1/n in each. RSS replaces
// unreadable PSS. A process that this round has measured is not read again, unless its memory may have changed. Once
// the budget is spent, the remaining processes count with their last values; those that were never measured are assumed
// to share as much memory as the others. whole reports whether the round has measured all processes. raced reports
// whether a process started or ended during the pass, so that pages may be counted twice or not at all.
func (t *Tree) readPSS(begin clockReading) (whole, raced bool) {
	var unread failure
	last, whole := begin, true
	t.pass = t.pass[:0]
	for _, p := range t.measureOrder(begin.mono) {
		if p.dead() {
			continue
		}
		inRound := t.round.open && p.pssAt >= t.round.began
		read := !(inRound && p.exact && !p.hasMoved()) && last.cpu-begin.cpu <= maxPSS
		var err error
		if read {
			err = t.pss(p, last.mono-begin.mono > maxPSSElapsed)
		}
		if t.rssOnly != nil {
			return whole, raced
		}
		if p.unread != nil {
			t.note(&unread, p.pid, "smaps_rollup", p.unread)
		}
		if err == nil {
			t.pass = append(t.pass, passEntry{p, p.counted, !read && p.pssAt == 0})
		} else {
			raced, p.counted = true, 0
		}
		if !read {
			whole = whole && inRound
			continue
		}
		at := t.clock()
		if p.pssAt = at.mono; p.state != 'D' { // else it was not measured
			p.faultsAtMeasure, p.pagesAtMeasure = p.faults, p.pages
		}
		if p.pages >= minCostPages && p.measured {
			t.pageCost = pageCost(float64(at.cpu-last.cpu) / float64(p.pages))
		}
		last = at
	}

	raced = t.dropReleased() || raced
	sum := t.sumPass()
	raced = t.raiseToLowerBound(&sum, raced) || raced
	t.fail("memory", sum.why(unread.why("the PSS", len(t.jobProcs))))
	switch {
	case sum.alive == 0:
	case unread.n > 0:
		t.setMemory(&sum, "rss")
	default:
		t.setMemory(&sum, "pss")
	}
	return whole, raced
}

// dropReleased removes from the pass those processes that have ended or called exec since they were measured, if they
// shared much of their memory: processes that were measured later count the shared pages in full. It reports whether it
// removed any.
func (t *Tree) dropReleased() bool {
	var all uint64
	for _, w := range t.pass {
		all += w.bytes
	}
	before := len(t.pass)
	t.pass = slices.DeleteFunc(t.pass, func(w passEntry) bool {
		return w.measured && float64(w.shared()) > raceSlack*float64(all) && t.hasReleased(w.proc)
	})
	return len(t.pass) < before
}

// hasReleased reports whether p has released its shared memory since the scan, because it has begun to exit or executes
// a smaller program. The resident size must be below half of the shared memory, because the kernel's count of resident
// pages is not exact.
func (t *Tree) hasReleased(p *proc) bool {
	if p.state == 'Z' {
		return false // only the first thread has ended, see dead
	}
	data, err := t.readStat(p, p)
	if err != nil {
		return isGone(err)
	}
	now, err := parseStat(data, p.pid)
	return err == nil && (now.start != p.start || now.threads <= 1 && procfile.IsExiting(data) || now.rss() < p.shared()/2)
}

// sumPass sums the memory of the processes in the pass.
func (t *Tree) sumPass() (sum pssSum) {
	for _, w := range t.pass {
		if w.guess {
			sum.guess(w.proc)
		} else {
			sum.measured(w.proc, w.bytes)
		}
	}
	return sum
}

// raiseToLowerBound raises sum to the lower bound of its processes, and reports whether it did. If Root started the
// job, pages that its processes share with unmeasured processes belong to the job, too. The sum lacks part of these
// pages if a sharing process has ended, or has started since the scan. Otherwise, the kernel shares the pages for other
// reasons (KSM), and the sum is not raised.
func (t *Tree) raiseToLowerBound(sum *pssSum, raced bool) bool {
	least := sum.private + sum.beyond
	if t.o.Root == 0 || least <= (1+raceSlack)*sum.bytes || !raced && t.dir.newestPID() == t.newestPID {
		return false
	}
	sum.bytes, sum.partial = least, true
	return true
}

// measureOrder returns the job's processes in the order in which to measure them: first those that were never measured,
// then those with memory that may have changed or was not measured for a minute, then the rest. Within each group, the
// process that was measured longest ago comes first.
func (t *Tree) measureOrder(now time.Duration) []*proc {
	need := func(p *proc) int {
		switch {
		case p.pss == 0:
			return 0
		case p.hasMoved(), now-p.pssAt > maxIdleScanInterval:
			return 1
		}
		return 2
	}

	t.byNeed = append(t.byNeed[:0], t.jobProcs...)
	slices.SortFunc(t.byNeed, func(a, b *proc) int {
		return cmp.Or(cmp.Compare(need(a), need(b)), cmp.Compare(a.pssAt, b.pssAt), cmp.Compare(a.pid, b.pid))
	})
	return t.byNeed
}

// A pssSum is the sum of the memory of processes, in bytes.
type pssSum struct {
	alive          int
	bytes          float64
	resident       float64 // resident bytes of the processes that are included in bytes
	guessed        int
	guessedResides float64
	private        float64 // the part of bytes that only one process has mapped
	beyond         float64 // maximum of the processes' memory with shared pages in full, without private pages
	swap           float64 // not part of bytes; nor are huge pages
	huge           float64 // huge pages that only one process has mapped
	hugeShared     float64 // maximum of the processes' shared huge pages, because it is unknown which processes share them
	// anon, file and shmem are the parts of bytes. partial reports whether they are not all of it.
	anon, file, shmem float64
	partial           bool
}

// measured adds p with bytes, which is its PSS or a replacement.
func (s *pssSum) measured(p *proc, bytes uint64) {
	s.alive++
	s.bytes += float64(bytes)
	s.resident += float64(p.rss())
	private := float64(min(p.private, bytes))
	s.private += private
	s.beyond = max(s.beyond, float64(bytes)+float64(p.shared())-private)
	s.swap += float64(p.swap)
	s.huge += float64(p.huge)
	s.hugeShared = max(s.hugeShared, float64(p.hugeShared))
	s.anon, s.shmem = s.anon+float64(p.pssAnon), s.shmem+float64(p.shmem)
	s.file += float64(bytes - min(bytes, p.pssAnon+p.shmem))
	s.partial = s.partial || bytes > 0 && (!p.parts || bytes != p.pss)
}

// guess adds p, which was never measured.
func (s *pssSum) guess(p *proc) {
	s.alive++
	s.guessed++
	s.guessedResides += float64(p.rss())
	s.partial = true
}

// total returns bytes, plus an estimate for the processes that were never measured.
func (s *pssSum) total() float64 {
	if !(s.resident > 0) {
		return s.bytes + s.guessedResides
	}
	return s.bytes + s.guessedResides*s.bytes/s.resident
}

// why returns other unless it is nil; then it returns an error with the number of processes that were not measured, or
// nil if there are none.
func (s *pssSum) why(other error) error {
	if other != nil || s.guessed == 0 {
		return other
	}
	return fmt.Errorf("measure PSS: %.0f ms were not enough for %d of %d processes; "+
		"until they are measured, they count as sharing as much as the others",
		maxPSS.Seconds()*1e3, s.guessed, s.alive)
}

// pss sets the counted memory of p. A process in uninterruptible sleep may hold the lock of its memory map for a long
// time, so it counts with its last value, but at most with its RSS. late means that the pass has taken too long, so RSS
// is used. An error means that the pass must omit p, usually because p has released its memory.
func (t *Tree) pss(p *proc, late bool) error {
	p.exact = false
	switch cost := t.pageCost.of(p.pages); {
	case p.state == 'D' && p.hasMoved():
		p.counted = cmp.Or(min(p.counted, p.rss()), p.rss())
		return nil
	case p.state == 'D':
		return nil
	case late:
		p.counted, p.unread = p.rss(), contentError("those before it took more than 1 s")
		return nil
	case cost > maxOnePSS:
		t.rssOnly = fmt.Errorf("measure PSS: process %d, with %d MiB, would take about %.0f ms; %s",
			p.pid, p.rss()>>20, cost.Seconds()*1e3, rssFallbackNote)
		return nil
	}

	p.unread = nil
	file := "smaps_rollup"
	if p.state == 'Z' { // the first thread has ended, but not all threads, see dead
		var err error
		if file, err = t.threadRollup(p.pid); err != nil {
			if err != errEnding {
				p.unread = err
			}
			return err
		}
	}

	data, err := t.dir.read(p.pid, file)
	if err == nil {
		var r rollup
		if r, err = parseRollup(data); err == nil {
			p.rollup, p.counted, p.exact, p.measured = r, r.pss, true, true
			return nil
		}
	}
	switch {
	case isGone(err) && !t.dir.exists(p.pid):
		return err
	case isGone(err):
		return t.withoutMap(err)
	}

	p.unread = err
	if r, err := t.status(p); err == nil {
		p.rollup = r
	}
	p.counted = p.rss()
	return nil
}

// status returns the memory of p from its status file.
func (t *Tree) status(p *proc) (rollup, error) {
	data, err := t.dir.read(p.pid, "status")
	if err != nil {
		return rollup{}, err
	}
	return parseStatus(data)
}

const (
	// errFirstThread is the reason why the memory of a process is unknown.
	errFirstThread = contentError("its first thread has ended, and no other thread shows its memory")
	// errEnding is the reason why a pass omits a process that has released its memory and is about to end.
	errEnding = contentError("all of its threads have ended or are about to")
)

// threadRollup returns the path, relative to the process's directory, of the smaps_rollup of a thread other than the
// first.
func (t *Tree) threadRollup(pid int32) (name string, err error) {
	threads, err := t.otherThreads(pid)
	if err != nil && t.dir.exists(pid) {
		return "", errFirstThread
	}

	err = errEnding
	for _, thread := range threads {
		if t.dir.has(pid, thread+"/smaps_rollup") {
			return thread + "/smaps_rollup", nil
		}
		if t.isRunning(pid, thread) {
			err = errFirstThread
		}
	}
	return "", err
}

// otherThreads returns the directories of all threads of process pid except the first.
func (t *Tree) otherThreads(pid int32) (folders []string, err error) {
	first := strconv.Itoa(int(pid))
	threads, err := os.ReadDir(filepath.Join(t.o.Proc, first, "task"))
	for _, e := range threads {
		if e.Name() != first {
			folders = append(folders, "task/"+e.Name())
		}
	}
	return folders, err
}

// fillResident sets the resident pages of a process without its first thread from another thread, because the kernel
// reports no resident pages for such a process.
func (t *Tree) fillResident() {
	for _, p := range t.jobProcs {
		if p.state != 'Z' || p.dead() {
			continue
		}
		threads, _ := t.otherThreads(p.pid)
		for _, thread := range threads {
			data, err := t.dir.read(p.pid, thread+"/stat")
			if err != nil || procfile.IsExiting(data) {
				continue
			}
			if s, err := parseStat(data, anyPID); err == nil {
				p.pages = s.pages
				break
			}
		}
	}
}

// isRunning reports whether a thread of process pid exists and has not begun to exit. thread is its directory, relative
// to the process's directory. The kernel has no smaps_rollup for a thread that is exiting.
func (t *Tree) isRunning(pid int32, thread string) bool {
	data, err := t.dir.read(pid, thread+"/stat")
	if err != nil {
		return !isGone(err)
	}
	return !procfile.IsExiting(data)
}

// withoutMap handles an existing process without a smaps_rollup. Either the process has released its memory and is
// about to end, and withoutMap returns err, or the kernel has no such file.
func (t *Tree) withoutMap(err error) error {
	if t.dir.has(int32(cmp.Or(t.o.Root, os.Getpid())), "smaps_rollup") {
		return err
	}
	t.rssOnly = fmt.Errorf("measure PSS: the kernel has no smaps_rollup (Linux 4.14 and newer have it); %s",
		rssFallbackNote)
	return nil
}
