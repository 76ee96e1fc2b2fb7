package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
)

// Values of --cgroup.
const (
	cgroupAuto   = "auto"
	cgroupCreate = "create"
	cgroupOff    = "off"
)

// account is how the job's own use is measured: from the control group that holds it, or
// from its processes; and the node's GPUs.
type account struct {
	made    *cgroup.Made // nil = none was made
	options host.JobOptions
	gpus    *gpu.Monitor
	job     *job.Job // nil until it was started
	ended   chan struct{}
	missing []reporter.Missing
	stop    context.CancelFunc
}

// newAccount finds or makes the control group. The job waits for it.
func newAccount(mode, name string, interval time.Duration) *account {
	a := &account{ended: make(chan struct{}), stop: func() {}}
	a.options = host.JobOptions{Source: host.JobFromTree, Reaped: a.reaped, Env: os.Environ(),
		Tree: process.NewTree(process.Options{Root: os.Getpid(), Ignore: func(pid int) bool { return a.job.Other(pid) }})}
	if self, err := os.Readlink("/proc/self"); err == nil && self != strconv.Itoa(os.Getpid()) {
		a.options.Tree = nil
		a.options.NoTree = fmt.Errorf("find the job's processes: /proc is that of another pid namespace, in which perfagent is process %s; mount one of its own", self)
	}
	if mode == cgroupCreate {
		a.makeGroup(name)
	}
	if a.made == nil {
		a.findGroup(mode)
	}
	a.gpus = gpu.Open(gpu.Options{Interval: interval, Env: a.options.Env,
		Start: func(fork func() (int, error)) error { return a.job.StartHelper(fork) }})
	return a
}

func (a *account) makeGroup(name string) {
	made, err := cgroup.Make(name)
	if err != nil {
		a.miss(host.SourceCgroup, fmt.Errorf("--cgroup create: %w", err))
		return
	}
	a.made = made
	a.options.Source, a.options.Group = host.JobFromCreated, made.Group()
}

// findGroup looks whether our own group holds nothing but us and, soon, the job. Not so
// where a shell or a test runner waits for us in it: what that one uses is not the job's.
// The group limits the job in any case.
func (a *account) findGroup(mode string) {
	g, err := cgroup.Find(cgroup.Options{})
	if err != nil {
		a.options.NoGroup = err
		return
	}
	a.options.Group = g
	g.Count(false) // unless it is the job's, below
	if mode == cgroupOff {
		return
	}
	pids, err := g.Pids()
	if err == nil && len(pids) == 1 && pids[0] == os.Getpid() && !math.IsNaN(g.Read().CPUSeconds) {
		a.options.Source = host.JobFromGroup
		g.Count(true)
	}
}

// begin is called when the job runs.
func (a *account) begin(j *job.Job) {
	a.job = j
	if a.made != nil && j.Outside() {
		a.miss(host.SourceCgroup, fmt.Errorf("--cgroup create: the kernel would not start the job inside %s", a.options.Group.Path()))
	}
	if a.made != nil {
		missing := a.made.Missing()
		for _, dir := range slices.Sorted(maps.Keys(missing)) {
			a.miss(host.SourceCgroup, fmt.Errorf("--cgroup create: %w", missing[dir]))
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	go func() {
		defer close(a.ended)
		a.gpus.Run(ctx)
	}()
}

// gpuPatience is how long the end of the program is waited for that asks for the GPUs.
// One that does not heed is killed then, with all that it has started.
const gpuPatience = 30 * time.Millisecond

// end gives back what was made. A group in which processes of the job go on stays. Nobody
// may be reading the group.
func (a *account) end(j *reporter.Job) {
	a.endGPUs()
	if a.made == nil {
		return
	}
	err, ok := patience.Ask(diskPatience, a.made.Remove)
	if !ok {
		err = fmt.Errorf("remove control group %s: no answer within %v; once it is empty, remove it with rmdir", a.options.Group.Path(), diskPatience)
	}
	if err != nil {
		j.CgroupStays = true
		a.miss(host.SourceCgroup, err)
	}
}

// leave is end for where the sampler did not come back: it may be reading the group, which
// therefore stays. It says so.
func (a *account) leave() string {
	a.endGPUs()
	if a.made == nil {
		return ""
	}
	return fmt.Sprintf("; control group %s stays: once it is empty, remove it with rmdir", a.options.Group.Path())
}

func (a *account) endGPUs() {
	a.stop()
	if a.job == nil { // they are not followed
		return
	}
	if _, ok := patience.Receive(a.ended, gpuPatience); !ok {
		a.gpus.Kill() // before it is reaped
	}
	a.job.ReapHelpers()
}

func (a *account) miss(what string, err error) {
	a.missing = append(a.missing, reporter.Missing{What: what, Why: err.Error()})
}

// reaped is what the job's dead processes have used.
func (a *account) reaped() host.Reaped {
	if a.job == nil {
		return host.Reaped{}
	}
	const blockUnit = 512 // of ru_inblock and ru_oublock
	u := a.job.Reaped()
	return host.Reaped{Over: a.job.Over(), CPUSeconds: u.UserSeconds + u.SystemSeconds,
		ReadBytes: float64(u.BlockInput) * blockUnit, WriteBytes: float64(u.BlockOutput) * blockUnit}
}
