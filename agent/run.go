package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/perfagent/perfagent"
	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// Run runs the command of o.Args and writes a report of its resource usage. It returns when the report has been written
// and, if there is a server, pushed.
//
// A job that fails is not an error: the Result has the job's exit code. An error means that perfagent failed. After an
// *OptionError, job.ErrNotFound or job.ErrNotExecutable, the command has not been started. Run returns both a Result
// and an error if the report could not be written anywhere (ErrNoReport), if Stdin, Stdout or Stderr could not be
// copied, or if other code in the process waited for the job (the exit code is then 255).
//
// When ctx is done, Run sends TERM to the job, waits for the job's end, and returns the Result with ctx's error. If ctx
// is already done when Run is called, Run starts no job and returns no Result.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if len(o.Args) == 0 {
		return nil, ErrNoCommand
	}
	if err := ctx.Err(); err != nil { // as in os/exec, a job is not started if ctx is done
		return nil, err
	}
	rules := o.redaction()
	path, err := job.Resolve(o.Args[0])
	if err != nil && !errors.Is(err, job.ErrNoProcess) { // after ErrNoProcess, job.Start looks again
		return nil, rules.Error(err, o.Args)
	}
	leave, err := registerRun(o)
	if err != nil {
		return nil, err
	}
	defer leave()

	w := newCommandRun(o.withDefaults())
	w.command.Path = path
	if o.TakeOver {
		if err := job.Headroom(w.own.group.TaskLimits()); err != nil {
			return nil, rules.Error(w.becomeJob(err), o.Args)
		}
		// Signals stay caught, because a TERM while the report is being written must not replace the job's exit code.
		w.signals = job.Catch()
		w.holdsPMI = holdPMI()
	}

	result, err := w.run(ctx)

	return result, rules.Error(err, o.Args)
}

// A commandRun is the run of one wrapped command, from the baseline to the report.
type commandRun struct {
	*session
	command job.Command
	signals *job.Signals // nil unless the process was taken over

	// holdsPMI reports whether Hydra waits for the end of this process rather than for the job's end.
	holdsPMI bool

	own     ownGroup
	source  *jobSource
	stopper *stopper // nil without rules in Options.StopIf

	logs []*jobLog

	// freeSpaceBefore receives the free space measured before the job started.
	freeSpaceBefore chan []host.FreeSpace
}

func newCommandRun(o Options) *commandRun {
	w := &commandRun{session: newSession(o, o.Args), own: findOwnGroup()}
	w.join()
	w.command = job.Command{
		Args: o.Args, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, FallbackEnviron: os.Environ(),
		Env: append(w.tracking.jobEnv(o.RunID), o.jobEnv()...),
	}

	return w
}

// becomeJob replaces this process with the command. It returns only on failure.
func (w *commandRun) becomeJob(why error) error {
	w.log.Warn(fmt.Sprintf("%v; the command runs without being measured", why))
	return job.Exec(w.command, w.signals)
}

func (w *commandRun) run(ctx context.Context) (*Result, error) {
	w.openIntake(false)
	head := w.head()

	// Access the disk and the kernel concurrently, because the job's start waits for both.
	opened := make(chan *output, 1)
	w.freeSpaceBefore = w.o.measureFreeSpace()
	go func() {
		o := w.openOutput(head, false)
		if before, ok := timeout.Receive(w.freeSpaceBefore, freeSpaceTimeout); ok {
			w.freeSpaceBefore <- before // the channel has room for one value
		}
		opened <- o
	}()

	if w.wantsLivePage() {
		w.page = w.newLivePage()
	}
	w.source = newJobSource(w.o, w.own, w.nodeRole.isRankPart)
	if w.source.jobGroup != nil {
		w.command.EnterCgroup = w.source.jobGroup.Enter
	}

	// The sampler closes the reader after the last sample.
	reader := w.reader(host.Options{Job: w.source.options, GPUs: w.source.gpus})
	sampler := collector.NewSampler(reader, w.samplerOptions(w.source.followGPUs))

	w.output = <-opened
	w.addJobInputs(sampler)
	defer w.closeLogs()
	j, err := w.start()
	if err != nil {
		reader.Close()
		return nil, w.cannotStart(err)
	}
	w.startIntake(j.Started())
	w.source.begin(j, w.nodeRole.measuresHost)
	w.addObserver(&signalObserver{w})
	w.addStopper(ctx, reader)
	w.startObservers(head, j.Started(), "the job is still running")

	sampling, stop := context.WithCancel(context.Background())
	recorded := make(chan *collector.Recording, 1)
	go func() { recorded <- sampler.Run(sampling) }()
	go w.journalSignals(sampling)
	if w.o.TakeOver {
		j.Release()
	}

	status := w.wait(ctx, j, stop)

	rec, err := w.awaitRecording(recorded)
	if err != nil {
		w.log.Warn(strings.TrimPrefix(err.Error(), ErrNoReport.Error()+": ") + w.source.leave())
		return w.result(status), errors.Join(err, failure(status), ctx.Err())
	}

	return w.finish(ctx, status, rec)
}

// start starts the job. In a process that was taken over, it first changes the process's command line. After that,
// searches for the job's arguments, such as pgrep -f, find only the job, and ps does not show the job's secrets twice.
func (w *commandRun) start() (*job.Job, error) {
	command := w.withIntakeEnv(w.withMarksEnv(w.command))
	w.findLogs()
	if !w.o.TakeOver {
		return job.Start(command, nil)
	}

	job.SetTitle("perfagent: run")
	j, err := job.Start(command, w.signals)
	if err == nil {
		job.SetTitle(fmt.Sprintf("perfagent: run of process %d", j.PID()))
	}

	return j, err
}

// wait waits for the job, and notes where its logs end if it failed. It sends TERM to the job when ctx is done.
// Sampling stops when the job ends, even if its descendants still write to streams that are copied.
func (w *commandRun) wait(ctx context.Context, j *job.Job, stopSampling func()) job.Status {
	release := context.AfterFunc(ctx, func() {
		w.scrapeNow()
		_ = j.Signal(syscall.SIGTERM)
	})
	defer release()
	go func() {
		<-j.Done()
		stopSampling()
	}()

	status := j.Wait()
	if status.ExitCode != 0 {
		w.markLogs()
	}
	return status
}

// cannotStart removes the files and the control group claimed for the job. If this process was taken over and cannot
// create a child, it becomes the job.
func (w *commandRun) cannotStart(err error) error {
	w.output.abandon()
	w.leaveRoster("")
	w.closeIntake()
	if w.page != nil {
		w.page.end()
	}
	w.source.end(&reporter.Job{})
	if w.o.TakeOver && errors.Is(err, job.ErrNoProcess) {
		return w.becomeJob(err)
	}

	return err
}

// result returns the Result for the job's status.
func (w *commandRun) result(status job.Status) *Result {
	if status.Err != nil {
		w.log.Warn(status.Err.Error())
	}
	return &Result{
		ExitCode: status.ExitCode, Signal: status.Signal, FromTerminal: status.FromTerminal,
		Reraise: w.holdsPMI && status.Signo != 0, Late: w.signals.Late(),
	}
}

// finish makes, writes and pushes the report.
func (w *commandRun) finish(ctx context.Context, status job.Status, rec *collector.Recording) (*Result, error) {
	missing := w.observers.end()
	w.stopper.recordKill(rec)

	// The wall clock may have been stepped: compute the end from the start.
	wall := status.End.Sub(status.Start)
	status.End = status.Start.Add(wall + rec.Suspended())

	account := newJob(status)
	w.source.end(account)
	missing = append(missing, w.source.missing...)
	if status.Uncounted != nil {
		missing = append(missing, reporter.Missing{What: "orphans", Code: reporter.Orphans, Why: status.Uncounted.Error()})
	}

	in := w.input(rec, missing)
	in.Run.Start, in.Run.End = account.Start, account.End
	in.Run.WallSeconds, in.Run.ExitCode, in.Run.Signal = wall.Seconds(), &status.ExitCode, status.Signal
	in.Job, in.Exit = account, w.exitContext(status)
	if status.ExitCode != 0 {
		in.Missing = append(in.Missing, w.addLog(&in.Exit)...)
	}

	cut, release := cutBy(ctx, w.signals.Late())
	defer release()
	result := w.result(status)
	err := w.deliver(in, result, cut)

	return result, errors.Join(err, failure(status), ctx.Err())
}

// failure returns the errors from reading the job's exit status and from copying its streams.
func failure(status job.Status) error {
	err := status.Err
	if err != nil {
		err = fmt.Errorf("agent: %w", err)
	}
	if status.CopyErr != nil {
		err = errors.Join(err, fmt.Errorf("agent: copy the job's streams: %w", status.CopyErr))
	}

	return err
}

// cutBy returns a channel that receives the reason to end the push early: a signal after the job's end, or the end of
// ctx. release ends the goroutine that sends the reason.
func cutBy[S os.Signal](ctx context.Context, signals <-chan S) (cut <-chan string, release func()) {
	why, done := make(chan string, 1), make(chan struct{})
	go func() {
		select {
		case sig, ok := <-signals:
			if ok {
				why <- fmt.Sprintf("ended early by signal %d (%v)", any(sig), sig)
			}
		case <-ctx.Done():
			why <- "ended early: " + ctx.Err().Error()
		case <-done:
		}
	}()

	return why, func() { close(done) }
}

// newJob converts s, the status of a job, to the report's type.
func newJob(s job.Status) *reporter.Job {
	u := s.Usage
	return &reporter.Job{
		PID: s.PID, Start: reporter.Time{Time: s.Start}, End: reporter.Time{Time: s.End},
		ExitCode: &s.ExitCode, Signal: s.Signal,
		UserSeconds: u.UserSeconds, SystemSeconds: u.SystemSeconds,
		MaxRSSMB: float64(u.MaxRSS) / collector.MiB, MaxRSSAtMost: u.MaxRSS <= u.MaxRSSFloor,
		BlockReadMB:  float64(u.BlockInput) * blockUnit / collector.MiB,
		BlockWriteMB: float64(u.BlockOutput) * blockUnit / collector.MiB,
		MinorFaults:  u.MinorFaults, MajorFaults: u.MajorFaults,
		VoluntarySwitches: u.VoluntarySwitches, InvoluntarySwitches: u.InvoluntarySwitches,
		Orphans: s.Orphans,
	}
}

// ParentVariable is set in a job's environment for a perfagent that runs in the job. Its value, "PID NODE HOST",
// describes the perfagent that runs the job.
const ParentVariable = "PERFAGENT_PARENT"

// The variables of a job, apart from those for marks, operations and MLflow.
const (
	runIDVariable = "PERFAGENT_RUN_ID"
	nodeVariable  = "PERFAGENT_NODE"
)

// A parent describes the outer perfagent, as read from the environment. A launcher may have passed the variable to
// another host.
type parent struct {
	pid, node int
	host      string
}

// findParent returns the perfagent that PERFAGENT_PARENT describes, and reports whether the variable is set.
func findParent() (p parent, ok bool) {
	n, err := fmt.Sscanf(os.Getenv(ParentVariable), "%d %d %s", &p.pid, &p.node, &p.host)
	return p, n == 3 && err == nil
}

// contains reports whether this process belongs to the job of p.
func (p parent) contains() bool {
	host, err := os.Hostname()
	return err == nil && host == p.host && procfile.IsAncestor(p.pid)
}

// jobEnv returns additions to the job's environment, with which a perfagent that runs in the job recognizes the run.
func (o Options) jobEnv() []string {
	env := []string{runIDVariable + "=" + o.RunID, fmt.Sprintf("%s=%d", nodeVariable, *o.Node)}
	if host, err := os.Hostname(); err == nil {
		env = append(env, fmt.Sprintf("%s=%d %d %s", ParentVariable, os.Getpid(), *o.Node, host))
	}

	return env
}

// inheritsNode reports whether node, an index from the variable from, belongs to an outer perfagent that runs the
// launcher of this process. If so, the launcher passed PERFAGENT_NODE on to the ranks of all nodes.
func inheritsNode(from string, node int, launch string) bool {
	p, ok := findParent()
	return ok && from == nodeVariable && launch != "" && node == p.node
}

// runs is the state shared by all runs. It is global because a process has one set of signal handlers, one heap, and
// one set of children.
var runs struct {
	mu     sync.Mutex
	active int  // runs that have not ended
	taken  bool // a run with TakeOver has begun; never reset
}

var (
	errTaken = &OptionError{"TakeOver", errors.New("this process has been taken over by another run")}
	errBusy  = &OptionError{"TakeOver", errors.New("other runs are active in this process")}
)

// registerRun admits a run. A run with TakeOver must be the only run, now and later, because it waits for all children
// of the process, including those of other runs. leave must be called when the run has ended.
func registerRun(o Options) (leave func(), err error) {
	runs.mu.Lock()
	defer runs.mu.Unlock()

	switch {
	case runs.taken:
		return nil, errTaken
	case o.TakeOver && runs.active > 0:
		return nil, errBusy
	case o.TakeOver:
		runs.taken = true
		setUpRuntime(o.wantsOperations())
	}
	runs.active++

	return func() {
		runs.mu.Lock()
		defer runs.mu.Unlock()
		runs.active--
	}, nil
}

// allowSecondThread lets a second thread run goroutines in a process that was taken over, so that samples do not wait
// for the run's other tasks.
func (o *Options) allowSecondThread() {
	if o.TakeOver {
		runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	}
}

// setUpRuntime tunes the Go runtime of a process that only measures. operations reports whether the job may send
// operations.
func setUpRuntime(operations bool) {
	// With GOMAXPROCS(1), a goroutine that becomes ready wakes no other thread, and alternating goroutines stay on one
	// thread.
	runtime.GOMAXPROCS(1)

	// Prefer low memory to low CPU, because garbage collection takes almost no CPU here. In the first second, prefer
	// low CPU, because a short job would wait for the collection. A GOGC in the environment is meant for the job, and
	// is overridden.
	first, later := 400, 25
	if operations {
		first, later = 200, 10
	}
	debug.SetGCPercent(first)
	time.AfterFunc(time.Second, func() { debug.SetGCPercent(later) })
}

// Version returns the version of perfagent in this program, as in the file VERSION: "1.0.0".
func Version() string {
	return perfagent.Version()
}
