package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/plotter"
	"github.com/perfagent/perfagent/reporter"
)

type runOptions struct {
	sampleOptions
	streams streams
}

func newRun(s streams) *cobra.Command {
	o := &runOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG...]",
		Short: "run a command untouched and report what it used",
		Long: `Run a command and report what this node did meanwhile. The command's exit code,
streams, signals and terminal are as without perfagent. When the command ends
the report is written to OUT/RUN-ID/node-N.json, and its page beside it.

Exit code: the command's; 128+n when signal n killed it; 125 when perfagent
failed before the command was started; 126 when it cannot be executed; 127 when
it was not found.`,
		Example: `  perfagent run -- make -j8
  perfagent run --interval 100ms --tag branch=main -- ./bench.sh
  perfagent run --summary always --out /scratch/reports -- python train.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&o.cgroup, "cgroup", cgroupAuto, "where the job's own use is counted: auto (our control group where nobody else is in it, else its processes), create (a group made for it, where permitted), off (its processes)")
	addSampleFlags(cmd.Flags(), &o.sampleOptions)
	return cmd
}

func (o *runOptions) run(cmd *cobra.Command, args []string) error {
	log, err := o.prepare(cmd, o.streams.err)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return errNoCommand
	}
	t := o.newTracking()
	command := job.Command{Args: args, Env: append(t.jobEnv(o.runID),
		"PERFAGENT_RUN_ID="+o.runID, "PERFAGENT_NODE="+strconv.Itoa(o.node))}
	if _, err := job.Resolve(args[0]); err != nil {
		return startError(err)
	}
	if err := job.Headroom(); err != nil {
		log.Warn(fmt.Sprintf("%v: the command runs without being measured", err))
		return startError(job.Exec(command, nil))
	}
	w := &wrap{options: o, command: command, log: log, tracking: t}
	return w.run()
}

// prepare settles the options and makes the log: what run and sidecar do first.
func (o *sampleOptions) prepare(cmd *cobra.Command, stderr io.Writer) (*logger, error) {
	// Two threads do for one sampling goroutine; a host of many CPUs would give
	// the runtime as many.
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	// Memory before CPU, of which collecting garbage takes next to nothing here, but not
	// in the first second: a short job would wait for it. A GOGC that is meant for the
	// job, such as off, is not for us.
	debug.SetGCPercent(400)
	time.AfterFunc(time.Second, func() { debug.SetGCPercent(25) })
	if err := o.settle(cmd); err != nil {
		return nil, err
	}
	return newLogger(stderr, o.logLevel, o.logFormat)
}

// startError gives the exit code of a command that could not be started.
func startError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, job.ErrNotFound):
		return exitError{exitNotFound, err}
	case errors.Is(err, job.ErrNotExecutable):
		return exitError{exitNotExecutable, err}
	}
	return exitError{exitOwnFailure, err}
}

// wrap is one wrapped command, from the baseline to the report.
type wrap struct {
	options   *runOptions
	command   job.Command
	log       *logger
	place     *place
	tracking  *tracking
	listening *listening
	account   *account
	signals   *job.Signals
	// roomsBefore has the room that the job had, once the file systems have answered.
	roomsBefore <-chan []reporter.Room
}

func (w *wrap) run() error {
	// Never stopped: a TERM that comes while the report is written must not
	// replace the job's exit code.
	w.signals = job.Catch()
	o := w.options
	tags, _ := o.tagMap() // checked before
	about := reporter.Run{ID: o.runID, Command: w.command.Args, Tags: tags}
	placed := make(chan *place, 1) // the disk and the kernel are asked at once: the job waits
	head := o.head(about, w.tracking)
	w.roomsBefore = o.roomsBefore()
	go func() { placed <- openPlace(o.out, head, w.log) }()
	w.listening = o.newListening(o.streams.err, w.log, false)
	w.account = newAccount(o.cgroup, fmt.Sprintf("perfagent-%s.%d.%d", o.runID, o.node, os.Getpid()), o.interval)
	if w.account.made != nil {
		w.command.Enter = w.account.made.Enter
	}
	// The sampler closes it, unless a source hangs.
	reader := o.reader(w.account.options, w.account.gpus)
	sampler := collector.NewSampler(reader, o.sampling(w.listening.begin, w.observe))
	w.place = <-placed
	j, err := job.Start(w.command, w.signals)
	if err != nil {
		return w.cannotStart(err)
	}
	w.account.begin(j)
	if o.compat == "" { // perf.py's numbers are those of its file
		w.tracking.startLive(head, j.Started())
	}
	w.listening.serve(&o.sampleOptions, about, "the job is still running", w.place, w.tracking)
	ctx, stop := context.WithCancel(context.Background())
	recorded := make(chan *collector.Recording, 1)
	go func() { recorded <- sampler.Run(ctx) }()
	go w.journalSignals(ctx)
	j.Release()
	status := j.Wait()
	stop()
	w.place.missing = append(w.place.missing, w.listening.close()...)
	w.tracking.endLive()
	if rec, ok := patience.Receive(recorded, diskPatience); ok {
		w.finish(about, status, rec)
	} else {
		w.log.Warn("the host did not answer the closing reading: what is known is in the journal" + w.account.leave())
	}
	return w.exit(status)
}

// observe sees every sample, in the sampling goroutine.
func (w *wrap) observe(s *collector.Sample, rec *collector.Recording) {
	w.noteSignals(rec)
	w.place.observe(s, rec)
	w.tracking.observe(rec)
	w.listening.observe(s, rec)
}

// head is what the journal tells of the run.
func (o *sampleOptions) head(about reporter.Run, t *tracking) reporter.JournalHead {
	about.Start, about.End = reporter.Time{Time: time.Now()}, reporter.Time{Time: time.Now()}
	return reporter.JournalHead{Run: about, Node: o.node, Interval: o.interval, MaxLength: o.maxLength, Push: t.state,
		Agent: reporter.Agent{Version: version()}, Cost: ownCPU}
}

// sampling is the sampler's options.
func (o *sampleOptions) sampling(begin func(*collector.Recording), observe func(*collector.Sample, *collector.Recording)) collector.Options {
	return collector.Options{Interval: o.interval, MaxLength: o.maxLength, PerfPy: o.compat == "perf.py", Begin: begin, Observe: observe}
}

// cannotStart gives up what was claimed. Where no child can be made we still can
// become the job.
func (w *wrap) cannotStart(err error) error {
	w.place.abandon()
	w.account.end(&reporter.Job{})
	if errors.Is(err, job.ErrNoProcess) {
		w.log.Warn(fmt.Sprintf("%v: the command runs without being measured", err))
		return startError(job.Exec(w.command, w.signals))
	}
	return startError(err)
}

// finish makes, saves and shows the report.
func (w *wrap) finish(about reporter.Run, status job.Status, rec *collector.Recording) {
	o := w.options
	w.place.stop()
	code := status.ExitCode
	// The wall clock may have been stepped meanwhile: times follow its start.
	wall := status.End.Sub(status.Start)
	status.End = status.Start.Add(wall + rec.Suspended())
	about.Start, about.End = reporter.Time{Time: status.Start}, reporter.Time{Time: status.End}
	about.WallSeconds = wall.Seconds()
	about.ExitCode, about.Signal = &code, status.Signal
	ended := newJob(status)
	w.account.end(ended)
	in := reporter.Input{Run: about, Node: o.node, Recording: rec, Job: ended, Agent: agent(),
		Missing: append(w.place.missing, w.account.missing...), Push: w.tracking.state, Ending: o.ending(status, w.roomsBefore)}
	if d, ok := o.deliver(in, w.place, o.streams.err, w.log); ok {
		o.pushAtEnd(w.tracking, d, w.late(), o.streams.err, w.log)
	}
}

// late tells of the first signal after the job's end that asks us to hurry.
func (w *wrap) late() <-chan string {
	cut := make(chan string, 1)
	go func() {
		if sig, ok := <-w.signals.Late(); ok {
			cut <- fmt.Sprintf("cut short by signal %d (%v)", int(sig), sig)
		}
	}()
	return cut
}

// deliver saves the report in the layout asked for and shows its summary. It is not
// ok where no report could be made.
func (o *sampleOptions) deliver(in reporter.Input, p *place, stderr io.Writer, log *logger) (d delivered, ok bool) {
	if in.Recording.Ring.Len() > manySamples {
		debug.SetGCPercent(20) // a large report makes much that is soon of no use
	}
	report := o.report(in)
	page := o.startPage(report, in.Recording.Ring.Len())
	data, err := o.encode(report, in)
	if err != nil {
		log.Warn(err.Error())
		return d, false
	}
	if o.compat != "" { // perf.py's file has no place for it
		for _, m := range in.Missing {
			log.Warn(m.What + ": " + m.Why)
		}
	}
	path := p.save(data)
	d = delivered{report: report, node: strconv.Itoa(o.node), path: path, data: data, perfpy: in.Recording.PerfPy != nil}
	if path == "" {
		d.path, d.data = p.journalPath(), nil
	}
	pagePath := p.savePage(path, page)
	if !o.wantsSummary(stderr) {
		return d, true
	}
	var text bytes.Buffer // one write: it is read whole or not at all
	_ = reporter.WriteSummary(&text, report, summaryOptions(report, stderr, path, pagePath))
	ignoreBackground()
	if _, err := stderr.Write(text.Bytes()); err != nil {
		log.Debug(fmt.Sprintf("write summary: %v", err))
	}
	return d, true
}

// report makes the report, ours or perf.py's.
func (o *sampleOptions) report(in reporter.Input) *reporter.Report {
	if in.Recording.PerfPy != nil {
		return reporter.NewPerfPyReport(in.Recording.PerfPy.Items(), in.Node, in.Recording.Host.CPUs, in.Run)
	}
	return reporter.New(in)
}

// encode makes the bytes of a report's file, in our layout or in perf.py's.
func (o *sampleOptions) encode(r *reporter.Report, in reporter.Input) ([]byte, error) {
	if in.Recording.PerfPy != nil {
		return reporter.EncodePerfPy(map[string][]collector.Sample{strconv.Itoa(o.node): in.Recording.PerfPy.Items()})
	}
	return reporter.Encode(r)
}

func (o *sampleOptions) wantsSummary(stderr io.Writer) bool {
	return o.summary == "always" || o.summary == "auto" && isTerminal(stderr)
}

// exit ends perfagent as the job ended. A job that died of the terminal's Ctrl-C
// under a shell takes us along by the same signal: the shell shows the same 128+n
// and stops its loop or script as it would without us.
func (w *wrap) exit(status job.Status) error {
	if status.Err != nil {
		w.log.Warn(status.Err.Error())
	}
	if status.FromTerminal && parentInSession() {
		job.Reraise(status.Signo)
	}
	if status.ExitCode == 0 {
		return nil
	}
	return exitError{code: status.ExitCode}
}

// newJob turns the job's status into the report's words.
func newJob(s job.Status) *reporter.Job {
	const blockUnit = 512 // of ru_inblock and ru_oublock, whatever the disk's
	u := s.Usage
	return &reporter.Job{
		PID: s.Pid, Start: reporter.Time{Time: s.Start}, End: reporter.Time{Time: s.End},
		ExitCode: s.ExitCode, Signal: s.Signal,
		UserSeconds: u.UserSeconds, SystemSeconds: u.SystemSeconds,
		MaxRSSMB: float64(u.MaxRSS) / collector.MiB, MaxRSSAtMost: u.MaxRSS <= u.MaxRSSFloor,
		BlockReadMB:  float64(u.BlockInput) * blockUnit / collector.MiB,
		BlockWriteMB: float64(u.BlockOutput) * blockUnit / collector.MiB,
		MinorFaults:  u.MinorFaults, MajorFaults: u.MajorFaults,
		VoluntarySwitches: u.VoluntarySwitches, InvoluntarySwitches: u.InvoluntarySwitches,
		Orphans: s.Orphans,
	}
}

// descriptor is the number behind stdout or stderr; -1 for anything else. File.Fd
// is not asked: it may make the open file blocking, and that one is the job's too.
func descriptor(w io.Writer) int {
	if p, ok := w.(*patientWriter); ok {
		w = p.w
	}
	switch w {
	case os.Stdout:
		return 1
	case os.Stderr:
		return 2
	}
	return -1
}

func isTerminal(w io.Writer) bool { return term.IsTerminal(descriptor(w)) }

// colorful follows the conventions of NO_COLOR and TERM.
func colorful(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// summaryOptions say how a report's summary looks on w.
func summaryOptions(r *reporter.Report, w io.Writer, path, page string) reporter.SummaryOptions {
	columns := width(w)
	return reporter.SummaryOptions{Color: colorful(w), Width: columns, Path: path, Page: page,
		Pictures: plotter.SummaryPictures(r, min(columns, reporter.SummaryWidth), !utf8Terminal())}
}

// utf8Terminal tells whether the locale has UTF-8, as C libraries settle it: by the
// first of three variables that is set.
func utf8Terminal() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// width is the terminal's, or 80.
func width(w io.Writer) int {
	if columns, _, err := term.GetSize(descriptor(w)); err == nil && columns > 0 {
		return columns
	}
	return 80
}
