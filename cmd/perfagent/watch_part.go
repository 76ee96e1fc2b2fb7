package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/plotter/terminal"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/reporter/reportfile"
	"github.com/perfagent/perfagent/reporter/summary"
)

// A watchedPart follows one journal: that of a node, or of a rank of it.
type watchedPart struct {
	bootID      string // boot id of this machine; "" = unknown
	follower    *journal.Follower
	report      *reporter.Report // last read from the journal; nil = nothing yet
	newest      []float64
	writer      journal.WriterState
	locked      bool      // its agent has held the lock
	lastPoll    time.Time // time of the last read
	lastGrowth  time.Time // when it last grew
	readErr     error     // of the last read
	finalReport *reporter.Report
	finalPath   string
	misses      int // reads that found neither journal nor report
}

func newWatchedPart(path, home string) *watchedPart {
	return &watchedPart{bootID: home, follower: journal.Follow(path)}
}

// poll reads what is new.
func (p *watchedPart) poll(now time.Time) {
	if p.hasEnded() {
		return
	}

	grew, err := p.follower.Poll()
	p.readErr = err
	if errors.Is(err, fs.ErrNotExist) {
		p.readFinalReport()
		return
	}

	p.misses = 0
	if grew {
		p.report, p.newest = p.follower.Report(), p.follower.Newest()
	}
	if grew || p.lastPoll.IsZero() {
		p.lastGrowth = now.Add(-p.age(now))
	}

	p.lastPoll = now
	if err != nil && p.report != nil { // it is no longer the journal that we follow
		return
	}

	p.writer = journal.ReadWriterState(p.follower.Path())
	p.locked = p.locked || p.writer == journal.WriterAlive
}

// age returns how long ago the journal was written, by the file's time, but at most the time since
// the last read: the clock of another machine may differ.
func (p *watchedPart) age(now time.Time) time.Duration {
	st, err := os.Stat(p.follower.Path())
	if err != nil {
		return 0
	}

	age := max(0, now.Sub(st.ModTime()))
	if !p.lastPoll.IsZero() {
		age = min(age, now.Sub(p.lastPoll))
	}

	return age
}

// newestReport returns the report, or what is known so far; nil if that is nothing.
func (p *watchedPart) newestReport() *reporter.Report {
	if p.finalReport != nil {
		return p.finalReport
	}
	return p.report
}

// node returns the node from the newest report.
func (p *watchedPart) node() *reporter.Node {
	if r := p.newestReport(); r != nil {
		for _, name := range r.NodeNames() {
			return r.Nodes[name]
		}
	}
	return &reporter.Node{}
}

// readFinalReport reads the report that has replaced the journal: its own, or that of its node, whose ranks were put
// together. Either is written before what it replaces is removed.
func (p *watchedPart) readFinalReport() {
	own := strings.TrimSuffix(p.follower.Path(), "l")
	r, err := reportfile.Read(own, 0)
	if err == nil {
		p.finalReport, p.finalPath = r, own
		return
	}
	if closed, _, isRank := strings.Cut(filepath.Base(own), ".rank-"); isRank && errors.Is(err, fs.ErrNotExist) {
		path := filepath.Join(filepath.Dir(own), closed+".json")
		if r, err := reportfile.Read(path, 0); err == nil {
			p.finalReport, p.finalPath = r, path
			return
		}
	}

	p.misses++
	p.readErr = fmt.Errorf("the journal is gone, and there is no report in its place: %w", err)
}

// hasEnded reports whether the node has ended.
func (p *watchedPart) hasEnded() bool { return p.finalReport != nil || p.isLost() }

// isLost reports whether the journal disappeared without a report.
func (p *watchedPart) isLost() bool { return p.misses > 1 }

// silence returns how long the journal has not grown.
func (p *watchedPart) silence(now time.Time) time.Duration { return max(0, now.Sub(p.lastGrowth)) }

// maxSilence returns how long the journal may stay unchanged without comment.
func (p *watchedPart) maxSilence() time.Duration { return journal.MaxSilence(p.node()) }

// isGone reports whether the agent ended without a report: the lock is free, and the agent held it
// before or ran on this machine. The lock of an agent on another machine may be invisible; then only
// silence counts.
func (p *watchedPart) isGone() bool {
	if p.hasEnded() || p.readErr != nil && p.report != nil || p.writer != journal.WriterGone {
		return false
	}
	if machine := p.node().Host; machine != nil && machine.BootID != "" {
		return p.locked || machine.BootID == p.bootID
	}
	return p.locked || p.silence(p.lastPoll) > p.maxSilence() // before its first sample
}

// running reports whether the agent seems to be at work.
func (p *watchedPart) running(now time.Time) bool {
	return !p.hasEnded() && p.writer.IsActive(p.node(), p.bootID, p.silence(now))
}

// live returns the state of the node for the screen.
func (p *watchedPart) live(now time.Time) terminal.LiveNode {
	known, quiet := 0.0, p.silence(now)
	if p.report != nil {
		known = p.report.Run.WallSeconds
	}

	length, silent := text.Seconds(known+quiet.Seconds()), ", no sample for "+text.Seconds(quiet.Seconds())
	out := terminal.LiveNode{Newest: p.newest, Alarm: true}
	switch {
	case p.finalReport != nil:
		out.State, out.Ended = summary.Headline(p.finalReport), true
		out.Alarm = p.finalReport.Run.Signal != "" || p.finalReport.Run.ExitCode != nil && *p.finalReport.Run.ExitCode != 0
	case p.isLost():
		out.State = "ended without a report here"
	case p.isGone() && p.report == nil:
		out.State = "perfagent is gone"
		if p.readErr != nil {
			out.Problem = p.readErr.Error()
		}
	case p.readErr != nil:
		out.State, out.Problem = "cannot be read", p.readErr.Error()
	case p.isGone():
		since := p.report.Run.End.UTC().Format("15:04:05 MST")
		out.State = fmt.Sprintf("perfagent is gone since %s, after %s", since, text.Seconds(known))
	case p.writer == journal.WriterAlive && quiet > p.maxSilence():
		out.State = "running for " + length + silent
	case quiet > p.maxSilence():
		out.State = "seen for " + text.Seconds(known) + silent
	case p.report == nil:
		out.State, out.Alarm = "starting", false
	default:
		out.State, out.Alarm = "running for "+length, false
	}

	return out
}
