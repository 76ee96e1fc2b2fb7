package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/redact"
	"github.com/perfagent/perfagent/job"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// attachedRuns is Run.Incomplete in reports of attached processes that are still running.
const attachedRuns = "the processes are still running"

// ReadyInfo describes the output of an attached recording. Marks is the value for PERFAGENT_MARKS, or "" if there is no
// marks file.
type ReadyInfo struct {
	RunID string `json:"run_id"`
	PID   int    `json:"pid"` // of this process
	Dir   string `json:"dir"`
	Marks string `json:"marks"`
}

// Attach records running processes and their descendants until the last of them has ended or ctx is done, and then
// writes a report. Their earlier usage is not counted. This process and its children are always excluded. The end of
// ctx is not an error. If a process does not exist, Attach returns an error before it writes anything. If the report
// cannot be written, the error is ErrNoReport.
func Attach(ctx context.Context, pids []int, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	a, err := newAttachment(pids, o.redaction()) // before admit, which may take over this process
	if err != nil {
		return nil, err
	}
	defer a.close()
	o, leave, err := admit(o)
	if err != nil {
		return nil, err
	}
	defer leave()

	a.session = newSession(o, commandOf(a.pids[0]))
	a.join()
	a.openIntake(true)
	if err := a.beginRecording(attachedRuns); err != nil {
		a.leaveRoster("")
		return nil, err
	}

	return a.recordUntilEnd(ctx)
}

// An attachment records processes that perfagent did not start.
type attachment struct {
	*session
	pids      []int
	processes []*job.AttachedProcess
	tree      *process.Tree
}

var errNoPID = errors.New("agent: no process")

// newAttachment finds the processes with the given pids. It writes no files.
func newAttachment(pids []int, rules redact.Rules) (*attachment, error) {
	a := &attachment{}
	for _, pid := range pids {
		if !slices.Contains(a.pids, pid) {
			a.pids = append(a.pids, pid)
		}
	}
	switch {
	case len(a.pids) == 0:
		return nil, errNoPID
	case slices.Contains(a.pids, os.Getpid()):
		return nil, fmt.Errorf("process %d is perfagent itself", os.Getpid())
	}

	var err error
	a.tree, err = newTree(process.Options{
		Members: a.pids, Ignore: func(pid int) bool { return pid == os.Getpid() }, Running: true, Redact: rules.Args,
	})
	if err != nil {
		return nil, err
	}
	for _, pid := range a.pids {
		p, err := job.Attach(pid)
		if err != nil {
			a.close()
			return nil, err
		}
		a.processes = append(a.processes, p)
	}
	a.tree.Next.NoMemory = true // this scan only finds the processes
	if _, err := a.tree.Read(); err != nil {
		a.close()
		return nil, err
	}

	return a, nil
}

func (a *attachment) close() {
	for _, p := range a.processes {
		p.Close()
	}
}

// recordUntilEnd records until the last process has ended or ctx is done, and writes the report.
func (a *attachment) recordUntilEnd(ctx context.Context) (*Result, error) {
	sampling, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan bool, 1)
	go func() {
		all := true
		for _, p := range a.processes {
			all = p.Wait(sampling, a.o.Interval) && all
		}
		stop()
		ended <- all
	}()

	rec, err := a.sample(sampling, a.jobOptions(), a.ready)
	if err != nil {
		return nil, err
	}

	in := a.input(rec, a.observers.end())
	a.account(&in, rec, <-ended)

	return a.finishRecording(in)
}

// ready calls OnReady when the recording has begun.
func (a *attachment) ready(*collector.Sampler) {
	if a.o.OnReady == nil {
		return
	}

	dir := filepath.Dir(a.output.journal.Path())
	makeAbsolute(&dir)
	a.o.OnReady(ReadyInfo{RunID: a.run.ID, PID: os.Getpid(), Dir: dir, Marks: a.output.marks})
}

// jobOptions decides how to measure the processes: by their control group if it contains no other processes, otherwise
// individually.
func (a *attachment) jobOptions() host.JobOptions {
	o := host.JobOptions{
		Source: host.JobFromTree, Running: true, PID: a.pids[0], Env: environOf(a.pids[0]), Tree: a.tree,
	}
	g, err := cgroup.Find(cgroup.Options{PID: a.pids[0]})
	ownGroup{g, err}.applyTo(&o)
	if err != nil || a.o.Cgroup == Off {
		return o
	}

	inside, err := g.PIDs()
	if err != nil || math.IsNaN(g.Read().CPUSeconds) || !a.alone(inside) {
		return o
	}
	o.Source, o.AgentOutsideGroup = host.JobFromGroup, !slices.Contains(inside, os.Getpid())
	g.CountTasks(true)

	return o
}

// alone reports whether inside, the processes in a control group, are exactly the recorded processes and possibly this
// process.
func (a *attachment) alone(inside []int) bool {
	outside := func(pid int) bool { return !slices.Contains(inside, pid) }
	foreign := func(pid int) bool { return pid != os.Getpid() && !a.tree.Contains(pid) }
	return !slices.ContainsFunc(a.pids, outside) && !slices.ContainsFunc(inside, foreign)
}

// account adds the recorded processes to in, with the exit status of the first process.
func (a *attachment) account(in *diagnosis.Input, rec *collector.Recording, ended bool) {
	start := rec.Start.Wall
	in.Job = &reporter.Job{
		PID: a.pids[0], PIDs: a.pids, Attached: true, Start: reporter.Time{Time: start},
		End: reporter.Time{Time: start.Add(max(0, rec.End.Boot-rec.Start.Boot))},
	}
	in.Missing = append(in.Missing, reporter.NewMissing("job", reporter.ParentOnly))
	if !ended {
		in.Missing = append(in.Missing, reporter.Missing{What: "exit_code", Code: reporter.JobGoesOn,
			Why: "the job went on when the recording ended"})
		return
	}

	code, signal, err := a.processes[0].Status()
	if err != nil {
		in.Exit.UnknownReason = err.Error()
		in.Missing = append(in.Missing, reporter.Missing{What: "exit_code", Code: reporter.ParentOnly, Why: err.Error()})
		return
	}
	in.Job.ExitCode, in.Job.Signal = &code, signal
	in.Run.ExitCode, in.Run.Signal = &code, signal
}

// commandOf returns the command line of the process pid, or its name if it has no command line.
func commandOf(pid int) []string {
	if args := procfile.CommandLine(pid); args != nil {
		return args
	}
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil || len(name) == 0 {
		return []string{"process " + strconv.Itoa(pid)}
	}

	return []string{string(bytes.TrimSpace(name))}
}

// environOf returns the initial environment of the process pid. If pid is the parent of this process, or its
// environment cannot be read, environOf returns the environment of this process.
func environOf(pid int) []string {
	if pid == os.Getppid() {
		return os.Environ()
	}
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return os.Environ()
	}

	return strings.Split(string(data), "\x00")
}
