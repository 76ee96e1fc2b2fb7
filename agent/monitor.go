package agent

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// monitorRuns is Run.Incomplete in reports of an active Monitor.
const monitorRuns = "the program is still running"

// A Monitor watches the calling process and its children from inside, from Start to Stop. perf.py is used in the same
// way: the benchmark itself starts and stops perf.py's thread.
type Monitor struct {
	session    *session
	startUsage job.Usage // of this process and its reaped children, at Start
	leave      func()    // unregisters the run
	earlier    float64   // CPU seconds used before Start by children that were running at Start

	close           func()      // ends the measurement; further calls do nothing
	release         func() bool // stops the context from calling close
	endUsage        job.Usage   // of this process and its reaped children, at the end
	end             time.Time   // when close was called
	samplingResults chan samplingResult

	stopOnce sync.Once
	result   *Result
	err      error
}

// samplingResult holds the results of session.sample.
type samplingResult struct {
	rec *collector.Recording
	err error
}

// Start starts watching the calling process and its children, until Stop is called or ctx is done. Stop must be called
// even if ctx is done, because it writes the report and releases resources. Any error is an *OptionError.
func Start(ctx context.Context, o Options) (*Monitor, error) {
	if o.TakeOver {
		return nil, &OptionError{"TakeOver", errors.New("a Monitor watches its own process and cannot take it over")}
	}
	o, leave, err := admit(o)
	if err != nil {
		return nil, err
	}

	s := newSession(o, slices.Clone(os.Args))
	m := &Monitor{session: s, startUsage: programUsage(), leave: leave, samplingResults: make(chan samplingResult, 1)}
	s.join()
	s.openIntake(false)
	_ = s.beginRecording(monitorRuns) // even if no file can be written, Stop returns a Result

	sampling, cancel := context.WithCancel(context.Background())
	m.close = sync.OnceFunc(func() {
		m.endUsage, m.end = programUsage(), time.Now()
		cancel()
	})
	begun := make(chan struct{})
	go func() {
		rec, err := s.sample(sampling, s.ownJobOptions(), func(sampler *collector.Sampler) {
			m.earlier = sampler.Baseline().Job.CPUSeconds - cpuSeconds(programUsage())
			close(begun)
		})
		m.samplingResults <- samplingResult{rec, err}
	}()
	<-begun
	m.release = context.AfterFunc(ctx, m.close)

	return m, nil
}

// ownJobOptions returns options that measure the calling process and its children, except the process that queries the
// GPUs.
func (s *session) ownJobOptions() host.JobOptions {
	out := host.JobOptions{Source: host.JobFromTree, Running: true, Env: os.Environ()}
	out.Tree, out.TreeErr = newTree(process.Options{
		Members: []int{os.Getpid()}, Ignore: func(pid int) bool { return pid == s.gpus.PID() },
		Running: true, Redact: s.o.redaction().Args,
	})
	findOwnGroup().applyTo(&out)

	return out
}

// MarksPath returns the path of the file for the program's marks, or "" if Out cannot be written. Append lines to it as
// a job of Run does, for example with marks.Append of collector/marks. Start sets no environment variable. To let
// children add marks, set PERFAGENT_MARKS to this path in their environment.
func (m *Monitor) MarksPath() string { return m.session.output.marks }

// Environ returns an environment for children of the program: environ with the addresses for operations. See
// Options.Ops.
func (m *Monitor) Environ(environ []string) []string {
	if m.session.intake == nil {
		return environ
	}
	out, _ := m.session.intake.Environ(environ) // the notes are about variables that the program has set itself

	return out
}

// Stop ends the sampling and writes the report. In the report, the job is the process and its children from Start to
// Stop, or to the end of Start's ctx. Stop returns when the report has been written and, if there is a server, pushed.
// The Result has no exit code. Further calls return the same values.
func (m *Monitor) Stop() (*Result, error) {
	m.stopOnce.Do(func() {
		defer m.leave()
		m.release()
		m.close()
		m.result, m.err = m.conclude()
	})
	return m.result, m.err
}

// conclude makes, writes and pushes the report.
func (m *Monitor) conclude() (*Result, error) {
	s := m.session
	last := <-m.samplingResults
	if last.err != nil {
		return nil, last.err
	}

	account := m.account()
	missing := append(s.observers.end(), m.leaveOutEarlier(account, last.rec)...)
	in := s.input(last.rec, missing)
	in.Run.Start, in.Run.End = account.Start, account.End
	in.Run.WallSeconds = m.end.Sub(s.started).Seconds()
	in.Job = account

	result := &Result{}

	return result, s.deliver(in, result, nil)
}

// account returns the usage of the process and its reaped children from Start to the end, computed from the kernel's
// account at both times.
func (m *Monitor) account() *reporter.Job {
	before, use := m.startUsage, m.endUsage
	j := newJob(job.Status{PID: os.Getpid(), Start: m.session.started, End: m.end, Usage: job.Usage{
		UserSeconds: use.UserSeconds - before.UserSeconds, SystemSeconds: use.SystemSeconds - before.SystemSeconds,
		MinorFaults: use.MinorFaults - before.MinorFaults, MajorFaults: use.MajorFaults - before.MajorFaults,
		BlockInput: use.BlockInput - before.BlockInput, BlockOutput: use.BlockOutput - before.BlockOutput,
		VoluntarySwitches:   use.VoluntarySwitches - before.VoluntarySwitches,
		InvoluntarySwitches: use.InvoluntarySwitches - before.InvoluntarySwitches,
	}})

	j.ExitCode = nil // the process is still running

	// The kernel keeps the peak since the process started. It is the peak since Start only if it has risen since then.
	j.MaxRSSMB = float64(use.MaxRSS) / collector.MiB
	j.MaxRSSAtMost = use.MaxRSS <= before.MaxRSS

	return j
}

// accountTolerance is the maximum difference, in seconds of CPU time, between the kernel's account and the sum over the
// processes. The two differ because they are read one after the other, and one of them is in ticks.
const accountTolerance = 0.05

// leaveOutEarlier subtracts from j the CPU time that children used before Start. The kernel adds the usage of a child's
// whole life to the parent's account when the parent has waited for the child; the samples contain the children's usage
// at Start. leaveOutEarlier returns a note on the usage that it cannot subtract.
func (m *Monitor) leaveOutEarlier(j *reporter.Job, rec *collector.Recording) []reporter.Missing {
	whole, sampled := j.UserSeconds+j.SystemSeconds, rec.Account.CPUSeconds
	if !sampled.Known() || rec.Account.CPUIncomplete {
		return nil
	}

	excess := min(whole-float64(sampled), m.earlier)
	if !(excess > accountTolerance) {
		return nil
	}
	j.UserSeconds -= excess * j.UserSeconds / whole
	j.SystemSeconds -= excess * j.SystemSeconds / whole
	j.MaxRSSAtMost = true

	return []reporter.Missing{{What: "job", Code: reporter.CountedFromBefore,
		Why: "children that were started before the Monitor have ended: " +
			"their page faults, context switches, storage blocks and peak size from before it are counted, too"}}
}

// programUsage returns the usage of this process and its reaped children since the process started.
func programUsage() job.Usage {
	own, children := job.OwnUsage()
	return own.Plus(children)
}

// ownCPU returns the CPU time of this process in seconds, or 0 if it is unknown.
func ownCPU() float64 {
	own, _ := job.OwnUsage()
	return cpuSeconds(own)
}

// cpuSeconds returns the sum of user and system time in u.
func cpuSeconds(u job.Usage) float64 { return u.UserSeconds + u.SystemSeconds }
