package agent

import (
	"context"
	"errors"
	"os"
	"slices"
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
	before  job.Usage // of this process and the children that it waited for, at Start
	earlier float64   // CPU seconds that children which were running at Start had used by then

	cancel   context.CancelFunc
	recorded chan *collector.Recording
	followed chan struct{} // closed when the GPUs are no longer sampled

	stop   sync.Once
	result *Result
	err    error
}

// Start starts to watch the calling process and its children. Sampling ends with Stop or when ctx is
// done. In either case Stop must be called: it writes the report and ends what Start began. The error
// is an *OptionError.
func Start(ctx context.Context, o Options) (*Monitor, error) {
	o, err := o.settle()
	if err != nil {
		return nil, err
	}
	if o.TakeOver {
		return nil, &OptionError{"TakeOver", errors.New("a Monitor watches its own process and takes nothing over")}
	}

	m := &Monitor{
		session: newSession(o, slices.Clone(os.Args)), before: programUsage(),
		recorded: make(chan *collector.Recording, 1), followed: make(chan struct{}),
	}
	s := m.session
	m.head = s.head()
	s.output = s.openOutput(m.head, ownMarks)
	if o.Listen != Off {
		s.page = s.newLivePage()
	}

	gpus := gpu.Open(gpu.Options{Interval: o.Interval, Env: os.Environ()})
	options := host.JobOptions{Source: host.JobFromTree, Running: true, Env: os.Environ()}
	options.Tree, options.NoTree = newTree(process.Options{
		Root: os.Getpid(), Self: true, Ignore: func(pid int) bool { return pid == gpus.Pid() },
	})
	sampler := collector.NewSampler(s.reader(host.Options{Job: options, GPUs: gpus}), s.sampling())
	s.followMarks(sampler)
	m.earlier = sampler.Baseline().Job.CPUSeconds - cpuSeconds(programUsage())
	s.startObservers(m.head, m.head.Run.Start.Time, monitorRuns)

	ctx, m.cancel = context.WithCancel(ctx)
	go func() {
		defer close(m.followed)
		gpus.Run(ctx)
	}()
	go func() { m.recorded <- sampler.Run(ctx) }()

	return m, nil
}

// MarksPath returns the file in which the program may say what it does, as the jobs of Run do: append
// lines to it, with marks.Append of collector/marks if you like. Start sets no variable of the program; set PERFAGENT_MARKS to this path
// in the environment of its children for marks of theirs. It is "" if Out cannot be written.
func (m *Monitor) MarksPath() string { return m.session.output.marks }

// Stop ends the sampling and writes the report. Its job is the process and its children between Start
// and Stop. Stop returns when the report has been written and, if there is a server, pushed. The
// Result has no exit code. Further calls return the same values.
func (m *Monitor) Stop() (*Result, error) {
	m.stop.Do(func() { m.result, m.err = m.end() })
	return m.result, m.err
}

func (m *Monitor) end() (*Result, error) {
	s, use, end := m.session, programUsage(), time.Now()
	m.cancel()
	<-m.followed

	rec, ok := patience.Receive(m.recorded, diskPatience)
	if !ok {
		s.observers.end()
		return nil, errors.New(
			"agent: timed out reading the final sample; partial data is in " + s.output.journalPath(),
		)
	}

	account := m.account(use, end)
	missing := append(s.observers.end(), m.leaveOutEarlier(account, rec)...)
	in := s.input(rec, missing)
	in.Run.Start, in.Run.End = m.head.Run.Start, reporter.Time{Time: end}
	in.Run.WallSeconds = end.Sub(m.head.Run.Start.Time).Seconds()
	in.Job = account

	result := &Result{}

	return result, s.deliver(in, result, nil)
}

// account returns what the process and the children that it waited for have used since Start, by the
// kernel's account at the end.
func (m *Monitor) account(use job.Usage, end time.Time) *reporter.Job {
	before := m.before
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

// blurred is how much CPU time, in seconds, the kernel's account and the sum over the processes may
// differ by: they are read one after the other, and one of them in ticks.
const blurred = 0.05

// leaveOutEarlier takes out of j what children had used before Start. The kernel adds the whole life
// of a child to its parent's account when the parent has waited for it; the samples know what the
// children had used at Start. It returns what cannot be taken out.
func (m *Monitor) leaveOutEarlier(j *reporter.Job, rec *collector.Recording) []reporter.Missing {
	whole, sampled := j.UserSeconds+j.SystemSeconds, rec.Account.CPUSeconds
	untilStop := !rec.End.Wall.Before(j.End.Time) // else ctx was done before
	if !sampled.Known() || rec.Account.CPUOpen || !untilStop {
		return nil
	}

	excess := min(whole-float64(sampled), m.earlier)
	if !(excess > blurred) {
		return nil
	}
	j.UserSeconds -= excess * j.UserSeconds / whole
	j.SystemSeconds -= excess * j.SystemSeconds / whole
	j.MaxRSSAtMost = true

	return []reporter.Missing{{What: "job", Code: reporter.FromBefore,
		Why: "children that were started before the Monitor have ended: " +
			"their page faults, context switches, storage blocks and peak size from before it are counted, too"}}
}

// cpuSeconds returns the user and system time of an account.
func cpuSeconds(u job.Usage) float64 { return u.UserSeconds + u.SystemSeconds }
