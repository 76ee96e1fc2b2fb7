package process

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	// rowsPerOrder is the number of processes with a row for their CPU time, and also the number with a row for their
	// memory.
	rowsPerOrder = 20
	// maxLiving is the maximum number of living processes that are tracked, and maxEnded is the maximum number of ended
	// processes that may have a row.
	maxLiving = 4096
	maxEnded  = 4 * rowsPerOrder
	// maxAncestors is the maximum number of ancestors that are searched for the process that waited for an ended one.
	maxAncestors = 64
)

// An entry is the table's state of a process. CPU times are in seconds.
type entry struct {
	row      Process
	start    uint64 // ticks since boot
	cpu      float64
	before   float64        // the part of cpu that was used before the table began
	children float64        // CPU time of reaped children that the table has accounted for
	counted  float64        // CPU time of reaped children according to the newest scan
	owed     float64        // CPU time of ended children with rows that is not yet in children
	waiter   *entry         // if the process has ended: the process that waited for it, as far as known
	reaped   *ReapedProcess // set if Root waited for the process
	scans    int            // number of scans that found it
	followed bool           // a pidfd waits, or could not wait, for its end
	endKnown bool           // it is known how it ended
	inspection
}

// A table accounts for the job's processes individually.
//
// The kernel adds the CPU time of a process to its parent (cutime, cstime) when the parent waits for it. The table
// subtracts the rows of ended processes from the parent's row, so no time is in two rows. While every process has a
// row, the rows add up to the job's CPU time.
type table struct {
	living []*entry // by process ID
	spare  []*entry
	gone   []*entry // entries of living that the newest scan did not find; by process ID
	ended  []*entry
	main   *entry // the job's main process; nil = unknown
	// root is the entry of Root. Its children are the processes that Root waited for. The part of their time that is in
	// no row was used by orphans that were too short-lived to be seen, and is added to the main process.
	root        entry
	begun       bool
	inspections int           // in this scan
	now         time.Duration // on the boot clock
}

// Table returns rows for the job's processes as of the newest Read: the twenty with the most CPU time and the twenty
// with the highest peak memory, sorted by CPU time. A process that was too short-lived to be scanned has no row, and
// neither has an ended process that used less than these. The CPU time of such a process is in EndedChildren of the
// parent that waited for it.
func (t *Tree) Table() []Process {
	chosen := t.table.selectRows()
	out := make([]Process, 0, len(chosen))
	for _, e := range chosen {
		row := e.row
		if e == t.table.main {
			row.EndedChildren += t.table.root.row.EndedChildren
		}
		out = append(out, row)
	}

	slices.SortFunc(out, func(a, b Process) int {
		return cmp.Or(cmp.Compare(b.CPUSeconds, a.CPUSeconds), cmp.Compare(b.EndedChildren, a.EndedChildren),
			cmp.Compare(b.PeakMemory, a.PeakMemory), cmp.Compare(a.PID, b.PID))
	})
	return out
}

// Deaths returns the deaths of the job's processes as of the newest Read, or nil if no DeathWatch was opened.
func (t *Tree) Deaths() *Deaths {
	if t.deaths == nil {
		return nil
	}
	return t.deaths.result
}

// FinishTable completes the Table after the job's last process has ended.
func (t *Tree) FinishTable() {
	t.jobProcs = t.jobProcs[:0]
	t.updateTable()
}

// updateTable updates the table from the newest scan.
func (t *Tree) updateTable() {
	b := &t.table
	b.now, b.inspections = procfile.Clock(unix.CLOCK_BOOTTIME), 0
	t.matchScan()
	b.findMain()

	reaped := b.root.children
	var ends []ReapedProcess
	if t.o.Reaped != nil { // called after the scan, to get every process that Root reaped before the scan
		ends = t.o.Reaped()
	}
	for _, end := range ends {
		if !t.recordReaped(end) {
			reaped += end.CPUSeconds
		}
	}
	t.deaths.scanned(t, ends)

	t.retireEnded()
	for _, e := range b.living {
		e.waited(e.counted)
	}
	b.root.waited(reaped)
	if len(b.ended) > maxEnded {
		b.selectRows()
	}
	b.begun = true
}

// matchScan updates living and gone from the scan.
func (t *Tree) matchScan() {
	b := &t.table
	living, old := b.spare[:0], b.living
	for _, p := range t.jobProcs {
		e := findEntry(old, int(p.pid))
		if e == nil || e.start != p.start { // a new process may have the ID
			if len(living) >= maxLiving {
				continue
			}
			e = t.newEntry(p)
		}
		t.observe(e, p)
		living = append(living, e)
	}

	b.spare, b.living = old, living
	lives := func(e *entry) bool { return findEntry(living, e.row.PID) == e }
	b.gone = slices.DeleteFunc(append(b.gone[:0], old...), lives)
	clear(b.spare)
}

// newEntry returns a new entry for p. If the job was already running at the first Read, CPU time that p had used by
// then does not count.
func (t *Tree) newEntry(p *proc) *entry {
	e := &entry{start: p.start, row: Process{PID: int(p.pid), Start: sinceBoot(p.start), Command: p.name.bracketed()}}
	if t.o.Running && !t.table.begun {
		e.before, e.children = p.ownSeconds(), p.childSeconds()
		e.preexisting = true
	}
	return e
}

// observe updates e from p, the scan's entry for the same process.
func (t *Tree) observe(e *entry, p *proc) {
	e.row.PPID = int(p.ppid)
	e.scans++
	e.cpu, e.counted = max(e.cpu, p.ownSeconds()), max(e.children, p.childSeconds())
	e.row.CPUSeconds = e.cpu - e.before
	if p.dead() { // its parent has not waited for it yet
		e.row.End = cmp.Or(e.row.End, t.table.now)
	} else {
		e.row.Threads = max(e.row.Threads, int(p.threads))
	}
	t.inspect(e, p)
}

// findMain sets main in the first scan, to the oldest process with a parent outside the job.
func (b *table) findMain() {
	if b.begun {
		return
	}
	for _, e := range b.living {
		if findEntry(b.living, e.row.PPID) == nil && (b.main == nil || e.start < b.main.start) {
			b.main = e
		}
	}
}

// recordReaped stores end in the entry of its process, for retireEnded. If there is no entry, it creates one for the
// main process and reports false for any other process.
func (t *Tree) recordReaped(end ReapedProcess) bool {
	b := &t.table
	e := findEntry(b.gone, end.PID)
	if e == nil {
		e = findEntry(b.living, end.PID) // it was reaped after the scan had read it
	}
	if e == nil && end.Main {
		e = &entry{row: Process{PID: end.PID, PPID: t.o.Root, Start: end.Start, Command: t.commandText(t.o.Command)}}
		at, _ := slices.BinarySearchFunc(b.gone, end.PID, byPID)
		b.gone = slices.Insert(b.gone, at, e)
	}
	if e == nil {
		return false
	}

	if end.Main {
		b.main = e
	}
	e.reaped = &end
	return true
}

// retireEnded moves the processes in gone to ended, and charges their CPU time to the processes that waited for them.
func (t *Tree) retireEnded() {
	b := &t.table
	for _, e := range b.gone {
		e.row.End = cmp.Or(e.row.End, b.now)
		if e.reaped == nil {
			e.waiter = t.findWaiter(e)
			e.waiter.owed += e.cpu + e.children + e.owed
		}
	}

	for _, e := range b.gone {
		if e.reaped != nil { // after its children were charged to it
			e.waiter = &b.root
			e.finish()
		}
	}

	b.ended = append(b.ended, b.gone...)
	clear(b.gone)
	b.gone = b.gone[:0]
}

// findWaiter returns the nearest ancestor of e's process that is alive or was reaped by Root. If there is none, it
// returns root. The CPU time of the processes between the two is also charged to that ancestor.
func (t *Tree) findWaiter(e *entry) *entry {
	b, ppid := &t.table, e.row.PPID
	for range maxAncestors {
		if up := findEntry(b.living, ppid); up != nil && up.start <= e.start {
			return up
		}
		if ppid == t.o.Root {
			break
		}
		if up := findEntry(b.gone, ppid); up != nil {
			if up.reaped != nil {
				return up
			}
			ppid = up.row.PPID
			continue
		}
		up := findProc(t.all, int32(ppid)) // not tracked, because maxLiving others are
		if up == nil {
			break
		}
		ppid = int(up.ppid)
	}
	return &b.root
}

// finish completes e, a process that Root reaped, with the numbers from Root. It counts CPU time after the newest scan
// as the process's own, not as its children's, unless more is known.
func (e *entry) finish() {
	children := e.children
	if end := e.reaped; end.Main {
		children = max(children, end.ChildrenSeconds)
		e.row.PeakMemory = max(e.row.PeakMemory, end.MaxRSS)
	} else {
		children += max(0, min(e.owed, end.CPUSeconds-e.cpu-children))
	}

	e.waited(children)
	e.cpu = max(e.cpu, e.reaped.CPUSeconds-children)
	e.row.CPUSeconds = e.cpu - e.before
	e.row.End = e.reaped.At
}

// waited raises the CPU time of reaped children to the given sum. The part that is already in rows of ended children is
// not credited.
func (e *entry) waited(children float64) {
	grown := max(0, children-e.children)
	e.children = max(e.children, children)
	e.credit(grown)
}

// credit adds the given CPU time of reaped children to EndedChildren, except for the owed part, which is already in
// rows.
func (e *entry) credit(seconds float64) {
	known := min(e.owed, seconds)
	e.owed -= known
	e.row.EndedChildren += seconds - known
}

// selectRows returns the processes that get a row. It forgets ended processes that get none, and moves their time to
// the processes that waited for them.
func (b *table) selectRows() []*entry {
	all := slices.Concat(b.living, b.ended)
	var chosen []*entry
	take := func(value func(e *entry) float64) {
		slices.SortStableFunc(all, func(x, y *entry) int { return cmp.Compare(value(y), value(x)) })
		for _, e := range all[:min(rowsPerOrder, len(all))] {
			if !slices.Contains(chosen, e) {
				chosen = append(chosen, e)
			}
		}
	}
	take(func(e *entry) float64 { return e.row.PeakMemory })
	take(func(e *entry) float64 { return e.row.CPUSeconds })

	b.ended = slices.DeleteFunc(b.ended, func(e *entry) bool {
		if slices.Contains(chosen, e) {
			return false
		}
		b.forget(e)
		return true
	})
	return chosen
}

// forget moves the CPU time of e, an ended process, to the process that waited for it.
func (b *table) forget(e *entry) {
	for _, other := range b.ended {
		if other != nil && other.waiter == e {
			other.waiter = e.waiter
		}
	}
	e.waiter.credit(e.row.CPUSeconds + e.row.EndedChildren)
}

// findEntry returns the entry with the given process ID from list, which is sorted by ID, or nil.
func findEntry(list []*entry, pid int) *entry {
	if i, ok := slices.BinarySearchFunc(list, pid, byPID); ok {
		return list[i]
	}
	return nil
}

func byPID(e *entry, pid int) int { return e.row.PID - pid }

// sinceBoot converts ticks since boot to a time on the boot clock.
func sinceBoot(ticks uint64) time.Duration {
	return time.Duration(ticks) * time.Second / procfile.UserHZ
}

// waiterShare is the share of a core below which a process with children is considered to be waiting for them.
const waiterShare = 0.05

// A cpuSample is the CPU time of a process, in seconds, at a time on the boot clock.
type cpuSample struct {
	start   uint64
	seconds float64
	at      time.Duration
}

// Workers returns the processes of the newest scan that do the job's work. It leaves out a process that has a child and
// has used less than a twentieth of a core since the previous call, such as a shell or a launcher that waits for its
// command.
func (t *Tree) Workers() []int {
	now, before := procfile.Clock(unix.CLOCK_BOOTTIME), t.cpuSamples
	t.cpuSamples = make(map[int32]cpuSample, len(t.jobProcs))
	parents := make([]int32, 0, len(t.jobProcs))
	for _, p := range t.jobProcs {
		if !p.dead() {
			parents = append(parents, p.ppid)
		}
	}
	slices.Sort(parents)

	var out []int
	for _, p := range t.jobProcs {
		if p.dead() {
			continue
		}
		t.cpuSamples[p.pid] = cpuSample{p.start, p.ownSeconds(), now}
		since, known := before[p.pid]
		if !known || since.start != p.start {
			since = cpuSample{at: sinceBoot(p.start)}
		}
		_, parent := slices.BinarySearch(parents, p.pid)
		if parent && p.ownSeconds()-since.seconds < waiterShare*(now-since.at).Seconds() {
			continue
		}
		out = append(out, int(p.pid))
	}
	return out
}
