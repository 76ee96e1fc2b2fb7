package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
)

// A writer holds the state of the journal's goroutine, which writes the file.
type writer struct {
	journal  *Journal
	file     *os.File
	size     int64              // of complete lines
	bound    int64              // size that triggers a rewrite
	signals  []collector.Signal // from signal lines; the account of a snapshot may lack them
	failing  bool               // after a write error, such as a full disk, until a rewrite succeeds
	retry    time.Time          // earliest time of that rewrite
	firstErr error
	changes  uint64 // Changes of the last written Aggregator
}

// run writes until the queue is closed.
func (w *writer) run() {
	defer close(w.journal.done)
	timer := time.NewTimer(syncAfter)
	timer.Stop()
	var oldest time.Time // arrival of the first line that waits for fsync; zero if there is none
	var ticks <-chan time.Time
	if w.journal.copyAggregator != nil {
		ticker := time.NewTicker(operationsInterval)
		defer ticker.Stop()
		ticks = ticker.C
	}

	for {
		select {
		case e, open := <-w.journal.queue:
			if !open {
				w.writeOperations()
				return
			}
			w.take(e)
		case s := <-w.journal.signals:
			w.takeSignal(s)
		case <-ticks:
			w.writeOperations()
		case <-timer.C:
			oldest = time.Time{}
			w.sync()
			continue
		}

		switch now := time.Now(); {
		case oldest.IsZero():
			oldest = now
			timer.Reset(syncAfter)
		case now.Sub(oldest) >= syncWithLine:
			oldest = time.Time{}
			timer.Stop()
			w.sync()
		}
	}
}

// sync waits until all lines are on disk.
func (w *writer) sync() { w.fail(w.file.Sync()) }

// take writes an entry. After an error it drops lines, and requests a snapshot when it is time to retry.
func (w *writer) take(e entry) {
	switch {
	case e.snapshot != nil:
		if err := w.rewrite(e.snapshot, e.newest); err != nil {
			w.fail(err)
			return
		}
		w.failing = false
	case w.failing:
		if time.Now().After(w.retry) {
			w.journal.wantSnapshot.Store(true)
		}
	default:
		w.appendLine(e.line)
	}
}

// appendLine appends a line, and requests a snapshot when the file has grown enough.
func (w *writer) appendLine(line []byte) {
	if err := w.write(line); err != nil {
		w.fail(err)
		return
	}
	if w.size > w.bound {
		w.journal.wantSnapshot.Store(true)
	}
}

// write appends complete lines, or nothing.
func (w *writer) write(data []byte) error {
	if _, err := w.file.Write(data); err != nil {
		_ = w.file.Truncate(w.size) // if this fails, readers skip the incomplete line
		return err
	}
	w.size += int64(len(data))
	return nil
}

// rewrite replaces the journal with its head and one snapshot of rec, which is a copy.
func (w *writer) rewrite(rec *collector.Recording, newest newestSample) error {
	tmp := w.journal.path + ".tmp"
	os.Remove(tmp) // from an earlier attempt
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}

	lockShared(f)
	rec.Account.Signals = allSignals(rec.Account.Signals, w.signals)
	_, errHead := f.Write(w.journal.head)
	errLine := writeSnapshot(f, rec, newest)
	main, errSize := f.Stat()
	var operations []byte
	var errOperations error
	if rec.Operations != nil {
		operations, errOperations = encodeOperations(rec.Operations.Aggregator)
	}
	_, errWrite := f.Write(operations)
	if err = errors.Join(errHead, errLine, errSize, errOperations, errWrite); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(tmp, w.journal.path)
	}
	if err != nil {
		f.Close()
		os.Remove(tmp)
		return err
	}

	w.file.Close()
	w.file, w.size = f, main.Size()+int64(len(operations))
	w.bound = nextRewrite(main.Size()) + int64(len(operations))
	if rec.Operations != nil {
		w.changes = rec.Operations.Aggregator.Changes()
	}

	return nil
}

// nextRewrite returns the file size that triggers the next rewrite. Near the promised maximum size the rewrite comes
// sooner, because the lines that are queued in the meantime must also fit.
func nextRewrite(size int64) int64 {
	const near = maxSize - 160<<10 // a full queue of lines of 2 KiB, and a margin
	switch {
	case size > maxSize: // a large --max-length: avoid constant rewriting
		return size + size/2
	case size+maxGrowth > near:
		return max(near, size+maxGrowth/4)
	}
	return size + maxGrowth
}

// fail records the first error, such as a full disk, and pauses the writing for retryAfter. It does nothing if err is
// nil.
func (w *writer) fail(err error) {
	if err == nil {
		return
	}
	if w.firstErr == nil {
		w.firstErr = fmt.Errorf("write journal %s: %w", w.journal.path, err)
	}
	w.failing, w.retry = true, time.Now().Add(retryAfter)
}

// maxSignals is how many of the newest signals from lines are kept. They are limited because an agent may receive
// SIGUSR1 continuously. An account keeps fewer.
const maxSignals = 64

// Signal writes a signal that perfagent received to the journal immediately. The account of the next sample also
// contains it, but perfagent may be killed before then. Signal never waits for the disk, and may be called at any time.
func (j *Journal) Signal(s collector.Signal) {
	select {
	case j.signals <- s:
	default: // the disk is slow; the account contains the signal
	}
}

// takeSignal appends the line of a signal.
func (w *writer) takeSignal(s collector.Signal) {
	w.signals = withSignal(w.signals, s)
	if w.failing {
		return // the snapshot will include it
	}
	line, err := text.JSON(map[string]collector.Signal{"signal": s})
	if err == nil {
		err = w.write(append(line, '\n'))
	}
	w.fail(err)
}

// withSignal adds s to list, and drops the oldest signals beyond maxSignals.
func withSignal(list []collector.Signal, s collector.Signal) []collector.Signal {
	list = append(list, s)
	return list[max(0, len(list)-maxSignals):]
}

// allSignals merges the signals of the account with the signals of the journal's signal lines, oldest first, without
// duplicates. The line of a signal may come before or after the account that contains the signal. Neither list is
// modified.
func allSignals(account, lines []collector.Signal) []collector.Signal {
	all := slices.Clone(account)
	for _, s := range lines {
		same := func(a collector.Signal) bool { return a.At.Equal(s.At) && a.Signal == s.Signal && a.PID == s.PID }
		if !slices.ContainsFunc(all, same) {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b collector.Signal) int { return a.At.Compare(b.At) })
	return all
}
