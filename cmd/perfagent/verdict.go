package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// ending gathers what is known of the job's end beyond its exit status.
func (o *sampleOptions) ending(status job.Status, before <-chan []reporter.Room) reporter.Ending {
	e := reporter.Ending{}
	if status.Err != nil {
		e.NotKnown = status.Err.Error()
	}
	for _, s := range status.Sent {
		e.Signals = append(e.Signals, reporter.Sent(sent(s)))
	}
	e.Scheduler, e.Limit = endTime(os.LookupEnv)
	e.Timeout = timeoutEnd(host.Now())
	if status.ExitCode != 0 {
		e.Rooms, e.DiskPaths = o.rooms()
		select {
		case e.RoomsBefore = <-before:
		default: // a file system that does not answer
		}
	}
	return e
}

// noteSignals has the journal tell who wanted the job to end, for the case that perfagent
// is killed with it.
func (w *wrap) noteSignals(rec *collector.Recording) {
	signals := w.signals.Sent()
	if len(signals) == 0 {
		return
	}
	rec.Account.Signals = nil // readers of copies have the old one
	for _, s := range signals {
		rec.Account.Signals = append(rec.Account.Signals, sent(s))
	}
}

// journalSignals does so at once: the next sample may be far off.
func (w *wrap) journalSignals(ctx context.Context) {
	for {
		select {
		case s := <-w.signals.Noted():
			w.place.signal(sent(s))
		case <-ctx.Done():
			return
		}
	}
}

// sent is a signal in the collector's words, which are the reporter's too.
func sent(s job.Sent) collector.Signal {
	return collector.Signal{Signal: s.Name, Number: int(s.Signal), At: s.At, Kernel: s.Kernel, PID: s.PID, Process: s.Process}
}

// roomPaths are in the file systems that a job is likely to write to: that of its directory,
// of temporary files, of the reports, and those that are watched.
func (o *sampleOptions) roomPaths() (unique []string) {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "."
	}
	out, err := filepath.Abs(o.out)
	if err != nil {
		out = o.out
	}
	paths := []string{cwd, os.TempDir(), out}
	for _, p := range append(paths, o.diskPaths...) {
		if !slices.Contains(unique, p) {
			unique = append(unique, p)
		}
	}
	return unique
}

// roomsBefore asks them while the job is being started; nobody waits for the answer.
func (o *sampleOptions) roomsBefore() <-chan []reporter.Room {
	before := make(chan []reporter.Room, 1)
	go func() {
		paths := o.roomPaths()
		var there []string
		for _, path := range paths {
			there = append(there, existing(path))
		}
		var rooms []reporter.Room
		for _, r := range host.FreeSpaces(there) {
			for i, path := range paths {
				if there[i] == r.Path {
					rooms = append(rooms, newRoom(path, r))
				}
			}
		}
		before <- rooms
	}()
	return before
}

// existing is a path or, where there is nothing yet, the next above it: the directory of the
// reports may have yet to be made.
func existing(path string) string {
	for _, err := os.Stat(path); err != nil && path != filepath.Dir(path); _, err = os.Stat(path) {
		path = filepath.Dir(path)
	}
	return path
}

func newRoom(path string, r host.FreeSpace) reporter.Room {
	return reporter.Room{Path: path, FreeMB: r.Free / collector.MiB, Inodes: r.Inodes}
}

// rooms asks the file systems, and tells which of them are watched.
func (o *sampleOptions) rooms() (rooms []reporter.Room, watched []string) {
	paths, _ := patience.Ask(time.Second, o.roomPaths) // the working directory may hang
	for _, r := range host.FreeSpaces(paths) {
		rooms = append(rooms, newRoom(r.Path, r))
		// Samples leave out what is reserved for root; many file systems reserve nothing. What
		// cannot be written to at all, such as an image, is not among the rooms.
		if r.Reserve == 0 && slices.Contains(o.diskPaths, r.Path) {
			watched = append(watched, r.Path)
		}
	}
	return rooms, watched
}

// endTime is who is in charge of the job, and when it ends it if that is told.
func endTime(lookup func(string) (string, bool)) (name string, limit time.Time) {
	s, _ := inCharge(lookup)
	if s.limit == "" {
		return s.name, limit
	}
	seconds, _ := lookup(s.limit)
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && n > 0 && n < 1<<40 {
		limit = time.Unix(n, 0)
	}
	return s.name, limit
}
