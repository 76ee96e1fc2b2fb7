package agent

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/journal"
)

// monitorRuns is the reason why the report of an active Monitor has no end.
const monitorRuns = "the program is still running"

// A Monitor watches the calling process and its children from inside, from Start to Stop. perf.py is
// used in this way: the benchmark itself starts and finalizes a thread.
type Monitor struct {
	session *session
	head    journal.Head
	before  job.Usage // of this process and its children, at Start

	cancel   context.CancelFunc
	recorded chan *collector.Recording
	followed chan struct{} // closed when the GPUs are no longer sampled

	stop   sync.Once
	result *Result
	err    error
}

// Start starts to watch the calling process and its children. Sampling ends with Stop or when ctx is
// done. The error is an *OptionError.
func Start(ctx context.Context, o Options) (*Monitor, error) {
	o, err := o.settle()
	if err != nil {
		return nil, err
	}
	if o.TakeOver {
		return nil, &OptionError{"TakeOver", errors.New("a Monitor watches its own process and takes nothing over")}
	}

	m := &Monitor{
		session: newSession(o, os.Args), before: programUsage(),
		recorded: make(chan *collector.Recording, 1), followed: make(chan struct{}),
	}
	s := m.session
	m.head = s.head()
	s.output = openOutput(o.Out, m.head, s.log)
	if o.Listen != Off {
		s.page = s.newLivePage()
	}

	gpus := gpu.Open(gpu.Options{Interval: o.Interval, Env: os.Environ()})
	options := host.JobOptions{Source: host.JobFromTree, Running: true, Env: os.Environ()}
	options.Tree, options.NoTree = newTree(process.Options{
		Root: os.Getpid(), Self: true, Ignore: func(pid int) bool { return pid == gpus.Pid() },
	})
	sampler := collector.NewSampler(s.reader(host.Options{Job: options, GPUs: gpus}), s.sampling())
	s.startObservers(m.head, m.head.Run.Start.Time, monitorRuns)

	ctx, m.cancel = context.WithCancel(ctx)
	go func() {
		defer close(m.followed)
		gpus.Run(ctx)
	}()
	go func() { m.recorded <- sampler.Run(ctx) }()

	return m, nil
}

// Stop ends the sampling and writes the report. Its job is the process and its children between Start
// and Stop. Stop returns when the report has been written and, if there is a server, pushed. The
// Result has no exit code. Further calls return the same values.
func (m *Monitor) Stop() (*Result, error) {
	m.stop.Do(func() { m.result, m.err = m.end() })
	return m.result, m.err
}

func (m *Monitor) end() (*Result, error) {
	s, end := m.session, time.Now()
	m.cancel()
	<-m.followed

	rec, ok := patience.Receive(m.recorded, diskPatience)
	if !ok {
		s.observers.end()
		return nil, errors.New("agent: timed out reading the final sample; partial data is in " + s.output.journalPath())
	}

	in := s.input(rec, s.observers.end())
	in.Run.Start, in.Run.End = m.head.Run.Start, reporter.Time{Time: end}
	in.Run.WallSeconds = end.Sub(m.head.Run.Start.Time).Seconds()
	in.Job = m.account(end)

	result := &Result{}

	return result, s.deliver(in, result, nil)
}

// account returns what the process, and the children that it waited for, have used since Start.
func (m *Monitor) account(end time.Time) *reporter.Job {
	use, before := programUsage(), m.before
	j := newJob(job.Status{Pid: os.Getpid(), Start: m.head.Run.Start.Time, End: end, Usage: job.Usage{
		UserSeconds: use.UserSeconds - before.UserSeconds, SystemSeconds: use.SystemSeconds - before.SystemSeconds,
		MinorFaults: use.MinorFaults - before.MinorFaults, MajorFaults: use.MajorFaults - before.MajorFaults,
		BlockInput: use.BlockInput - before.BlockInput, BlockOutput: use.BlockOutput - before.BlockOutput,
		VoluntarySwitches:   use.VoluntarySwitches - before.VoluntarySwitches,
		InvoluntarySwitches: use.InvoluntarySwitches - before.InvoluntarySwitches,
	}})

	j.ExitCode = nil // the process is still running

	// The kernel keeps the peak since the process began. It is the peak since Start only if it has
	// risen since then.
	j.MaxRSSMB = float64(use.MaxRSS) / collector.MiB
	j.MaxRSSAtMost = use.MaxRSS <= before.MaxRSS

	return j
}
