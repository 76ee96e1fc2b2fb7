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

// A watchedPart follows one journal: of a node, or of one of its ranks.
type watchedPart struct {
	bootID      string // of this machine; "" = unknown
	follower    *journal.Follower
	report      *reporter.Report // from the journal; nil = nothing yet
	newest      []float64
	writer      journal.WriterState
	locked      bool      // the agent was seen holding the lock
	lastPoll    time.Time // time of the last read
	lastGrowth  time.Time // time of the last growth
	readErr     error     // of the last read
	finalReport *reporter.Report
	finalPath   string
	misses      int // reads that found neither a journal nor a report
}

func newWatchedPart(path, bootID string) *watchedPart {
	return &watchedPart{bootID: bootID, follower: journal.Follow(path)}
}

// poll reads new lines of the journal, or the report that replaced it.
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
	if err != nil && p.report != nil { // the file is no longer the followed journal
		return
	}

	p.writer = journal.ReadWriterState(p.follower.Path())
	p.locked = p.locked || p.writer == journal.WriterAlive
}

// age returns the time since the journal was written, according to the file's modification time. It is at most the time
// since the last read, because the clock of another machine may differ.
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

// newestReport returns the final report, else the report so far, or nil if nothing is known.
func (p *watchedPart) newestReport() *reporter.Report {
	if p.finalReport != nil {
		return p.finalReport
	}
	return p.report
}

// node returns the node of the newest report, or an empty node.
func (p *watchedPart) node() *reporter.Node { return onlyNode(p.newestReport()) }

// onlyNode returns the only node of r, or an empty node if r is nil.
func onlyNode(r *reporter.Report) *reporter.Node {
	if r != nil {
		for _, name := range r.NodeNames() {
			return r.Nodes[name]
		}
	}
	return &reporter.Node{}
}

// readFinalReport reads the report that replaced the journal: the part's or, after the node's ranks were combined, the
// node's. Either report is written before the files that it replaces are removed.
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

// hasEnded reports whether the part has a final report or is lost.
func (p *watchedPart) hasEnded() bool { return p.finalReport != nil || p.isLost() }

// isLost reports whether the journal disappeared without a report: two reads found neither.
func (p *watchedPart) isLost() bool { return p.misses > 1 }

// silence returns the time since the journal last grew.
func (p *watchedPart) silence(now time.Time) time.Duration { return max(0, now.Sub(p.lastGrowth)) }

// maxSilence returns the silence beyond which the screen shows a warning.
func (p *watchedPart) maxSilence() time.Duration { return journal.MaxSilence(p.node()) }

// isGone reports whether the agent ended without a report: the lock is free, and the agent held it before or ran on
// this machine. The lock of an agent on another machine may be invisible; such an agent is only reported as silent. If
// the machine is unknown, an agent is gone after a long silence.
func (p *watchedPart) isGone() bool {
	if p.hasEnded() || p.readErr != nil && p.report != nil || p.writer != journal.WriterGone {
		return false
	}
	if machine := p.node().Host; machine != nil && machine.BootID != "" {
		return p.locked || machine.BootID == p.bootID
	}
	return p.locked || p.silence(p.lastPoll) > p.maxSilence() // the journal has no sample yet
}

// running reports whether the agent seems to be running.
func (p *watchedPart) running(now time.Time) bool {
	return !p.hasEnded() && p.writer.IsActive(p.node(), p.bootID, p.silence(now))
}

// live returns the state of the part for the screen.
func (p *watchedPart) live(now time.Time) terminal.LiveNode {
	known, quiet := 0.0, p.silence(now)
	if p.report != nil {
		known = p.report.Run.WallSeconds
	}

	length, silent := text.Seconds(known+quiet.Seconds()), ", no sample for "+text.Seconds(quiet.Seconds())
	out := terminal.LiveNode{Newest: p.newest, Alarm: true}
	switch {
	case p.finalReport != nil:
		out.State, out.Ended = strings.TrimSuffix(summary.Conclude(p.finalReport).Cause, "."), true
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
		out.State = fmt.Sprintf("perfagent has been gone since %s, after %s", since, text.Seconds(known))
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
