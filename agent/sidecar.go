package agent

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// sidecarRuns is Run.Incomplete in reports of a running sidecar.
const sidecarRuns = "the sidecar is still running"

// Sidecar watches the host until ctx is done, and then writes a report. Until then it refreshes the report every 30
// seconds. The end of ctx is not an error. If the report cannot be written, the error is ErrNoReport.
func Sidecar(ctx context.Context, o Options) (*Result, error) {
	o, leave, err := admit(o)
	if err != nil {
		return nil, err
	}
	defer leave()

	s := newSession(o, nil)
	s.nodeRole.measuresHost = true
	s.openIntake(true)
	if err := s.beginRecording(sidecarRuns); err != nil {
		return nil, err
	}
	s.addObserver(s.newRefresher(sidecarRuns))

	rec, err := s.sample(ctx, host.JobOptions{}, func(*collector.Sampler) {})
	if err != nil {
		return nil, err
	}

	return s.finishRecording(s.input(rec, s.observers.end()))
}

// admit checks the options of a recording without a command, and fills in the defaults. leave must be called when the
// recording has ended.
func admit(o Options) (checked Options, leave func(), err error) {
	if err := o.Check(); err != nil {
		return o, nil, err
	}
	if len(o.StopIf) > 0 {
		return o, nil, errNothingToStop
	}
	if leave, err = registerRun(o); err != nil {
		return o, nil, err
	}
	return o.withDefaults(), leave, nil
}

// beginRecording claims the files of a recording that starts no job, and starts the observers. If no file can be
// written, it returns an error, unless the recording is a Monitor's. incomplete is Run.Incomplete in reports of the
// active run.
func (s *session) beginRecording(incomplete string) error {
	head := s.head()
	s.output = s.openOutput(head, incomplete == sidecarRuns)
	if s.output.journal == nil && incomplete != monitorRuns {
		s.closeIntake()
		return fmt.Errorf("%w: %w", ErrNoReport, s.output.createErr)
	}
	if s.wantsLivePage() {
		s.page = s.newLivePage()
	}
	s.startObservers(head, head.Run.Start.Time, incomplete)

	return nil
}

// finishRecording makes, writes and pushes the report of a recording that started no job.
func (s *session) finishRecording(in diagnosis.Input) (*Result, error) {
	var further chan os.Signal // nil without TakeOver, because signals are then not caught
	if s.o.TakeOver {
		further = make(chan os.Signal, 1)
		signal.Notify(further, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	}
	result := &Result{}
	cut, release := cutBy(context.Background(), further)
	defer release()

	return result, s.deliver(in, result, cut)
}

// sample samples the host and a job until ctx is done. After that it does not wait for a source that hangs. ready is
// called after the baseline has been taken.
func (s *session) sample(
	ctx context.Context, job host.JobOptions, ready func(*collector.Sampler),
) (*collector.Recording, error) {
	s.gpus = gpu.Open(gpu.Options{Sys: os.Getenv("HOST_SYS"), Interval: s.o.Interval, Env: os.Environ()})
	var followed sync.WaitGroup
	defer followed.Wait()
	followGPUs := func() { followed.Go(func() { s.gpus.Run(ctx) }) }
	if s.nodeRole.measuresHost {
		followGPUs()
	}

	recorded := make(chan *collector.Recording, 1)
	go func() {
		reader := s.reader(host.Options{Job: job, GPUs: s.gpus})
		sampler := collector.NewSampler(reader, s.samplerOptions(followGPUs))
		s.addJobInputs(sampler)
		s.startIntake(s.started)
		ready(sampler)
		recorded <- sampler.Run(ctx)
	}()
	<-ctx.Done()

	return s.awaitRecording(recorded)
}

// awaitRecording returns the recording when sampling has ended. It gives up on a source that hangs.
func (s *session) awaitRecording(recorded <-chan *collector.Recording) (*collector.Recording, error) {
	rec, ok := timeout.Receive(recorded, diskTimeout)
	if !ok {
		s.observers.end()
		return nil, fmt.Errorf("%w: timed out reading the final sample; partial data is in the journal %s",
			ErrNoReport, s.output.journalPath())
	}

	return rec, nil
}
