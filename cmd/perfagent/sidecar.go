package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/reporter"
)

// refreshEvery is how old a sidecar's report may be while it runs, plus one
// interval.
const refreshEvery = 30 * time.Second

// pageEvery is how many reports of a running sidecar come to one page, which takes
// several times their work.
const pageEvery = 10

// stillRunning is why a sidecar's report that is made meanwhile is incomplete.
const stillRunning = "the sidecar is still running"

type sidecarOptions struct {
	sampleOptions
	streams streams
}

func newSidecar(s streams) *cobra.Command {
	o := &sidecarOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "sidecar [flags]",
		Short: "sample the host until TERM or INT, then report",
		Long: `Sample the host beside jobs that perfagent did not start, until TERM, INT or HUP
arrives. The report and its page are written then; until then the report is
refreshed every 30 seconds and the page every 5 minutes (at each and at each
tenth sample, if --interval is longer). In a container, mount the host's /proc
and /sys and name them with HOST_PROC and HOST_SYS; a file system of the host is
named with --disk-path.

Exit code: 0 once the signal was answered with a report.`,
		Example: `  perfagent sidecar --out /reports --run-id nightly
  HOST_PROC=/host/proc HOST_SYS=/host/sys perfagent sidecar --disk-path /host`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	addSampleFlags(cmd.Flags(), &o.sampleOptions)
	return cmd
}

func (o *sidecarOptions) run(cmd *cobra.Command) error {
	log, err := o.prepare(cmd, o.streams.err)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	tags, _ := o.tagMap() // checked before
	about := reporter.Run{ID: o.runID, Tags: tags}
	t := o.newTracking()
	head := o.head(about, t)
	p := openPlace(o.out, head, log)
	if p.journal == nil {
		return errors.New("a sidecar without a place for its report would be useless")
	}
	if o.compat == "" {
		t.startLive(head, head.Run.Start.Time)
	}
	l := o.newListening(o.streams.err, log, true)
	l.serve(&o.sampleOptions, about, stillRunning, p, t)
	r := newRefresher(&o.sampleOptions, about, p, t, l, log)
	rec, err := o.sample(ctx, r)
	if err != nil {
		return fmt.Errorf("%w: what is known is in %s", err, p.journal.Path())
	}
	r.stop()
	p.missing = append(p.missing, l.close()...)
	p.stop()
	t.endLive()
	in := reporter.Input{Run: about, Node: o.node, Recording: rec, Agent: agent(), Missing: p.missing, Push: t.state}
	d, ok := o.deliver(in, p, o.streams.err, log)
	if ok {
		o.pushAtEnd(t, d, nextSignal(), o.streams.err, log)
	}
	if d.data == nil {
		return errors.New("the report could not be written")
	}
	return nil
}

// nextSignal tells of a further TERM, INT or HUP: the pushing is to be cut short.
func nextSignal() <-chan string {
	signals, cut := make(chan os.Signal, 1), make(chan string, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { cut <- fmt.Sprintf("cut short by a further signal (%v)", <-signals) }()
	return cut
}

// sample samples until ctx ends. A source that hangs then is not waited for.
func (o *sidecarOptions) sample(ctx context.Context, r *refresher) (*collector.Recording, error) {
	recorded := make(chan *collector.Recording, 1)
	gpus := gpu.Open(gpu.Options{Sys: os.Getenv("HOST_SYS"), Interval: o.interval, Env: os.Environ()})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		gpus.Run(ctx)
	}()
	defer func() { <-asked }()
	go func() {
		recorded <- collector.NewSampler(o.reader(host.JobOptions{}, gpus), o.sampling(r.listening.begin, r.observe)).Run(ctx)
	}()
	select {
	case rec := <-recorded:
		return rec, nil
	case <-ctx.Done():
	}
	rec, ok := patience.Receive(recorded, diskPatience)
	if !ok {
		return nil, errors.New("the host did not answer the closing reading")
	}
	return rec, nil
}

// refresher rewrites a sidecar's report from copies of the Recording, in a
// goroutine of its own, so that a slow disk does not stop the sampling.
type refresher struct {
	options   *sampleOptions
	about     reporter.Run
	place     *place
	tracking  *tracking
	listening *listening
	push      reporter.PushState // while the sidecar runs
	log       *logger
	copies    chan *collector.Recording
	done      chan struct{}
	last      time.Duration // monotonic time of the last copy; 0 = none yet
	reports   int           // written so far
}

func newRefresher(o *sampleOptions, about reporter.Run, p *place, t *tracking, l *listening, log *logger) *refresher {
	about.Incomplete = stillRunning
	r := &refresher{options: o, about: about, place: p, tracking: t, listening: l, push: t.state, log: log,
		copies: make(chan *collector.Recording, 1), done: make(chan struct{})}
	go r.run()
	return r
}

// observe journals every sample, and from time to time asks for a new report.
func (r *refresher) observe(s *collector.Sample, rec *collector.Recording) {
	r.place.observe(s, rec)
	r.tracking.observe(rec)
	r.listening.observe(s, rec)
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
	for rec := range r.copies {
		in := reporter.Input{Run: r.about, Node: r.options.node, Recording: rec, Agent: agent(), Missing: r.place.missing, Push: r.push}
		report := r.options.report(in)
		data, err := r.options.encode(report, in)
		if err == nil {
			err = r.place.refresh(data)
		}
		if err != nil {
			r.log.Warn(err.Error())
			continue
		}
		if r.reports%pageEvery == 0 {
			r.place.savePage(r.place.journal.ReportPath(), r.options.startPage(report, rec.Ring.Len()))
		}
		r.reports++
	}
}

// stop waits for the report being written.
func (r *refresher) stop() {
	close(r.copies)
	patience.Receive(r.done, diskPatience)
}
