package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Environment is the input of Detect.
type Environment struct {
	// Lookup returns the value of a variable.
	Lookup func(name string) (value string, ok bool)

	// Hostname is the host name from the kernel; "" if unknown. $HOSTNAME is not used, because mpirun copies it from
	// another host.
	Hostname string

	// Hydra returns a string that identifies the launch of the nearest hydra_pmi_proxy above the process, "" if there
	// is none. It is needed because Hydra sets no variable for this; nil if processes cannot be read.
	Hydra func() string

	// Parent returns a string that identifies the parent process on this host, and its start date; nil if processes
	// cannot be read.
	Parent func() (process, day string)
}

// An Identity describes the job, node and rank of a process. Unknown fields are empty or nil.
type Identity struct {
	Scheduler string    // the system in charge of the job
	JobID     string    // as the scheduler writes it: 123[4].server
	RunID     string    // valid as a folder name, and the same for all ranks of a launch: 123_4_.server
	EndTime   time.Time // when the scheduler ends the job
	Restart   int       // how often the scheduler has restarted the job

	Node     *int   // index of the node
	NodeFrom string // the variable with the index; NodeFromNone if there is none
	NodeName string // the scheduler's name for the node
	Nodes    int    // nodes of the launch, otherwise of the job; 0 = unknown

	Launch      string // distinguishes the launches of a job
	Rank        *int   // among all ranks of the launch
	LocalRank   *int   // among the ranks of the node
	RanksOnNode int    // 0 = unknown
	WorldSize   int    // total ranks; 0 = unknown

	// From maps the report's name of each of these fields to the variables that it was read from.
	From map[string]string
	// Ignored lists variables that were set but ignored, with the reasons.
	Ignored []IgnoredVariable
}

// NodeFromNone is the NodeFrom of a process without a node index in its environment.
const NodeFromNone = "none"

// An IgnoredVariable describes a variable that is ignored, with the reason.
type IgnoredVariable struct {
	Name, Why string
}

// maxNumber is the greatest rank, count or index that readers of reports accept.
const maxNumber = math.MaxInt32

// Detect reads the identity of a process. Rank and counts of ranks come from the launcher that is nearest to the
// process. The job's ID and the node come from the scheduler or, without one, from the launcher.
func Detect(e Environment) Identity {
	d := detector{Environment: e}
	d.id.From = make(map[string]string)

	s := d.readJob()
	l := d.readLauncher()
	d.readNode(s, l)
	d.readLaunch(l)
	d.readRunID()

	return d.id
}

// A detector reads an identity, step by step.
type detector struct {
	Environment
	id Identity
}

// value returns the value of the variable name, "" if it is not set or if name is "".
func (d *detector) value(name string) string {
	value, _ := d.Lookup(name)
	return value
}

// number returns the value of the variable name as a number. A value that is not a number from 0 to maxNumber is
// ignored.
func (d *detector) number(name string) (n int, ok bool) {
	text := d.value(name)
	if text == "" {
		return 0, false
	}

	wide, err := strconv.ParseUint(text, 10, 64)
	if err != nil || wide > maxNumber {
		d.ignore(name, fmt.Sprintf("not a number from 0 to %d", maxNumber))
		return 0, false
	}

	return int(wide), true
}

// count sets *into to the number in the variable name, and records the variable under key in From.
func (d *detector) count(into *int, key, name string) {
	if n, ok := d.number(name); ok {
		*into, d.id.From[key] = n, name
	}
}

// ignore records why the variable name is ignored. If it is called more than once, the first reason is kept.
func (d *detector) ignore(name, why string) {
	if name != "" && !slices.ContainsFunc(d.id.Ignored, func(i IgnoredVariable) bool { return i.Name == name }) {
		d.id.Ignored = append(d.id.Ignored, IgnoredVariable{name, why})
	}
}

// unignore removes name from the ignored variables.
func (d *detector) unignore(name string) {
	d.id.Ignored = slices.DeleteFunc(d.id.Ignored, func(i IgnoredVariable) bool { return i.Name == name })
}

// readJob reads the variables of the scheduler in charge, and returns that scheduler; the zero System if there is none.
func (d *detector) readJob() System {
	for _, s := range Systems() {
		if d.value(s.JobID) != "" && !s.isActive(d.Lookup) {
			d.ignore(s.JobID, fmt.Sprintf("%s sets %s too", s.Name, s.Required))
		}
	}

	s, ok := DetectSystem(d.Lookup)
	if !ok {
		return s
	}
	d.id.Scheduler, d.id.JobID, d.id.EndTime = s.Name, d.value(s.JobID), s.endTime(d.Lookup)
	d.id.From["scheduler"], d.id.From["job_id"] = s.JobID, s.JobID
	if s.NodeSeparator != "" {
		d.id.JobID, _, _ = strings.Cut(d.id.JobID, s.NodeSeparator)
	}
	d.restart(s)
	if task := d.value(s.ArrayTask); task == "" || slices.Contains(s.NoTask, task) {
		d.setRunID(d.id.JobID, s.JobID)
	} else { // each task of an array is a separate run
		d.setRunID(d.value(s.ArrayJob)+"_"+task, s.ArrayJob, s.ArrayTask)
	}
	return s
}

// restart reads how often the scheduler has restarted the job.
func (d *detector) restart(s System) {
	if d.value(s.Restart) == "Y" { // LSF does not count restarts
		d.id.Restart, d.id.From["restart"] = 1, s.Restart
		return
	}

	d.count(&d.id.Restart, "restart", s.Restart)
	if n, ok := d.number(s.Attempts); ok && n > 0 {
		d.id.Restart, d.id.From["restart"] = n-1, s.Attempts
	}
}

// isSet reports whether the variable name is set, possibly to "".
func (d *detector) isSet(name string) bool {
	_, ok := d.Lookup(name)
	return ok
}

// setRunID sets the run ID to SafeRunID of text, unless a run ID is already set. from lists the variables that text
// comes from.
func (d *detector) setRunID(text string, from ...string) {
	if d.id.RunID == "" && text != "" {
		d.id.RunID, d.id.From["run_id"] = SafeRunID(text), strings.Join(from, ", ")
	}
}

// readLauncher reads the ranks of the nearest launcher, and returns that launcher; the zero Launcher if there is none.
func (d *detector) readLauncher() Launcher {
	var nearest Launcher
	for _, l := range Launchers() {
		if !d.isSet(l.Rank) || l.Rank == nearest.Rank { // two launchers set RANK
			continue
		}
		switch why := d.rejectReason(l); {
		case why != "":
			d.ignore(l.Rank, why)
		case nearest.Name != "":
			d.ignore(l.Rank, nearest.Name+" started the process later")
		default:
			nearest = l
			d.readRanks(l)
			d.unignore(l.Rank)
		}
	}

	return nearest
}

// rejectReason returns why the ranks of l are ignored, "" if they are not.
func (d *detector) rejectReason(l Launcher) string {
	missing := slices.DeleteFunc(slices.Clone(l.Required), func(name string) bool { return d.value(name) != "" })
	if len(missing) > 0 {
		return fmt.Sprintf("%s sets %s too", l.Name, listed(missing))
	}
	if l.Name == slurmStep && !d.inStep() {
		return "a batch script is not a step: Slurm's ranks do not apply to it"
	}

	rank, ok := d.number(l.Rank)
	if !ok {
		return "no rank"
	}
	if size, ok := d.number(l.WorldSize); ok && rank >= size {
		return fmt.Sprintf("rank %d is not one of %d (%s)", rank, size, l.WorldSize)
	}

	return ""
}

// listed joins names as in a sentence: "A, B and C".
func listed(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// inStep reports whether the process is in a step that srun started. A batch script is in no step, and the shell of
// salloc is in a step with a reserved number.
func (d *detector) inStep() bool {
	const kept = 0xfffffff0 // the first reserved number (slurm/slurm.h: SLURM_MAX_NORMAL_STEP_ID)

	step, err := strconv.ParseUint(d.value("SLURM_STEP_ID"), 10, 32)
	return err == nil && step < kept
}

// readRanks reads the ranks from the variables of l.
func (d *detector) readRanks(l Launcher) {
	d.index(&d.id.Rank, "rank", l.Rank)
	d.index(&d.id.LocalRank, "local_rank", l.LocalRank)
	d.count(&d.id.RanksOnNode, "ranks_on_node", l.RanksOnNode)
	d.count(&d.id.WorldSize, "world_size", l.WorldSize)
	d.count(&d.id.Nodes, "nodes", l.Nodes)

	switch l.Name {
	case slurmStep:
		d.stepTasks()
	case torchrun:
		if d.id.Restart == 0 {
			d.count(&d.id.Restart, "restart", "TORCHELASTIC_RESTART_COUNT")
		}
	}
	switch {
	case d.id.RanksOnNode > 0 && d.id.RanksOnNode == d.id.WorldSize:
		d.id.Nodes, d.id.From["nodes"] = 1, l.RanksOnNode
	case d.id.RanksOnNode == 0 && d.id.Nodes == 1 && d.id.WorldSize > 0:
		d.id.RanksOnNode, d.id.From["ranks_on_node"] = d.id.WorldSize, l.Nodes
	}
	if d.id.LocalRank != nil && d.id.RanksOnNode > 0 && *d.id.LocalRank >= d.id.RanksOnNode {
		d.ignore(l.RanksOnNode, fmt.Sprintf("local rank %d is not one of %d", *d.id.LocalRank, d.id.RanksOnNode))
		d.id.RanksOnNode = 0
		delete(d.id.From, "ranks_on_node")
	}
}

// index sets *into to the number in the variable name, and records the variable under key in From.
func (d *detector) index(into **int, key, name string) {
	if n, ok := d.number(name); ok {
		*into, d.id.From[key] = &n, name
	}
}

// stepTasks sets RanksOnNode to the number of a Slurm step's tasks on this node, from the list for all nodes. The
// numbers may differ: srun -N2 -n4 may place 3 tasks on one node and 1 on the other.
func (d *detector) stepTasks() {
	const list = "SLURM_STEP_TASKS_PER_NODE"

	node, ok := d.number("SLURM_NODEID") // counts within the step, like the list
	if !ok {
		return
	}
	if tasks, ok := tasksAt(d.value(list), node); ok {
		d.id.RanksOnNode, d.id.From["ranks_on_node"] = tasks, list
	} else if d.isSet(list) {
		d.ignore(list, fmt.Sprintf("it has no number of tasks for node %d of the step", node))
	}
}
