package process

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// A DeathWatch learns how the processes of a job end. Its sources are the kernel's process connector or, where there is
// none, pidfds of the processes that a scan finds; and the processes that Root waits for. It costs nothing while no
// process fails. Scans of its Tree add what they know about the processes.
type DeathWatch struct {
	tree   *Tree
	exits  *exitListener // nil = the connector reports nothing
	pidfds *pidfds       // nil = not needed, or impossible
	// onKill is called for each process of the host that SIGKILL ended and that has a known parent.
	onKill func(pid, parent int, relation Relation)
	result *Deaths // as of the newest scan; immutable, and used only by the scanning goroutine

	mu      sync.Mutex // guards the fields below
	message [256]byte
	file    procfile.Buffer
	cores   map[int]deathEvent // processes that a signal is about to end, at most maxCores
	pending []deathEvent       // ends that no scan has completed yet, at most maxPending
	filed   map[int]deathEvent // recent ends of processes of the job by ID, at most maxFiled
	parent  parentRelation     // the newest
	lost    bool               // messages were lost since the last scan
	deaths  Deaths
}

// A deathEvent is a Death that is not complete yet.
type deathEvent struct {
	Death
	status   int // as from wait(2)
	relation Relation
	measured bool // a scan or wait4(2) measured the process
}

// A parentRelation is the relation of a process's children to the job, looked up at a time.
type parentRelation struct {
	pid      int
	relation Relation
	at       time.Duration
}

const (
	maxCores   = 256
	maxPending = 4096
	maxFiled   = 1024
	// relationFor is how long a parentRelation is used. It is too short for a reuse of the ID.
	relationFor = 100 * time.Millisecond
	// resolveWithin is how long an end waits for the end of the parent, which may show the relation.
	resolveWithin = time.Second
)

// OpenDeathWatch returns a DeathWatch of tree's job, which begins to receive messages. Call it before the job starts,
// and Start afterwards.
func OpenDeathWatch(tree *Tree) *DeathWatch {
	w := &DeathWatch{tree: tree, cores: make(map[int]deathEvent), filed: make(map[int]deathEvent)}
	tree.deaths = w
	if procfile.FilesAreScarce() {
		w.deaths.Missing = "how processes ended is not known: the limit of open files (ulimit -n) is too low"
		return w
	}
	var err error
	if w.exits, err = openExitListener(); err != nil {
		w.deaths.Missing = fmt.Sprintf("how processes ended that no sample met is not known: %v", err)
		w.pidfds = openPidfds()
	}
	return w
}

// Start starts a goroutine that receives the ends until Close is called. onKill is called for each process of the host
// that SIGKILL ended and that has a known parent; it may be nil. Start reports whether there will be such calls.
func (w *DeathWatch) Start(onKill func(pid, parent int, relation Relation)) bool {
	w.onKill = onKill
	switch {
	case w.exits != nil:
		go func() { _ = w.exits.conn.Read(func(fd uintptr) bool { w.receive(int(fd)); return false }) }()
	case w.pidfds != nil:
		go func() { _ = w.pidfds.conn.Read(func(uintptr) bool { w.collect(); return false }) }()
	}
	return w.exits != nil
}

// Close stops receiving. It waits for the goroutine.
func (w *DeathWatch) Close() {
	if w.exits != nil {
		w.exits.close()
	}
	if w.pidfds != nil {
		w.pidfds.file.Close() // before the lock, which the goroutine may want
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pidfds.close()
		w.pidfds = nil
	}
}

// receive handles all messages that have arrived at the socket fd.
func (w *DeathWatch) receive(fd int) {
	for w.receiveOne(fd) {
	}
}

// receiveOne handles one message. It returns false if there is none.
func (w *DeathWatch) receiveOne(fd int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := unix.Read(fd, w.message[:])
	switch m, ok := parseNotice(w.message[:max(0, n)]); {
	case err == unix.ENOBUFS:
		w.lost = true
		w.deaths.Missing = "the kernel dropped messages on processes that ended: more ended at once than its buffer holds"
		clear(w.cores)
	case err != nil:
		return err == unix.EINTR
	case ok:
		w.take(m)
	}
	return n != 0
}

// take handles the message m. The end of a child of Root is left to Root, which waits for it and knows whether it is
// the job's.
func (w *DeathWatch) take(m notice) {
	at := procfile.Clock(unix.CLOCK_BOOTTIME) - max(0, procfile.Clock(unix.CLOCK_MONOTONIC)-m.at)
	root := w.tree.o.Root
	ofRoot := root != 0 && m.parent == root
	if m.core {
		if len(w.cores) >= maxCores {
			clear(w.cores)
		}
		e := deathEvent{Death: Death{PID: m.pid, PPID: m.parent, Struck: at}}
		if !ofRoot {
			e.relation = w.relationOf(m.pid, m.parent)
		}
		w.identify(&e, false)
		w.cores[m.pid] = e
		return
	}

	killed := syscall.WaitStatus(m.status).Signal() == unix.SIGKILL && m.parent != 0 && w.onKill != nil
	if ofRoot {
		if killed {
			w.onKill(m.pid, m.parent, w.tree.RelationByParent(m.pid, m.parent))
		}
		return
	}
	e, known := w.cores[m.pid]
	delete(w.cores, m.pid)
	e.PID, e.PPID, e.End, e.How = m.pid, cmp.Or(e.PPID, m.parent), at, DeathConnector
	e.setStatus(m.status)
	if e.relation == UnknownRelation {
		e.relation = w.relationOf(m.pid, m.parent)
	}
	if killed {
		w.onKill(m.pid, m.parent, e.relation)
	}
	if e.relation == Foreign && root != 0 { // without Root, a scan may have seen it before its adoption
		return
	}
	if !known {
		w.identify(&e, true)
	}
	w.enqueue(e)
}

// setStatus sets how the process ended from its wait status.
func (e *deathEvent) setStatus(status int) {
	ws := syscall.WaitStatus(status)
	e.status = status
	if ws.Signaled() {
		e.Signal, e.CoreDumped = SignalName(ws.Signal()), ws.CoreDump()
	} else {
		e.ExitCode = ws.ExitStatus()
	}
}

// SignalName returns the name of sig. Real-time signals have names such as SIGRTMIN+1.
func SignalName(sig syscall.Signal) string {
	return cmp.Or(unix.SignalName(sig), "SIGRTMIN+"+strconv.Itoa(int(sig)-34))
}

// relationOf returns the relation of process pid, which had the given parent, to the job.
func (w *DeathWatch) relationOf(pid, parent int) Relation {
	now := procfile.Clock(unix.CLOCK_MONOTONIC)
	switch {
	case parent == 0:
		return UnknownRelation
	case parent == w.parent.pid && now-w.parent.at < relationFor:
		return w.parent.relation
	}
	relation := w.tree.RelationByParent(pid, parent)
	if w.tree.o.Root != 0 && relation != UnknownRelation { // without Root, Ignore decides on each process
		w.parent = parentRelation{parent, relation, now}
	}
	return relation
}

// identify sets the name and the start of the process of e, if it still exists. ended reports whether it must be dead:
// then it has not been waited for, so no later process can have its ID.
func (w *DeathWatch) identify(e *deathEvent, ended bool) {
	data, err := w.file.Read("/proc/"+strconv.Itoa(e.PID)+"/stat", maxFile)
	if err != nil {
		return
	}
	if s, err := parseStat(data, int32(e.PID)); err == nil && (!ended || s.state == 'Z' || s.state == 'X') {
		e.fromStat(&s)
	}
}

// fromStat sets what the stat of the process of e shows.
func (e *deathEvent) fromStat(s *stat) {
	e.Start, e.Command, e.CPUSeconds = sinceBoot(s.start), s.name.String(), s.own/procfile.UserHZ
	e.PPID = cmp.Or(e.PPID, int(s.ppid))
}

// enqueue keeps e until the next scan. If too many are pending, it only counts e, if its process is the job's.
func (w *DeathWatch) enqueue(e deathEvent) {
	switch {
	case len(w.pending) < maxPending:
		w.pending = append(w.pending, e)
	case e.relation != InJob || e.status == 0:
	case e.isNotable(false):
		w.deaths.Dropped++
	default:
		w.deaths.Quiet++
	}
}

// collect takes the ends of the processes with pidfds.
func (w *DeathWatch) collect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pidfds != nil {
		w.pidfds.collect(w.enqueue)
	}
}

// scanned completes the ends since the previous scan. The table of t is from the newest scan, and still has the entries
// of the processes that have ended. reaped are the processes that Root has waited for.
func (w *DeathWatch) scanned(t *Tree, reaped []ReapedProcess) {
	if w == nil {
		return
	}
	if w.exits != nil { // messages may have arrived before the goroutine was woken
		_ = w.exits.conn.Control(func(fd uintptr) { w.receive(int(fd)) })
	}
	w.collect()

	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range reaped {
		w.addReaped(end)
	}
	for i := range w.pending {
		w.complete(&t.table, &w.pending[i])
	}
	w.resolve(&t.table)
	d := &w.deaths
	notable := w.vanished(&t.table)
	w.pending = slices.DeleteFunc(w.pending, func(e deathEvent) bool {
		switch {
		case e.relation != InJob || e.status == 0:
		case e.isNotable(e.measured):
			notable = append(notable, e.Death)
		default:
			d.addQuiet(e.Death)
		}
		return e.relation != UnknownRelation
	})
	d.Add(notable...)
	w.lost = false
	if w.pidfds.follow(t.table.living, t.o.Root) {
		d.Missing = "how some processes ended is not known: only root sees it for another user's process"
	}
	if r := w.result; r == nil || d.total() != r.total() || d.Missing != r.Missing {
		published := *d
		published.List = slices.Clone(d.List)
		w.result = &published
	}
}

// addReaped adds end, a process that Root has waited for. Another source may have noticed its end before: when the
// process ended, its parent did not wait for it, and Root did so after the parent's end.
func (w *DeathWatch) addReaped(end ReapedProcess) {
	w.deaths.Quiet, w.deaths.Dropped = w.deaths.Quiet+end.Failed, w.deaths.Dropped+end.Killed
	e := w.cores[end.PID]
	delete(w.cores, end.PID)
	filed, known := w.filed[end.PID]
	if end.Main || end.Status == 0 || known && filed.status == end.Status {
		return
	}
	same := func(e deathEvent) bool { return e.PID == end.PID && e.status == end.Status }
	i := slices.IndexFunc(w.pending, same)
	if i < 0 {
		e.PID, e.PPID, e.End = end.PID, cmp.Or(e.PPID, w.tree.o.Root), end.At
		e.setStatus(end.Status)
		i, w.pending = len(w.pending), append(w.pending, e)
	}
	found := &w.pending[i]
	found.How, found.relation, found.measured, found.CPUSeconds = DeathWaited, InJob, true, end.CPUSeconds
}

// row returns the table's entry of the process that had the given ID at a time. The table holds processes of the job
// only.
func (b *table) row(pid int, at time.Duration) *entry {
	e := cmp.Or(findEntry(b.gone, pid), findEntry(b.living, pid)) // living: it ended after the scan, or is a zombie
	if e == nil || e.row.Start > at {
		return nil
	}
	return e
}

// complete adds to e what the table has on its process.
func (w *DeathWatch) complete(b *table, e *deathEvent) {
	if row := b.row(e.PID, e.End); row != nil && (e.Start == 0 || e.Start == row.row.Start) {
		row.endKnown = true
		if e.How == DeathWaited { // this includes the children
			e.CPUSeconds -= row.counted
		}
		e.relation, e.measured, e.CPUSeconds = InJob, true, max(row.row.CPUSeconds, e.CPUSeconds)
		e.Start, e.PeakMemory = row.row.Start, row.row.PeakMemory
		e.Command, e.PPID = row.command(), cmp.Or(e.PPID, row.row.PPID)
	}
	if e.relation == InJob {
		w.remember(e)
	}
}

// remember adds e, the end of a process of the job, to filed.
func (w *DeathWatch) remember(e *deathEvent) {
	if len(w.filed) >= maxFiled {
		clear(w.filed)
	}
	w.filed[e.PID] = *e
}

// resolve determines the relations that are unknown because the parent was gone: by the table, or by the parent's own
// end, which comes after its child's.
func (w *DeathWatch) resolve(b *table) {
	for i := range slices.Backward(w.pending) {
		e := &w.pending[i]
		if e.relation != UnknownRelation {
			continue
		}
		parent, failed := w.filed[e.PPID]
		switch after := parent.End - e.End; {
		case e.PPID != 0 && b.row(e.PPID, e.End) != nil, failed && after >= 0 && after < resolveWithin:
			e.relation = InJob
			w.remember(e)
		case e.PPID == 0 || b.now-e.End > resolveWithin:
			e.relation = Foreign
		}
	}
}

// vanished returns the processes that the newest scan did not find any more, if nothing else is known about their ends
// and none of the sources would have reported them.
func (w *DeathWatch) vanished(b *table) (out []Death) {
	for _, e := range b.gone {
		if (w.exits == nil || w.lost) && !e.endKnown && e.reaped == nil && e.scans >= 2 {
			out = append(out, Death{PID: e.row.PID, PPID: e.row.PPID, Command: e.command(), Start: e.row.Start, End: b.now,
				How: DeathUnknown, CPUSeconds: e.row.CPUSeconds, PeakMemory: e.row.PeakMemory})
		}
	}
	return out
}
