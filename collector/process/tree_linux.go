package process

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	maxInterval = 5 * time.Second // the longest interval of memory and storage bytes

	// The share of a core that may be spent on each.
	scanPart = 0.02
	pssPart  = 0.005  // smaps_rollup
	ioPart   = 0.0005 // /proc/PID/io
)

// A Tree is the processes of a job. It is not safe for concurrent use.
type Tree struct {
	o   Options
	dir procDir

	all         []proc // of the newest scan, by id
	spare, next []proc // where the next scan goes
	late        []proc // processes that a scan met and that were not listed
	jobProcs    []*proc
	chain       []*proc // those that follow has walked over
	scans       int
	seq         int64
	newest      int64          // the process or thread that began last, at the newest scan; 0 = not known
	before      int64          // the same, at the scan before
	newestHint  int64          // the same, as the caller has just read it; 0 = not told
	begun       []int32        // the processes that have begun since then
	incremental bool           // the newest scan listed nothing: what had begun was known
	whole       bool           // the newest whole scan could read every process
	anew        []stat         // of ours, for refresh
	clocks      bool           // the kernel has clocks for processes of the job
	starts      map[int]uint64 // of Root and Named, as they were first found
	ended       endedUsage
	held        int // open descriptors
	maxHeld     int
	hiddenBy    error // why the newest hidden process is hidden

	unread            failure   // stat, in this scan
	use               TreeUsage // what the last Read gave
	failed            map[string]error
	rssOnly           error         // why PSS is no longer measured
	host              hostMemory    // at the newest Read that measured memory
	swapped           float64       // swap of the host in use when PSS was measured last
	measuredResidency residency     // when PSS was measured last
	measured          time.Duration // and when that was
	rest              time.Duration // and how long it holds while nothing moves
	byNeed            []*proc       // the order of the newest pass
	pass              []passEntry   // and what it made of them
	measuredPSS       float64       // the sum of what it read of smaps_rollup
	estimate          memoryEstimate
	again             bool // it raced, and is to be repeated
	round             round
	hugePages         func() bool // reports whether the host has a pool of them
	mapped            float64     // bytes that the processes have mapped, by the newest pass
	shared            sharedMemory
	pageCost          pageCost // of the newest smaps_rollup that was large enough
	due               struct{ scan, memory, io time.Duration }
	clock             func() clockReading

	noMemory bool // somebody else measures memory
	ioKnown  bool // storage bytes of some process have been read
	noIO     bool // and storage bytes

	table      table
	cpuSamples map[int32]cpuSample // at the last call of Workers, by process ID
}

// A clockReading is a moment on two clocks: the monotonic one, and the CPU time of the thread, which is
// not stretched by other processes that have the CPU.
type clockReading struct{ mono, cpu time.Duration }

// NewTree returns the Tree of o.Root. It reads nothing yet.
func NewTree(o Options) *Tree {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	t := &Tree{o: o, clock: now, pageCost: firstPace, hugePages: sync.OnceValue(hasHugePages),
		shared: newSharedMemory(o.Running)}
	t.use = unknownUsage()
	return t
}

func (t *Tree) proc() string { return t.o.Proc }

func now() clockReading {
	return clockReading{clock(unix.CLOCK_MONOTONIC), clock(unix.CLOCK_THREAD_CPUTIME_ID)}
}

func clock(id int32) time.Duration {
	t, _ := procfile.ClockGettime(id)
	return t
}

// Read scans the processes, and measures their memory and storage bytes when these are due. A scan
// that took c of CPU time is followed by the next one c/2 % later, so that scans take at most that
// share of a core; until then Read returns what it returned before. The same holds for memory (0.5
// %) and storage bytes (0.05 %), which however are put off for at most 5 s. Memory is not measured
// again before that unless something says that it moved by more than 1 %: resident sizes, the
// number of processes or, if there are several, their page faults. The very first scan reads every
// process of the host and puts nothing off.
//
// The error says that nothing can be read: there is no procfs, or no root.
func (t *Tree) Read() (TreeUsage, error) {
	runtime.LockOSThread() // the thread's clock is read
	defer runtime.UnlockOSThread()
	begin := t.clock()
	t.use.Fresh, t.use.MemoryFresh, t.use.IOFresh, t.use.Skipped = false, false, false, false
	if begin.mono < t.due.scan {
		use := t.use
		use.Skipped, use.Memory, use.MemoryUpToDate, use.MemoryLowerBound = true, t.estimate.memory,
			t.estimate.upToDate, t.estimate.lowerBound
		return use, nil
	}
	if t.maxHeld == 0 {
		t.maxHeld = descriptors()
	}
	if err := t.dir.open(t.proc(), t.maxHeld > 0); err != nil {
		return unknownUsage(), fmt.Errorf("read the job's processes: %w", err)
	}
	defer t.dir.close()
	t.unread = failure{}
	if err := t.scan(); err != nil {
		return unknownUsage(), err
	}

	t.fillResident()
	t.sum()
	t.sumExact()
	t.account()
	t.fail("stat", t.unread.why("the stat", len(t.all)))
	end := t.clock()
	if t.scans > 1 {
		t.due.scan = after(begin, end, scanPart)
	}
	if !t.noIO && end.mono >= t.due.io {
		t.readIO(end)
	}
	if !t.noMemory {
		t.readMemory()
	}
	t.use.Failed = t.failed

	use := t.use
	t.estimate = t.estimateMemory(use)
	use.Memory, use.MemoryUpToDate, use.MemoryLowerBound = t.estimate.memory, t.estimate.upToDate, t.estimate.lowerBound
	return use, nil
}

// maxHeld bounds the descriptors that are held. Each costs the kernel about 4.5 KiB.
const maxHeld = 8192

// descriptors returns how many files may be held open: a quarter of what this process may have.
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

// ForceNext makes the next Read, which is to be the last, measure CPU time and storage at any cost.
func (t *Tree) ForceNext() { t.due.scan, t.due.io = 0, 0 }

// MeasureMemory sets whether Read measures memory, which is most of its cost. It does at first.
func (t *Tree) MeasureMemory(wanted bool) { t.noMemory = !wanted }

// MeasureStorage sets whether Read measures storage bytes. It does at first.
func (t *Tree) MeasureStorage(wanted bool) { t.noIO = !wanted }

// SetNewestPID tells the ID of the process or thread that began last, the last number of /proc/loadavg, if the caller
// has just read it: then the next Read does not. 0 tells nothing.
func (t *Tree) SetNewestPID(id int64) { t.newestHint = id }

// Close closes what is held open between scans. The Tree can be read again.
func (t *Tree) Close() error {
	t.release(t.all)
	t.dir.letGo()
	return nil
}

// after returns when something that was done from begin to end may be done again, to take at most
// that part of a core.
func after(begin, end clockReading, part float64) time.Duration {
	return end.mono + time.Duration(float64(end.cpu-begin.cpu)/part)
}

// fail sets or clears the reason why something failed. Callers hold the maps that they were given,
// so a change makes a new one.
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
	for _, p := range t.jobProcs {
		ticks += p.ticks
		if !p.dead() {
			u.Processes++
			u.Threads += p.threads
		}
	}
	u.CPUSeconds = t.ended.cpu + ticks/procfile.UserHZ
}

// ownSeconds returns the CPU time of a process itself, exactly where that is known.
func (p *proc) ownSeconds() float64 { return p.own/procfile.UserHZ + p.cut.Seconds() }

// childSeconds returns the CPU time of the children that a process waited for.
func (p *proc) childSeconds() float64 { return (p.ticks - p.own) / procfile.UserHZ }

// rss returns the resident bytes.
func (p *stat) rss() uint64 { return p.pages * uint64(os.Getpagesize()) }

// A failure counts the processes that could not be read, and keeps the first of them.
type failure struct {
	n     int
	first error
}

// note adds a process whose file could not be read.
func (t *Tree) note(f *failure, pid int32, name string, err error) {
	if f.n++; f.n == 1 {
		f.first = fmt.Errorf("%s/%d/%s: %w", t.proc(), pid, name, err)
	}
}

// why returns the reason for people, or nil if nothing failed.
func (f *failure) why(what string, of int) error {
	if f.n == 0 {
		return nil
	}
	hint := ""
	if errors.Is(f.first, fs.ErrPermission) {
		hint = " (to read other users' processes, run perfagent as root)"
	}
	return fmt.Errorf("%s of %d of %d processes cannot be read%s, the first: %w", what, f.n, of, hint, f.first)
}
