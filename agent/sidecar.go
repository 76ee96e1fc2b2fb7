package agent

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// sidecarRuns is the reason why the report of a running sidecar has no end.
const sidecarRuns = "the sidecar is still running"

// Sidecar watches the host until ctx is done, and then writes a report. Until then it refreshes the
// report every 30 seconds. A done ctx is not an error; a report that cannot be written is (ErrNoReport).
func Sidecar(ctx context.Context, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if len(o.StopIf) > 0 {
		return nil, errNothingToStop
	}
	leave, err := enter(o)
	if err != nil {
		return nil, err
	}
	defer leave()

	o = o.settled()
	s := newSession(o, nil)
	s.standing.holds = true
	s.openIntake(true)
	if err := s.begin(sharedMarks, sidecarRuns); err != nil {
		return nil, err
	}
	s.observe(s.newRefresher(sidecarRuns))

	rec, err := s.sample(ctx, host.JobOptions{}, func() {})
	if err != nil {
		return nil, err
	}

	return s.finishBeside(s.input(rec, s.observers.end()))
}

// begin claims the files of a recording beside jobs that perfagent did not start, and starts the
// observers. incomplete says why the reports of the active run have no end.
func (s *session) begin(which marksFile, incomplete string) error {
	head := s.head()
	if s.output = s.openOutput(head, which); s.output.journal == nil {
		s.closeIntake()
		return fmt.Errorf("%w: %w", ErrNoReport, s.output.nowhere)
	}
	if s.serves() {
		s.page = s.newLivePage()
	}
	s.startObservers(head, head.Run.Start.Time, incomplete)

	return nil
}

// finishBeside makes, writes and pushes the report of a recording beside jobs.
func (s *session) finishBeside(in diagnosis.Input) (*Result, error) {
	result := &Result{}
	cut, release := s.nextSignal()
	defer release()

	return result, s.deliver(in, result, cut)
}

// sample samples the host and a job until ctx is done. It gives up on a source that hangs then. ready is
// called after the baseline.
func (s *session) sample(ctx context.Context, job host.JobOptions, ready func()) (*collector.Recording, error) {
	gpus := gpu.Open(gpu.Options{Sys: os.Getenv("HOST_SYS"), Interval: s.o.Interval, Env: os.Environ()})
	var followed sync.WaitGroup
	defer followed.Wait()
	followGPUs := func() { followed.Go(func() { gpus.Run(ctx) }) }
	if s.standing.holds {
		followGPUs()
	}

	recorded := make(chan *collector.Recording, 1)
	go func() {
		reader := s.reader(host.Options{Job: job, GPUs: gpus})
		sampler := collector.NewSampler(reader, s.sampling(followGPUs))
		s.followMarks(sampler)
		s.followIntake(sampler)
		s.startIntake(time.Time{})
		ready()
		recorded <- sampler.Run(ctx)
	}()

	select {
	case rec := <-recorded:
		return rec, nil
	case <-ctx.Done():
	}
	rec, ok := patience.Receive(recorded, diskPatience)
	if !ok {
		s.observers.end()
		return nil, fmt.Errorf("%w: timed out reading the final sample; partial data is in %s",
			ErrNoReport, s.output.journal.Path())
	}

	return rec, nil
}

// nextSignal returns a channel that receives the reason to end the push early: a further TERM, INT or
// HUP. release frees the channel. A program that imports this package keeps its signals.
func (s *session) nextSignal() (cut <-chan string, release func()) {
	why := make(chan string, 1)
	if !s.o.TakeOver {
		return why, func() {}
	}

	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case sig := <-signals:
			why <- fmt.Sprintf("cut short by a further signal (%v)", sig)
		case <-done:
		}
	}()

	return why, func() { close(done) }
}
