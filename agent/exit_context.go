package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// exitContext collects facts about the job's end that go beyond its exit status.
func (w *commandRun) exitContext(status job.Status) diagnosis.ExitContext {
	e := diagnosis.ExitContext{
		Scheduler: w.o.identity.Scheduler, TimeLimit: w.o.identity.EndTime, Timeout: timeoutEnd(host.Now()),
		Signals: status.ReceivedSignals,
	}
	if status.Err != nil {
		e.UnknownReason = status.Err.Error()
	}
	if status.ExitCode != 0 {
		e.Space, e.DiskPaths = w.o.freeSpaceAfter()
		e.CoreDumped = status.CoreDumped
		w.findCores(&e, status.Start)
		select {
		case e.SpaceBefore = <-w.freeSpaceBefore:
		default: // the measurement hangs
		}
	}

	return e
}

// findCores looks for core files of the job if the job dumped core or a file system is full.
func (w *commandRun) findCores(e *diagnosis.ExitContext, since time.Time) {
	if !e.CoreDumped && !slices.ContainsFunc(e.Space, diagnosis.IsFull) {
		return
	}
	type found struct {
		cores   []host.CoreFile
		written bool
	}
	f, _ := timeout.Call(time.Second, func() (f found) { // the file system may hang
		f.cores, f.written = host.FindCoreFiles(w.o.writtenPaths(), since.Add(-fileClock))
		return f
	})
	e.Cores, e.CoresWritten = f.cores, f.written
}

// fileClock is an upper bound on how far file timestamps lag behind the clock: they advance with the kernel's ticks.
const fileClock = 50 * time.Millisecond

// A signalObserver records the signals sent to this process, so the journal names the sender even if perfagent is
// killed together with the job.
type signalObserver struct{ *commandRun }

func (w signalObserver) begin(*collector.Recording) {}

func (w signalObserver) observe(_ *collector.Sample, rec *collector.Recording) {
	rec.Account.Signals = w.signals.Received() // a new slice, because copies of rec keep the old one
}

func (w signalObserver) end() []reporter.Missing { return nil }

// journalSignals writes each signal to the journal immediately, because the next sample may be far off.
func (w *commandRun) journalSignals(ctx context.Context) {
	for {
		select {
		case s := <-w.signals.Incoming():
			w.output.signal(s)
			if s.Signal == "SIGTERM" || s.Signal == "SIGINT" {
				w.scrapeNow()
			}
		case <-ctx.Done():
			return
		}
	}
}

// writtenPaths returns paths on the file systems to which a job is likely to write: the working directory, the
// directory for temporary files, the report directory, and the disk paths.
func (o Options) writtenPaths() []string {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "."
	}
	out := o.Out
	makeAbsolute(&out)

	var unique []string
	for _, p := range append([]string{cwd, os.TempDir(), out}, o.DiskPaths...) {
		if !slices.Contains(unique, p) {
			unique = append(unique, p)
		}
	}

	return unique
}

// freeSpaceTimeout limits how long the job's start waits for free space to be measured. The measurement should come
// first, because the job may fill a disk immediately, but a file system may hang.
const freeSpaceTimeout = 10 * time.Millisecond

// measureFreeSpace measures the free space of writtenPaths in a new goroutine, which sends the result to the returned
// channel.
func (o Options) measureFreeSpace() chan []host.FreeSpace {
	before := make(chan []host.FreeSpace, 1)
	go func() {
		paths := o.writtenPaths()
		var there []string
		for _, path := range paths {
			there = append(there, existing(path))
		}

		var free []host.FreeSpace
		for _, r := range host.FreeSpaces(there) {
			for i, path := range paths {
				if there[i] == r.Path {
					r.Path = path
					free = append(free, r)
				}
			}
		}
		before <- free
	}()

	return before
}

// freeSpaceAfter measures the free space at the job's end. watched lists the disk paths for which the result is
// comparable with the samples.
func (o Options) freeSpaceAfter() (free []host.FreeSpace, watched []string) {
	paths, _ := timeout.Call(time.Second, o.writtenPaths) // the working directory may hang
	for _, r := range host.FreeSpaces(paths) {
		free = append(free, r)
		// Samples exclude the space reserved for root, so only file systems without such a reserve are comparable. The
		// results do not include read-only images.
		if r.ReserveMB == 0 && slices.Contains(o.DiskPaths, r.Path) {
			watched = append(watched, r.Path)
		}
	}

	return free, watched
}

// existing returns path or, if it does not exist yet, its nearest existing parent directory. The report directory may
// not be created until later.
func existing(path string) string {
	for _, err := os.Stat(path); err != nil && path != filepath.Dir(path); _, err = os.Stat(path) {
		path = filepath.Dir(path)
	}

	return path
}

// timeoutEnd returns the time when timeout(1), the parent of this process, ends the job, computed from its command line
// and its start time in /proc. A TERM from timeout(1) before that time is a forwarded signal. timeoutEnd returns the
// zero time if the parent is not timeout(1), or if the end is unknown.
func timeoutEnd(now host.Instant) time.Time {
	parent := os.Getppid()
	data, _ := procfile.ReadFile("/proc/" + strconv.Itoa(parent) + "/stat")
	var f [procfile.StatStart + 1][]byte
	if _, name, n := procfile.SplitStat(data, f[:]); string(name) != "timeout" || n < len(f) {
		return time.Time{}
	}

	ticks, ok := procfile.ParseCount(f[procfile.StatStart])
	limit, known := diagnosis.TimeoutLimit(procfile.CommandLine(parent))
	const longest = 10 * 365 * 24 * 3600.0 // seconds; a longer limit is effectively no limit
	if !ok || !known || limit > longest || ticks > 1<<40 {
		return time.Time{}
	}

	start := now.Wall.Add(time.Duration(ticks)*time.Second/procfile.UserHZ - now.Boot)
	return start.Add(time.Duration(limit * float64(time.Second)))
}
