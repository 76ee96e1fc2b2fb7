package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
	"github.com/perfagent/perfagent/reporter/journal"
	"github.com/perfagent/perfagent/store"
)

// A Result is the outcome of a run.
type Result struct {
	// Report is the report of the run. It is nil if reading the final sample timed out.
	Report *reporter.Report

	// ReportPath and PagePath are the paths of the report and of its page, or "" if there is none. The paths are
	// absolute, except with TakeOver and a relative Out.
	ReportPath, PagePath string

	// ExitCode is the command's exit code, or 128+n after signal n. It is 0 for a Monitor or a sidecar.
	ExitCode int

	// Signal is the name of the signal that killed the command, such as "SIGKILL", or "" if no signal did.
	Signal string

	// FromTerminal reports whether Signal came from the terminal (Ctrl-C, Ctrl-\).
	FromTerminal bool

	// Reraise reports whether the program should also end by Signal, because its launcher, Hydra, would treat exit code
	// 128+n as a normal exit of the job. It is false without TakeOver.
	Reraise bool

	// Late receives TERM, INT, HUP and QUIT sent to this process after the run. It is nil without TakeOver, because the
	// run then catches no signals.
	Late <-chan syscall.Signal

	// RankPart reports whether Report covers only one of several ranks of the node. The Result of the last rank to end
	// has the report of the node.
	RankPart bool

	// Pushed describes the data sent to MLflow. It is "" unless the server has all data.
	Pushed string

	// Stored describes the object in the store. It is "" unless the store has the report.
	Stored string
}

// ErrNoReport is the error of a run if its report could not be written anywhere. It is wrapped with the reason.
var ErrNoReport = errors.New("agent: the report could not be written")

// A session holds the state of one recording, from claiming its files to the end of the push.
type session struct {
	o   Options // with defaults
	log *zap.Logger
	run reporter.Run // ID, command, platform, tags

	nodeRole          nodeRole
	tracking          *mlflowTracking
	output            *output
	page              *livePage          // nil if there is none
	intake            *intake.Intake     // nil without --ops and --scrape
	missingOperations []reporter.Missing // why operations may be missing
	observers         observers
	reportStore       *store.Store     // nil if there is no store
	partials          *partialUploader // nil without partial reports

	started time.Time    // when the job or the recording began
	gpus    *gpu.Monitor // set by sample, for a recording without a command

	now func() host.Instant // nil means the machine's clocks; set in tests
}

// newSession prepares a recording, but opens no file or connection. It redacts command, so that no output contains its
// secrets.
func newSession(o Options, command []string) *session {
	return &session{
		o: o, log: o.Log, tracking: newTracking(o), reportStore: openStore(&o),
		run: reporter.Run{ID: o.RunID, Command: o.redaction().Args(command), Platform: platform(o.identity), Tags: o.Tags,
			MemoryPer: memoryPer(o.identity)},
	}
}

// head returns the head of the run's journal.
func (s *session) head() journal.Head {
	run, now := s.run, reporter.Time{Time: time.Now()}
	run.Start, run.End = now, now
	head := journal.Head{
		Run: run, Node: *s.o.Node, Name: s.fileName(), Rank: s.nodeRole.rank, Identity: s.identity(),
		Interval: s.o.Interval, MaxLength: s.o.MaxLength, Push: s.tracking.state,
		Agent: reporter.Agent{Version: Version()},
	}
	if s.intake != nil {
		head.CopyAggregator = s.intake.CopyAggregatorIfChanged
	}
	if s.o.TakeOver {
		head.AgentCPUSeconds = ownCPU
	}

	return head
}

// addObserver adds an observer.
func (s *session) addObserver(one observer) { s.observers.list = append(s.observers.list, one) }

// startObservers adds the run's observers, so that the live push and the live page begin with the first sample. started
// is the start of the run; incomplete is Run.Incomplete in reports of the active run.
func (s *session) startObservers(head journal.Head, started time.Time, incomplete string) {
	s.started = started
	s.addObserver(s.output)

	if s.o.Compat == "" { // perf.py's numbers are known only at the end
		head.Run.Start = reporter.Time{Time: started}
		s.tracking.head = &head
	}
	s.addObserver(s.tracking)

	if s.putsPartials() {
		s.partials = s.newPartialUploader(incomplete)
		s.addObserver(s.partials)
	}
	if s.page != nil {
		s.page.serve(incomplete)
		s.addObserver(s.page)
	}
	if s.tracking.isEnabled() || s.partials != nil || s.page != nil || s.intake != nil {
		s.o.allowSecondThread()
	}
}

// samplerOptions returns the Sampler's options. followGPUs is called if this recording begins to measure the host only
// later.
func (s *session) samplerOptions(followGPUs func()) collector.Options {
	return collector.Options{
		Interval: s.o.Interval, MaxLength: s.o.MaxLength, PerfPy: s.o.Compat == PerfPy,
		TakeHost: s.takeHost(followGPUs),
		Begin:    s.observers.begin, Observe: s.observers.observe,
	}
}

// reader returns a reader of the host. It reads from HOST_PROC and HOST_SYS if these variables are set.
func (s *session) reader(o host.Options) *host.Reader {
	o.Proc, o.Sys, o.DiskPaths = os.Getenv("HOST_PROC"), os.Getenv("HOST_SYS"), s.o.DiskPaths
	o.Gopsutil, o.JobOnly, o.Now = s.o.Reader == Gopsutil, !s.nodeRole.measuresHost, s.now
	return host.NewReader(o)
}

// ownUse returns perfagent's own usage so far, which cannot be measured inside another program.
func (s *session) ownUse() reporter.Agent {
	use := reporter.Agent{Version: Version()}
	if s.o.TakeOver {
		use.CPUSeconds, use.MaxRSSMB = ownCPU(), float64(job.PeakRSS())/collector.MiB
	}

	return use
}

// input returns the input for a report of rec, without the outcome of the job.
func (s *session) input(rec *collector.Recording, missing []reporter.Missing) diagnosis.Input {
	if !s.o.TakeOver {
		missing = append(slices.Clone(missing), reporter.NewMissing("agent", reporter.AgentNotApart))
	}

	return diagnosis.Input{Input: reporter.Input{
		Run: s.run, Node: *s.o.Node, Identity: s.identity(), Rank: s.nodeRole.rank,
		Recording: rec, Agent: s.ownUse(), Missing: slices.Concat(missing, s.missingOperations, s.nodeRole.missing),
		Push: s.tracking.state,
	}}
}

// makeReport returns the report of a recording, in perfagent's format or in perf.py's.
func (s *session) makeReport(in diagnosis.Input) *reporter.Report {
	if in.Recording.PerfPy != nil {
		return reporter.NewPerfPyReport(in.Recording.PerfPy.Items(), in.Node, in.Recording.Host.CPUs, in.Run)
	}
	return diagnosis.New(in)
}

// encoding returns a function that writes the file of r, in perfagent's format or in perf.py's.
func (s *session) encoding(r *reporter.Report, rec *collector.Recording) func(io.Writer) error {
	return func(w io.Writer) (err error) {
		defer recoverAs("damaged report", &err)
		if rec.PerfPy == nil {
			return reporter.EncodeTo(w, r)
		}
		data, err := reporter.EncodePerfPy(*s.o.Node, rec.PerfPy.Items())
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
}

// prepare returns a function that writes the report's file. encoding writes the report without the state of the store.
// If the report is also sent to a store or a server, prepare keeps the file's contents in d. Otherwise the encoded
// report, which may take a few MiB, is never in memory as a whole.
func (s *session) prepare(d *delivery, encoding func(io.Writer) error) (file func(io.Writer) error, err error) {
	if s.reportStore == nil && !s.tracking.isEnabled() {
		return encoding, nil
	}
	var out bytes.Buffer
	if err := encoding(&out); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	d.data = s.pendingIn(out.Bytes(), d.node)
	if d.toStore, err = reporter.Shareable(out.Bytes()); err != nil {
		s.log.Warn(err.Error())
	}
	return bytesWriter(d.data), nil
}

// bytesWriter returns a function that writes data.
func bytesWriter(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// nodeName returns the node's key in a report.
func (s *session) nodeName() string { return strconv.Itoa(*s.o.Node) }

// reportSoFar returns a function that makes reports of the active run. It may be called concurrently, with copies of
// the Recording. incomplete is Run.Incomplete of the reports. Before the first sample, a report gives a single reason
// for all missing values.
func (s *session) reportSoFar(incomplete string) func(*collector.Recording) *reporter.Report {
	missing := slices.Clone(s.output.missing)
	return func(rec *collector.Recording) *reporter.Report {
		in := s.input(rec, missing)
		in.Run.Incomplete = incomplete
		r := s.makeReport(in)
		if n := r.Nodes[s.nodeName()]; rec.PerfPy == nil && rec.Samples == 0 && n != nil {
			n.Missing = append(slices.Clone(missing), reporter.Missing{
				What: "samples", Code: reporter.NoSampleYet,
				Why: fmt.Sprintf("no sample has been taken yet; the first one is taken %v after the start", s.o.Interval),
			})
		}
		return r
	}
}

// manySamples is the number of kept samples above which making the report produces much garbage.
const manySamples = 250

// deliver writes the report and the page of a recording that has ended, calls OnReport, and pushes the report. A value
// from cut ends the push early. An error means that perfagent failed. deliver fills in result even if it fails.
func (s *session) deliver(in diagnosis.Input, result *Result, cut <-chan string) error {
	if in.Recording.Ring.Len() > manySamples {
		s.o.allowSecondThread()
		if s.o.TakeOver {
			debug.SetGCPercent(20) // a large report produces much garbage
		}
	}

	s.nodeRole.roster.ReleaseHost()
	if s.checkOtherRanks(); s.nodeRole.isRankPart {
		in.Rank, in.Identity = s.nodeRole.rank, s.identity()
		return s.deliverRankPart(in, result, cut)
	}
	s.leaveRoster("")

	result.Report = s.makeReport(in)
	s.addEarlier(result.Report)
	d := delivery{report: result.Report, node: s.nodeName(), perfpy: in.Recording.PerfPy != nil}
	file, err := s.prepare(&d, s.encoding(result.Report, in.Recording))
	if err != nil {
		s.log.Warn(err.Error())
		return err
	}
	if s.o.Compat != "" { // perf.py's file has no field for missing values
		for _, m := range in.Missing {
			s.log.Warn(m.What + ": " + m.Why)
		}
	}

	var errSave error
	result.ReportPath, errSave = s.output.save(file)
	result.PagePath = s.savePage(result.ReportPath, result.Report)
	if d.path = result.ReportPath; d.path == "" {
		d.path, d.data = s.output.journalPath(), nil
	}
	s.publish(result, d, cut)
	if errSave != nil {
		return fmt.Errorf("%w: %w", ErrNoReport, errSave)
	}

	return nil
}

// publish calls OnReport and pushes the report.
func (s *session) publish(result *Result, d delivery, cut <-chan string) {
	if s.o.OnReport != nil {
		s.o.OnReport(result)
	}
	ctx, release := s.pushContext(cut)
	defer release()
	stored := s.startStoring(ctx, d)
	pushed, outcome := s.push(ctx, &d)
	result.Pushed = outcome

	var state *reporter.StoreState
	if stored != nil {
		out := stored()
		s.recordStoring(&d, out)
		result.Stored, state = out.outcome, out.state
	}
	result.Report = withPush(result.Report, d.node, reporter.Push{MLflow: pushed, Store: state})
}

// withPush returns a copy of r with the state of the push, as in the file. A report in perf.py's format has no field
// for the state and is returned unchanged. withPush does not modify r, because observers may still read it.
func withPush(r *reporter.Report, node string, state reporter.Push) *reporter.Report {
	n := r.Nodes[node]
	if n == nil || n.Push == nil {
		return r
	}

	pushed, report := *n, *r
	pushed.Push = &state
	report.Nodes = map[string]*reporter.Node{node: &pushed}

	return &report
}

// program returns the name or path by which a shell finds perfagent, for commands that are shown to the user.
func (s *session) program() string {
	name := os.Args[0]
	switch {
	case !s.o.TakeOver: // the program is not perfagent
		return "perfagent"
	case filepath.Base(name) == name: // found on PATH
		return name
	}
	if path, err := os.Executable(); err == nil {
		return path
	}

	return name
}
