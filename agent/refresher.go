package agent

import (
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/reporter"
)

const (
	// refreshEvery, plus one interval, is the maximum age of a running sidecar's report.
	refreshEvery = 30 * time.Second

	// pageEvery is the number of reports per page of a running sidecar. A page takes several times
	// the work of a report.
	pageEvery = 10
)

// A refresher rewrites a sidecar's report from copies of the Recording, in a goroutine of its own, so
// that a slow disk does not stop the sampling. It is an observer of the run.
type refresher struct {
	session *session
	report  func(*collector.Recording) *reporter.Report
	copies  chan *collector.Recording
	done    chan struct{}
	last    time.Duration // monotonic time of the last copy; 0 = none yet
	reports int           // written so far
}

func (s *session) newRefresher(incomplete string) *refresher {
	r := &refresher{
		session: s, report: s.reportSoFar(incomplete),
		copies: make(chan *collector.Recording, 1), done: make(chan struct{}),
	}
	go r.run()

	return r
}

func (r *refresher) begin(*collector.Recording) {}

// observe asks for a new report from time to time.
func (r *refresher) observe(_ *collector.Sample, rec *collector.Recording) {
	if r.last != 0 && rec.End.Mono-r.last < refreshEvery {
		return
	}

	select {
	case r.copies <- rec.Clone():
		r.last = rec.End.Mono
	default: // the disk is behind
	}
}

func (r *refresher) run() {
	defer close(r.done)

	out := r.session.output
	for rec := range r.copies {
		report := r.report(rec)
		if err := out.refresh(r.session.encoding(report, rec)); err != nil {
			r.session.log.Warn(err.Error())
			continue
		}

		if r.reports%pageEvery == 0 || out.page == "" {
			r.session.savePage(out.journal.ReportPath(), report)
		}
		r.reports++
	}
}

// end waits for the report that is being written.
func (r *refresher) end() []reporter.Missing {
	close(r.copies)
	patience.Receive(r.done, diskPatience)

	return nil
}
