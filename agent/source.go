package agent

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/timeout"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// A jobSource measures the job's usage, from its control group or from its processes. It also samples the node's GPUs.
type jobSource struct {
	options  host.JobOptions
	jobGroup *cgroup.JobGroup // nil if no group was created
	gpus     *gpu.Monitor
	missing  []reporter.Missing

	job       *job.Job // nil until it has started
	sampling  context.Context
	stop      context.CancelFunc
	following atomic.Bool   // sampling of the GPUs was started
	ended     chan struct{} // closed when sampling of the GPUs has ended
}

// An ownGroup holds the control group of this process, or the reason why the group is unknown.
type ownGroup struct {
	group *cgroup.Group
	err   error
}

func findOwnGroup() ownGroup {
	group, err := cgroup.Find(cgroup.Options{})
	return ownGroup{group, err}
}

// applyTo sets the group in o as the one that limits the job, but not as the one that measures it.
func (g ownGroup) applyTo(o *host.JobOptions) {
	if g.err != nil {
		o.GroupErr = g.err
		return
	}
	o.Group = g.group
	g.group.CountTasks(false)
}

// newJobSource decides how to measure a job, and makes a control group for it if requested. It should be fast, because
// the job's start waits for it.
func newJobSource(o Options, own ownGroup, amongRanks bool) *jobSource {
	src := &jobSource{ended: make(chan struct{}), stop: func() {}}
	rules, _ := o.rules() // already checked
	ofJob := func(r collector.Rule) bool { return r.Column.Info().Scope == collector.ScopeJob }
	src.options = host.JobOptions{
		Source: host.JobFromTree, Reaped: src.reaped, IdleChildren: src.idle, Env: os.Environ(),
		VerifyGroup: slices.ContainsFunc(rules, ofJob),
	}
	src.options.Tree, src.options.TreeErr = newTree(process.Options{
		Root: os.Getpid(), Ignore: func(pid int) bool { return src.job.IsForeign(pid) },
		Reaped: src.endedProcesses, Command: o.Args, Redact: o.redaction().Args,
	})

	if o.Cgroup == Create {
		src.makeGroup(fmt.Sprintf("perfagent-%s.%d.%d", o.RunID, *o.Node, os.Getpid()))
	}
	if src.jobGroup == nil {
		src.useGroup(o, own, amongRanks)
	}

	g := gpu.Options{Interval: o.Interval, Env: src.options.Env}
	if o.TakeOver { // otherwise package gpu waits for nvidia-smi itself
		g.Start = func(fork func() (int, error)) error { return src.job.StartHelper(fork) }
	}
	src.gpus = gpu.Open(g)

	return src
}

// newTree returns a Tree of the processes that o selects. The error is the reason why they cannot be found.
func newTree(o process.Options) (*process.Tree, error) {
	self, err := os.Readlink("/proc/self")
	if err == nil && self != strconv.Itoa(os.Getpid()) {
		return nil, fmt.Errorf("find the job's processes: /proc belongs to another PID namespace, "+
			"in which perfagent is process %s; mount a /proc of this namespace", self)
	}

	return process.NewTree(o), nil
}

func (src *jobSource) makeGroup(name string) {
	if !job.CanEnterCgroup {
		src.addMissing(reporter.CgroupNotMade, fmt.Errorf("--cgroup create: not on %s/%s", runtime.GOOS, runtime.GOARCH))
		return
	}
	made, err := cgroup.NewJobGroup(name)
	if err != nil {
		src.addMissing(reporter.CgroupNotMade, fmt.Errorf("--cgroup create: %w", err))
		return
	}

	src.jobGroup = made
	src.options.Source, src.options.Group = host.JobFromCreated, made.Group()
}

// useGroup measures the job by the control group of this process if no other process is in that group. The CPU usage of
// a shell or a test runner in the same group, or of a program that imports this package, is not the job's. The group
// limits the job in any case.
func (src *jobSource) useGroup(o Options, own ownGroup, amongRanks bool) {
	own.applyTo(&src.options)
	g := own.group
	if own.err != nil || o.Cgroup == Off || !o.TakeOver {
		return
	}

	// The first of several ranks may be alone in a group that the other ranks will join. Slurm gives each task a
	// separate group.
	if amongRanks && !strings.Contains(g.Path(), "/task_") {
		return
	}

	pids, err := g.PIDs()
	if err == nil && len(pids) == 1 && pids[0] == os.Getpid() && !math.IsNaN(g.Read().CPUSeconds) {
		src.options.Source = host.JobFromGroup
		g.CountTasks(true)
	}
}

// begin is called once the job is running. measuresHost reports whether this recording measures the host and its GPUs.
func (src *jobSource) begin(j *job.Job, measuresHost bool) {
	src.job = j
	if j.UsesFallbackEnviron() {
		src.missing = append(src.missing, reporter.NewMissing("environment", reporter.EnvironmentFull))
	}
	if src.jobGroup != nil && j.OutsideCgroup() {
		src.addMissing(reporter.CgroupNotMade,
			fmt.Errorf("--cgroup create: the kernel would not start the job inside %s", src.options.Group.Path()))
	}
	if src.jobGroup != nil {
		missing := src.jobGroup.Missing()
		for _, dir := range slices.Sorted(maps.Keys(missing)) {
			src.addMissing(reporter.CgroupNotMade, fmt.Errorf("--cgroup create: %w", missing[dir]))
		}
	}

	src.sampling, src.stop = context.WithCancel(context.Background())
	if measuresHost {
		src.followGPUs()
	}
}

// followGPUs starts sampling the GPUs. It is called at most once, after begin.
func (src *jobSource) followGPUs() {
	src.following.Store(true)
	go func() {
		defer close(src.ended)
		src.gpus.Run(src.sampling)
	}()
}

// gpuTimeout is how long to wait for the program that queries the GPUs to end. After that, the program and its
// descendants are killed.
const gpuTimeout = 30 * time.Millisecond

// end removes the control group made for the job. If processes of the job are still running in it, the group is kept,
// and end records that in j. The group must not be read concurrently.
func (src *jobSource) end(j *reporter.Job) {
	src.endHelpers()
	if src.jobGroup == nil {
		return
	}

	err, ok := timeout.Call(diskTimeout, src.jobGroup.Remove)
	if !ok {
		err = fmt.Errorf("remove control group %s: no response within %v; once it is empty, remove it with rmdir",
			src.options.Group.Path(), diskTimeout)
	}
	if err != nil {
		j.CgroupStays = true
		src.addMissing(reporter.CgroupStays, err)
	}
}

// leave is called instead of end if the sampler did not return. Because the sampler may still be reading the control
// group, the group is kept, and leave returns a message about that.
func (src *jobSource) leave() string {
	src.endHelpers()
	if src.jobGroup == nil {
		return ""
	}

	return fmt.Sprintf("; control group %s is left: once it is empty, remove it with rmdir", src.options.Group.Path())
}

// endHelpers ends perfagent's helper processes.
func (src *jobSource) endHelpers() {
	src.stop()
	if src.following.Load() {
		if _, ok := timeout.Receive(src.ended, gpuTimeout); !ok {
			src.gpus.Kill() // before ReapHelpers, after which its ID may be reused
		}
	}
	if src.job != nil {
		src.job.ReapHelpers()
	}
}

// addMissing records that an operation on the job's control group failed.
func (src *jobSource) addMissing(code reporter.Code, err error) {
	src.missing = append(src.missing, reporter.Missing{What: host.SourceCgroup, Code: code, Why: err.Error()})
}

// reaped returns the usage of the job's dead processes.
func (src *jobSource) reaped() host.ReapedUsage {
	if src.job == nil {
		return host.ReapedUsage{}
	}

	main := src.job.PID()
	if closed(src.job.Done()) {
		main = 0
	}
	u := src.job.ReapedUsage()

	return host.ReapedUsage{
		MainPID:    main,
		JobEnded:   src.job.AllEnded(),
		CPUSeconds: u.UserSeconds + u.SystemSeconds,
		IO: process.IO{
			ReadBytes: float64(u.BlockInput) * blockUnit, WriteBytes: float64(u.BlockOutput) * blockUnit,
		},
	}
}

// idle returns the number of perfagent's processes in our control group that use no CPU, which is 1 if there is a
// witness process (see job.Witness).
func (src *jobSource) idle() int {
	if src.job == nil || src.job.Witness() == 0 {
		return 0
	}
	return 1
}

// endedProcesses returns the job's processes that were reaped since the last call.
func (src *jobSource) endedProcesses() []process.ReapedProcess {
	if src.job == nil {
		return nil
	}
	return src.job.TakeEnded()
}

// blockUnit is the size in bytes of a block in ru_inblock and ru_oublock, whatever the disk's block size.
const blockUnit = 512
