package process

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

const (
	maxInterval = 5 * time.Second // the longest interval at which memory and storage I/O are measured

	// Shares of a core that may be used for measuring.
	scanPart = 0.02
	pssPart  = 0.005  // smaps_rollup
	ioPart   = 0.0005 // /proc/PID/io
)

// A Tree tracks the processes of a job. It is not safe for concurrent use.
type Tree struct {
	Next Request // set by the caller before each Read

	o   Options
	dir procDir

	all           []proc // of the newest scan, by ID
	spare, next   []proc // buffers for the next scan
	unlisted      []proc // processes that a scan has found but not listed
	jobProcs      []*proc
	chain         []*proc // processes walked by follow
	scans         int
	lists         int // number of scans that listed all processes
	seq           int64
	newestPID     int64          // ID of the newest process or thread at the newest scan; 0 = unknown
	prevNewestPID int64          // newestPID of the previous scan
	begun         []int32        // processes that have started recently, see findBegun
	incremental   bool           // the newest scan needed no list, because begun was known
	allReadable   bool           // the newest whole scan could read every process
	refreshed     []stat         // stats of the job's processes, for refresh
	clocks        bool           // the kernel has clocks for processes of the job
	starts        map[int]uint64 // start times of Root and Members, when first found
	ended         endedUsage
	held          int // number of open stat files
	maxHeld       int
	hiddenBy      error // why the newest hidden process is hidden

	unread            failure   // unreadable stat files in this scan
	use               TreeUsage // the last measurements
	last              TreeUsage // the last result of Read: use with an estimate of the memory
	failed            map[string]error
	rssOnly           error         // why PSS is no longer measured; nil = PSS is measured
	host              hostMemory    // at the newest Read that measured memory
	swapped           float64       // the host's swap in use when PSS was last measured
	measuredResidency residency     // of the processes when PSS was last measured
	measured          time.Duration // when PSS was last measured
	idleScanFor       time.Duration // how long the last PSS is used while nothing changes
	byNeed            []*proc       // the order of the last pass
	pass              []passEntry   // the results of the last pass
	measuredPSS       float64       // the sum of smaps_rollup in the last pass
	repeatPass        bool          // the last pass raced and must be repeated
	round             round
	hugePages         func() bool // hasHugePages
	mapped            float64     // bytes that the processes have mapped, as of the last pass
	mappedShmem       float64     // the part of mapped in shared memory and tmpfs; NaN = unknown
	shared            sharedMemory
	pageCost          pageCost // of the last smaps_rollup of a large process
	due               struct{ scan, memory, io time.Duration }
	clock             func() clockReading

	ioKnown bool // the I/O of some process has been read

	table      table
	deaths     *DeathWatch         // nil = none
	cpuSamples map[int32]cpuSample // at the last call of Workers, by process ID
}

// A clockReading is a moment on two clocks: the monotonic clock, and the CPU time of the thread, which excludes the
// time of other processes on the CPU.
type clockReading struct{ mono, cpu time.Duration }

// NewTree returns a Tree that has read nothing yet.
func NewTree(o Options) *Tree {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	t := &Tree{o: o, clock: now, pageCost: defaultPageCost, hugePages: sync.OnceValue(hasHugePages),
		shared: newSharedMemory(o.Running)}
	t.use, t.mappedShmem = unknownUsage(), math.NaN()
	return t
}

func now() clockReading {
	return clockReading{procfile.Clock(unix.CLOCK_MONOTONIC), procfile.Clock(unix.CLOCK_THREAD_CPUTIME_ID)}
}

// Read scans the processes, and measures their memory and storage I/O when due. After a scan that took CPU time c, the
// next one is due c / 2 % later, so scans take at most 2 % of a core; until then, Read returns its last result. The
// same rule applies to memory (0.5 %) and storage I/O (0.05 %), but these are deferred for at most 5 s. Memory is
// skipped for up to a minute if nothing suggests that it changed by more than 1 %. Signs of a change are resident
// sizes, the host's swap, the number of processes and, if there are several, their page faults. The first scan, which
// reads every process of the host, does not defer the second.
//
// Read returns an error if nothing can be read, because there is no procfs or no root.
func (t *Tree) Read() (TreeUsage, error) {
	runtime.LockOSThread() // for the thread's CPU clock
	defer runtime.UnlockOSThread()
	begin := t.clock()
	if t.Next.Now {
		t.due.scan, t.due.io = 0, 0
	}
	if begin.mono < t.due.scan {
		use := t.last
		use.Fresh, use.MemoryFresh, use.IOFresh, use.Skipped = false, false, false, true
		return use, nil
	}
	if t.maxHeld == 0 {
		t.maxHeld = descriptors()
	}
	if err := t.dir.open(t.o.Proc, t.maxHeld > 0); err != nil {
		return unknownUsage(), fmt.Errorf("read the job's processes: %w", err)
	}
	defer t.dir.close()
	t.use.MemoryFresh, t.use.IOFresh, t.unread = false, false, failure{}
	if err := t.scan(); err != nil {
		return unknownUsage(), err
	}

	t.fillResident()
	t.sum()
	t.addTickRemainders()
	t.updateTable()
	t.fail("stat", t.unread.why("the stat", len(t.all)))
	end := t.clock()
	if t.scans > 1 {
		t.due.scan = nextDue(begin, end, scanPart)
	}
	if !t.Next.NoIO && end.mono >= t.due.io {
		t.readIO(end)
	}
	if !t.Next.NoMemory {
		t.readMemory()
	}
	t.use.Failed = t.failed

	t.last = t.use
	t.estimateMemory(&t.last)
	return t.last, nil
}

// maxHeld is the maximum number of stat files that are kept open. Each costs the kernel about 4.5 KiB.
const maxHeld = 8192

// descriptors returns the number of files that may be kept open: a quarter of this process's limit, at most maxHeld.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	if limit.Cur < 128 { // descriptors are scarce
		return 0
	}
	return int(min(limit.Cur/4, maxHeld))
}

// Close closes the files that are kept open between scans. The Tree can still be read.
func (t *Tree) Close() {
	t.release(t.all)
	t.dir.closeKept()
}

// nextDue returns when an operation that ran from begin to end may be repeated so that it takes at most the share part
// of a core.
func nextDue(begin, end clockReading, part float64) time.Duration {
	return end.mono + time.Duration(float64(end.cpu-begin.cpu)/part)
}

// fail sets err as the reason why what failed, or clears the reason if err is nil. Callers keep the maps that Read
// returned, so a change creates a new map.
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

// sum sets CPUSeconds, Processes and Threads from the scan.
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

// ownSeconds returns the CPU time of p alone, with the fraction of a tick if known.
func (p *proc) ownSeconds() float64 { return p.own/procfile.UserHZ + p.tickRemainder.Seconds() }

// childSeconds returns the CPU time of the reaped children of p.
func (p *proc) childSeconds() float64 { return (p.ticks - p.own) / procfile.UserHZ }

// rss returns the resident bytes.
func (p *stat) rss() uint64 { return p.pages * uint64(os.Getpagesize()) }

// A failure counts the unreadable processes and keeps the first error.
type failure struct {
	n     int
	first error
}

// note adds to f that the file name of process pid could not be read.
func (t *Tree) note(f *failure, pid int32, name string, err error) {
	if f.n++; f.n == 1 {
		f.first = fmt.Errorf("%s/%d/%s: %w", t.o.Proc, pid, name, err)
	}
}

// why returns the error to show, or nil if nothing failed. what is the value that could not be read, and of is the
// total number of processes.
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
