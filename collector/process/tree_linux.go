package process

import (
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	maxBeat  = 5 * time.Second
	scanPart = 0.02   // of a core, for scans
	pssPart  = 0.005  // of a core, for smaps_rollup
	ioPart   = 0.0005 // of a core, for /proc/PID/io
)

// Tree is the processes of a job. It is not safe for concurrent use.
type Tree struct {
	o   Options
	dir procDir

	all         []proc // of the newest scan, by id
	spare, next []proc // where the scan after it goes
	late        []proc // processes that a scan met and its list lacks
	ours        []*proc
	chain       []*proc // what follow walked over
	scans       int
	seq         int64
	rootStart   uint64
	held        int // descriptors that are held open
	maxHeld     int
	hiddenBy    error // why the newest process that is hidden is so

	unread   failure // stat, in this scan
	use      Use     // what the last Read gave
	failed   map[string]error
	rssOnly  error         // why PSS is not measured any more
	weighed  residence     // when PSS was measured last
	measured time.Duration // and when that was
	rest     time.Duration // and how long it holds while nothing moves
	byNeed   []*proc       // the order of the newest pass
	pace     pace          // of the newest smaps_rollup that tells one
	due      struct{ scan, memory, io time.Duration }
	clock    func() instant

	noMemory bool // somebody else tells it
}

// instant is a moment on two clocks: that of the world, and the processor time of
// the thread, which another process that has the CPU does not stretch.
type instant struct{ wall, cpu time.Duration }

// NewTree gives the Tree of o.Root and reads nothing.
func NewTree(o Options) *Tree {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	t := &Tree{o: o, clock: now, pace: firstPace}
	t.use = nothing()
	return t
}

func nothing() Use {
	nan := math.NaN()
	return Use{CPUSeconds: nan, Processes: nan, Threads: nan, Memory: nan, ReadBytes: nan, WriteBytes: nan}
}

func (t *Tree) proc() string { return t.o.Proc }

func now() instant {
	return instant{clock(unix.CLOCK_MONOTONIC), clock(unix.CLOCK_THREAD_CPUTIME_ID)}
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Read scans the processes, and measures their memory and storage bytes when these
// are due. A scan that took c of processor time is followed by the next one c/2 %
// later, so that scans take at most that of a core; until then Read gives what it
// gave before. The same holds for memory (0.5 %) and storage bytes (0.05 %), which
// however are not put off for more than 5 s; memory is not measured anew before that as long
// as nothing says that it moved by more than 1 %: resident sizes, the number of processes,
// and with several their page faults. The very first scan reads every process of the host
// and puts nothing off.
//
// The error says that there is nothing to be read: no procfs, or no root.
func (t *Tree) Read() (Use, error) {
	runtime.LockOSThread() // its clock is read
	defer runtime.UnlockOSThread()
	begin := t.clock()
	t.use.Fresh, t.use.MemoryFresh, t.use.IOFresh, t.use.Skipped = false, false, false, false
	if begin.wall < t.due.scan {
		t.use.Skipped = true
		return t.use, nil
	}
	if err := t.dir.open(t.proc()); err != nil {
		return nothing(), fmt.Errorf("read the job's processes: %w", err)
	}
	defer t.dir.close()
	if t.maxHeld == 0 {
		t.maxHeld = descriptors()
	}
	t.unread = failure{}
	if err := t.scan(); err != nil {
		return nothing(), err
	}

	t.sum()
	t.sumExact()
	t.fail("stat", t.unread.why("the stat", len(t.all)))
	end := t.clock()
	if t.scans > 1 {
		t.due.scan = after(begin, end, scanPart)
	}
	if end.wall >= t.due.io {
		t.readIO(end)
	}
	if !t.noMemory {
		t.readMemory()
	}
	t.use.Failed = t.failed
	return t.use, nil
}

// maxHeld bounds the descriptors that are held, each of which takes the kernel
// about 4.5 KiB.
const maxHeld = 8192

// descriptors is how many may be held: a quarter of what this process may have.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	if limit.Cur < 128 { // they are scarce
		return 0
	}
	return int(min(limit.Cur/4, maxHeld))
}

// Hurry has the next Read measure CPU time and storage whatever that costs: it is to be
// the last.
func (t *Tree) Hurry() { t.due.scan, t.due.io = 0, 0 }

// Memory says whether Read measures memory from now on, which is most of its cost. It
// does at first.
func (t *Tree) Memory(wanted bool) { t.noMemory = !wanted }

// Close gives back what is held open between scans. The Tree can be read again.
func (t *Tree) Close() error {
	t.release(t.all)
	return nil
}

// after is when something that was done from begin to end may be done again, to
// take that part of a core.
func after(begin, end instant, part float64) time.Duration {
	return end.wall + time.Duration(float64(end.cpu-begin.cpu)/part)
}

// fail sets why something failed, or that it did not. Callers hold the maps that
// they were given, so a change makes a new one.
func (t *Tree) fail(what string, err error) {
	if old := t.failed[what]; err == nil && old == nil || err != nil && old != nil && err.Error() == old.Error() {
		return
	}
	failed := maps.Clone(t.failed)
	if failed == nil {
		failed = make(map[string]error, 1)
	}
	failed[what] = err
	if err == nil {
		delete(failed, what)
	}
	if t.failed = failed; len(failed) == 0 {
		t.failed = nil
	}
}

// sum adds up what the scan read of the job's processes.
func (t *Tree) sum() {
	u := &t.use
	var ticks float64
	u.Processes, u.Threads, u.Fresh = 0, 0, true
	for _, p := range t.ours {
		ticks += p.ticks
		if !p.dead() {
			u.Processes++
			u.Threads += p.threads
		}
	}
	u.CPUSeconds = ticks / procfile.UserHZ
}

// rss is the resident bytes.
func (p *proc) rss() uint64 { return p.pages * uint64(os.Getpagesize()) }
