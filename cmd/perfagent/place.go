package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/reporter"
)

// diskPatience is how long a disk or a kernel file that hangs may keep the job from
// starting, or its exit code from being returned.
const diskPatience = 5 * time.Second

// place is where a recording's files go. Its journal is nil when no directory
// could be written.
type place struct {
	journal *reporter.Journal
	missing []reporter.Missing
	log     *logger
	// refreshed tells that the report's name is ours already.
	refreshed bool
	// page is the page that was written, ours to replace; "" = none yet.
	page string
}

// openPlace claims a name in OUT/RUN-ID, or, where that cannot be written, in a
// new temporary directory, and says so in one line.
func openPlace(out string, head reporter.JournalHead, log *logger) *place {
	p := &place{log: log}
	dir := filepath.Join(out, head.Run.ID)
	var err, tmpErr error
	p.journal, err = createJournal(dir, head, func() (string, error) { return dir, os.MkdirAll(dir, 0o777) })
	if err == nil {
		return p
	}
	p.journal, tmpErr = createJournal(os.TempDir(), head, func() (string, error) { return os.MkdirTemp("", "perfagent-") })
	if tmpErr == nil {
		p.degrade("report", fmt.Errorf("%w; the report goes to %s", err, p.journal.ReportPath()))
		return p
	}
	p.degrade("report", fmt.Errorf("%w; nor can the temporary directory: %w; there will be no report file", err, tmpErr))
	return p
}

// createJournal makes the directory and the journal in it, within patience.
func createJournal(where string, head reporter.JournalHead, directory func() (string, error)) (*reporter.Journal, error) {
	type result struct {
		journal *reporter.Journal
		err     error
	}
	r, ok := patience.Ask(diskPatience, func() result {
		dir, err := directory()
		if err != nil {
			return result{nil, fmt.Errorf("create directory: %w", err)}
		}
		j, err := reporter.CreateJournal(dir, head)
		if err != nil {
			os.Remove(dir) // only if it is empty
		}
		return result{j, err}
	})
	if !ok {
		return nil, fmt.Errorf("create journal in %s: no answer within %v", where, diskPatience)
	}
	return r.journal, r.err
}

// degrade notes something that does not work, in the report and in one line.
func (p *place) degrade(what string, err error) {
	p.missing = append(p.missing, reporter.Missing{What: what, Why: err.Error()})
	p.log.Error(err.Error()) // whatever --log-level says
}

// observe journals a sample.
func (p *place) observe(s *collector.Sample, rec *collector.Recording) {
	if p.journal != nil {
		p.journal.Observe(s, rec)
	}
}

// signal journals a signal that we were sent.
func (p *place) signal(s collector.Signal) {
	if p.journal != nil {
		p.journal.Signal(s)
	}
}

// journalPath is the journal's file; "" where there is none.
func (p *place) journalPath() string {
	if p.journal == nil {
		return ""
	}
	return p.journal.Path()
}

// abandon removes what was claimed for a job that never started.
func (p *place) abandon() {
	if p.journal == nil {
		return
	}
	_ = p.journal.Stop(diskPatience)
	_ = p.journal.Remove()
	dir := filepath.Dir(p.journal.Path())
	if os.Remove(dir) == nil { // only when nothing else is in it
		os.Remove(filepath.Dir(dir))
	}
}

// stop ends the journal, so that what went wrong with it can stand in the report.
func (p *place) stop() {
	if p.journal == nil {
		return
	}
	if err := p.journal.Stop(diskPatience); err != nil {
		p.missing = append(p.missing, reporter.Missing{What: "journal", Why: err.Error()})
	}
}

// save writes the report and removes the journal. It returns where the report
// is; "" when it is nowhere. A file system that hangs is given up.
func (p *place) save(data []byte) string {
	if p.journal == nil {
		return ""
	}
	path, ok := patience.Ask(diskPatience, func() string { return p.write(data) })
	if ok {
		return path
	}
	hangs := fmt.Sprintf("write report %s: no answer within %v", p.journal.ReportPath(), diskPatience)
	path, ok = patience.Ask(diskPatience, func() string {
		path, _ := writeElsewhere(filepath.Base(p.journal.ReportPath()), data)
		return path
	})
	if !ok || path == "" {
		p.log.Warn(fmt.Sprintf("%s; what is known is in %s", hangs, p.journal.Path()))
		return ""
	}
	p.log.Warn(fmt.Sprintf("%s; the report is %s", hangs, path))
	return path
}

// writeElsewhere writes a report into a new temporary directory.
func writeElsewhere(name string, data []byte) (path string, err error) {
	dir, err := os.MkdirTemp("", "perfagent-")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	if err := reporter.WriteNew(path, data); err != nil {
		os.Remove(dir)
		return "", err
	}
	return path, nil
}

// refresh replaces the report of a recording that goes on; the first time it
// takes the name that the journal claimed.
func (p *place) refresh(data []byte) error {
	if p.refreshed {
		return reporter.Write(p.journal.ReportPath(), data)
	}
	err := reporter.WriteNew(p.journal.ReportPath(), data)
	p.refreshed = err == nil
	return err
}

func (p *place) write(data []byte) string {
	path := p.journal.ReportPath()
	err := p.refresh(data)
	for k := 2; errors.Is(err, fs.ErrExist); k++ { // somebody ignored our claim
		path = fmt.Sprintf("%s.%d.json", trimJSON(p.journal.ReportPath()), k)
		err = reporter.WriteNew(path, data)
	}
	if err == nil {
		p.removeJournal()
		return path
	}
	if elsewhere, tmpErr := writeElsewhere(filepath.Base(p.journal.ReportPath()), data); tmpErr == nil {
		p.log.Warn(fmt.Sprintf("%v; the report is %s", err, elsewhere))
		p.removeJournal()
		return elsewhere
	}
	_ = p.journal.Keep()
	p.log.Warn(fmt.Sprintf("%v; what is known is in %s", err, p.journal.Path()))
	return ""
}

func (p *place) removeJournal() {
	if err := p.journal.Remove(); err != nil {
		p.log.Warn(fmt.Sprintf("remove journal: %v", err))
	}
}

func trimJSON(path string) string { return path[:len(path)-len(filepath.Ext(path))] }
