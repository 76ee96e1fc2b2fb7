package reporter

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/intake/aggregate"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/opstats"
)

// Schema is the format of the report file. Readers refuse a higher major number.
const Schema = "perfagent.report/1"

// Report is what one run used, on one node or on many: the report file's value.
type Report struct {
	Schema string           `json:"schema"`
	Run    Run              `json:"run"`
	Nodes  map[string]*Node `json:"nodes"` // by node index, as decimal text
}

// Run is the run as a whole. A merged report spans its nodes.
type Run struct {
	ID      string   `json:"id"`
	Command []string `json:"command,omitempty"` // absent for a sidecar
	// Platform is where the run was started, if that has words of its own for CPUs and memory.
	Platform string `json:"platform,omitempty"`
	// MemoryPer is what memory was requested for there, if not for a node: MemoryPerCPU, MemoryPerGPU.
	MemoryPer string `json:"memory_per,omitempty"`
	// Start, End and WallSeconds are left out where they are not known: a file of
	// perf.py's without timestamps, a journal cut off before its first sample.
	Start Time `json:"start,omitzero"`
	End   Time `json:"end,omitzero"`
	// WallSeconds is start to end on the monotonic clock.
	WallSeconds float64 `json:"wall_seconds,omitzero"`
	// ExitCode is what perfagent exited with: the job's code, or 128+n.
	ExitCode *int `json:"exit_code,omitempty"`
	// Signal that killed the job, as a name: SIGKILL.
	Signal string            `json:"signal,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"`
	// Incomplete says why the end is missing: still running, or a crash.
	Incomplete string `json:"incomplete,omitempty"`
	// Verdict is that of the first job that failed, of all nodes and ranks.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Nodes is the number of nodes in a report of several. Encode sets it.
	Nodes int `json:"nodes,omitempty"`
	// Gather says what was found in the store from which the nodes were merged; nil if they were not.
	Gather *GatherResult `json:"gather,omitempty"`
}

// The platforms of a Run.
const (
	PlatformSlurm      = "slurm"
	PlatformKubernetes = "kubernetes"
	PlatformDocker     = "docker"
	PlatformPodman     = "podman"
)

// What memory is requested for, if not for a node.
const (
	MemoryPerCPU = "cpu"
	MemoryPerGPU = "gpu"
)

// Node is what one node used.
type Node struct {
	// Command is the wrapped command of a node of several, if it is not that of the run.
	Command []string `json:"command,omitempty"`

	Host     *Host     `json:"host,omitempty"`
	Identity *Identity `json:"identity,omitempty"` // nil where nothing but the host told it
	Sampling *Sampling `json:"sampling,omitempty"`
	Agent    *Agent    `json:"agent,omitempty"`
	Job      *Job      `json:"job,omitempty"` // absent for a sidecar
	// Ranks are the processes of a launch that had several on the node, by rank as decimal text; nil if the
	// node had one. Job and the metrics of the job are then those of all together.
	Ranks     Ranks              `json:"ranks,omitempty"`
	Limits    *Limits            `json:"limits,omitempty"`
	GPUs      []GPU              `json:"gpus,omitempty"`
	Mounts    []Mount            `json:"mounts,omitempty"`  // the file systems of servers that were used
	Verdict   *Verdict           `json:"verdict,omitempty"` // absent for a sidecar
	Findings  []Finding          `json:"findings,omitzero"` // nil = not looked for
	Metrics   Values             `json:"metrics"`
	Summaries map[string]Summary `json:"summaries,omitempty"`
	Marks     []Mark             `json:"marks,omitempty"`
	Phases    []Phase            `json:"phases,omitempty"` // by their first start
	// Processes are the job's: the twenty with the most CPU time and the twenty with the highest peak
	// memory, by CPU time; nil if none was seen.
	Processes []Process `json:"processes,omitempty"`
	// Operations and Transfers are what the job said of its work; nil if they were not recorded.
	Operations *aggregate.Operations         `json:"operations,omitempty"`
	Transfers  map[string]aggregate.Transfer `json:"transfers,omitzero"` // by name
	Missing    []Missing                     `json:"missing"`
	Push       *Push                         `json:"push,omitempty"`
	// Origin is "perf.py" for a node that was read from perf.py's JSON: its totals
	// are since boot and its shares are of the kept samples.
	Origin string `json:"origin,omitempty"`

	// Reference is STORE#NAME of the report that has the series of a node that was merged without them. Bytes is its
	// length as stored, and SHA256 the hash of these bytes in hexadecimal digits.
	Reference string `json:"reference,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	SHA256    string `json:"sha256,omitempty"`

	// The series come last in the file, so that whoever needs the numbers only can stop there.
	Samples  Samples  `json:"samples"`
	Envelope Envelope `json:"envelope,omitempty"`
}

// OriginPerfPy marks a Node read from perf.py's JSON.
const OriginPerfPy = "perf.py"

// Host is the machine. Empty and 0 = unknown.
type Host = host.Info

// Sampling is how well the node was sampled.
type Sampling struct {
	// Start is the moment of the baseline, just before the job's start.
	Start             Time         `json:"start,omitzero"`
	IntervalSeconds   float64      `json:"interval_seconds"`
	Samples           int64        `json:"samples"`      // taken, not kept
	MissedTicks       int64        `json:"missed_ticks"` // points of the grid without a sample
	LongestGapSeconds float64      `json:"longest_gap_seconds"`
	Stride            int64        `json:"stride"`               // samples that one kept sample stands for
	MaxLength         int          `json:"max_length"`           // capacity of the ring
	Reader            string       `json:"reader,omitempty"`     // what the host was read through
	DiskPaths         []string     `json:"disk_paths,omitempty"` // file systems whose fill was measured
	Disks             []string     `json:"disks"`                // block devices that were counted
	NICs              []string     `json:"nics"`                 // interfaces that were counted
	ClockSteps        []ClockEvent `json:"clock_steps,omitempty"`
	HostSpans         []HostSpan   `json:"holders,omitempty"` // of several ranks: which measured the host, in order
	Suspends          []ClockEvent `json:"suspends,omitempty"`
}

// ClockEvent is a step of the wall clock, or a suspend.
type ClockEvent struct {
	At      Time    `json:"at"`
	Seconds float64 `json:"seconds"`
}

// Agent is perfagent's own cost; what is not known is left out.
type Agent struct {
	Version    string  `json:"version"`
	CPUSeconds float64 `json:"cpu_seconds,omitzero"`
	MaxRSSMB   float64 `json:"max_rss_mb,omitzero"`
}

// Job is the wrapped command's account. Unless a field says otherwise, its value is exact and
// comes from wait4(2)'s rusage: of the job, the children that it waited for, and the orphans
// that we reaped.
type Job struct {
	PID int `json:"pid"`
	// PIDs are the processes that perfagent was attached to, PID the first of them. Attached reports
	// that it was: then there is no rusage, and MarshalJSON leaves out what comes from it.
	PIDs     []int `json:"pids,omitempty"`
	Attached bool  `json:"attached,omitempty"`
	Start    Time  `json:"start"`
	End      Time  `json:"end"`
	// ExitCode is absent while the job goes on, for a program that watches itself, and where the kernel
	// does not tell that of an attached process.
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// CPU time, seconds.
	UserSeconds   float64 `json:"user_seconds"`
	SystemSeconds float64 `json:"system_seconds"`
	// MaxRSSMB is the peak memory of the largest single process, MiB.
	MaxRSSMB float64 `json:"max_rss_mb"`
	// MaxRSSAtMost reports that MaxRSSMB is only an upper bound: the kernel counts
	// the memory of perfagent itself, from which the job was forked.
	MaxRSSAtMost bool `json:"max_rss_at_most,omitempty"`
	// Storage traffic that the job caused, MiB (ru_inblock, ru_oublock).
	BlockReadMB  float64 `json:"block_read_mb"`
	BlockWriteMB float64 `json:"block_write_mb"`
	MinorFaults  int64   `json:"minor_faults"`
	MajorFaults  int64   `json:"major_faults"`
	// Context switches: the job waited, or was preempted.
	VoluntarySwitches   int64 `json:"voluntary_context_switches"`
	InvoluntarySwitches int64 `json:"involuntary_context_switches"`
	// Orphans is how many re-parented descendants were reaped and counted.
	Orphans int `json:"orphans"`

	// Source is where the numbers below and the job's samples come from: a control group
	// that holds just us and the job ("cgroup"), one that was made for it ("created"), or
	// its processes ("tree").
	Source string `json:"source,omitempty"`
	// CPUSeconds is all CPU time of the job to its end. It includes short children and daemons
	// that are still running, and leaves out perfagent and its helpers.
	CPUSeconds float64 `json:"cpu_seconds"`
	// CPUAtLeast reports that CPUSeconds is only a lower bound: processes of the job went on
	// at its end, and what they have used could not be read.
	CPUAtLeast bool `json:"cpu_at_least,omitempty"`
	// PeakMemoryMB is the highest memory of the whole job, MiB, counted as MemoryKind
	// says: pss, rss or cgroup. 0 = not known.
	PeakMemoryMB float64 `json:"peak_memory_mb,omitzero"`
	MemoryKind   string  `json:"memory_kind,omitempty"`
	// UnownedMB is the most by which the node's shared memory (/dev/shm, other tmpfs) grew while the job ran, beyond
	// what is known to be the job's, MiB. It is not in PeakMemoryMB, and may be of others.
	UnownedMB float64 `json:"shared_memory_of_unknown_owner_mb,omitzero"`
	// PeakMemoryFrom is PeakFromRanks if PeakMemoryMB is that of several ranks; else "".
	PeakMemoryFrom string `json:"job_peak_memory_from,omitempty"`
	// Cgroup is the path of the control group, CgroupPeakMB the kernel's own peak of it,
	// page cache included, MiB. CgroupStays reports that a group which was made for the job
	// could not be removed, because processes of the job are still in it.
	Cgroup       string  `json:"cgroup,omitempty"`
	CgroupPeakMB float64 `json:"cgroup_peak_mb,omitzero"`
	CgroupStays  bool    `json:"cgroup_stays,omitempty"`
}

// MarshalJSON implements json.Marshaler. Of a job that perfagent was attached to, it leaves out what only rusage has.
func (j Job) MarshalJSON() ([]byte, error) {
	type plain Job
	if !j.Attached {
		return text.JSON(plain(j))
	}
	return text.JSON(struct {
		plain
		// These hide the fields of the same names.
		UserSeconds         *none `json:"user_seconds,omitempty"`
		SystemSeconds       *none `json:"system_seconds,omitempty"`
		MaxRSSMB            *none `json:"max_rss_mb,omitempty"`
		BlockReadMB         *none `json:"block_read_mb,omitempty"`
		BlockWriteMB        *none `json:"block_write_mb,omitempty"`
		MinorFaults         *none `json:"minor_faults,omitempty"`
		MajorFaults         *none `json:"major_faults,omitempty"`
		VoluntarySwitches   *none `json:"voluntary_context_switches,omitempty"`
		InvoluntarySwitches *none `json:"involuntary_context_switches,omitempty"`
		Orphans             *none `json:"orphans,omitempty"`
	}{plain: plain(j)})
}

// none is the type of a field that is never there.
type none struct{}

// Limits is what bounds the job on its node.
type Limits = host.Limits

// Reclaim is what may have kept the memory of a job below what it needs.
type Reclaim = host.Reclaim

// LimitRange is how far a limit moved in the course of a run.
type LimitRange = host.LimitRange

// GPU is a device of the node.
type GPU struct {
	Index           int             `json:"index"`
	UUID            string          `json:"uuid,omitempty"`
	Name            string          `json:"name,omitempty"`
	MemoryMB        series.Optional `json:"memory_mb,omitzero"`
	PowerLimitWatts series.Optional `json:"power_limit_watts,omitzero"`
	// OfJob reports that the job could see the device (CUDA_VISIBLE_DEVICES and the like).
	OfJob bool `json:"of_job"`
	MIG   bool `json:"mig,omitempty"`
	// ClockMHz is the highest clock that was seen; Throttle lists the reasons why it
	// was held back.
	ClockMHz series.Optional `json:"clock_mhz,omitzero"`
	Throttle []string        `json:"throttle,omitempty"`
	// Idle is when the device was idle; nil if it never was, or is not the job's.
	Idle *GPUIdle `json:"idle,omitempty"`
}

// GPUIdle is when a GPU of the job was idle for a second or longer at a time, and what went on meanwhile, as
// means over that time. What is not known is null.
type GPUIdle struct {
	Seconds            float64         `json:"seconds"`
	Gaps               int64           `json:"gaps"`
	LongestGapSeconds  float64         `json:"longest_gap_seconds"`
	JobCPUs            series.Optional `json:"job_cpus"`
	DiskMBPerSecond    series.Optional `json:"disk_mb_per_second"`      // of the node, read and written
	WaitingForStorePct series.Optional `json:"waiting_for_storage_pct"` // some task of the job, else of the node
}

// Verdict says how the job ended, and why, with the proof.
type Verdict struct {
	Cause string `json:"cause"` // one of Causes
	Text  string `json:"text"`  // one sentence
	// Evidence are the numbers that prove it: exit_code; signal; limit_mb, peak_mb,
	// oom_kills, process, time…
	Evidence   map[string]any `json:"evidence"`
	Conditions []string       `json:"conditions"` // what the job suffered from, apart from what ended it
}

// Finding is a piece of advice, proved by numbers of the report.
type Finding struct {
	ID       string         `json:"id"`
	Severity string         `json:"severity"` // "warning", "info"
	Text     string         `json:"text"`     // what was found, and what to change
	Evidence map[string]any `json:"evidence"`
}

// Mark is a moment that the job marked.
type Mark struct {
	Timestamp float64 `json:"timestamp"` // seconds since 1970, on the time axis of the samples
	Text      string  `json:"text"`
}

// Phase is what was used while the job was in a phase.
type Phase struct {
	Name    string  `json:"name"`
	Start   float64 `json:"start"`   // of the first stretch, seconds since 1970
	Seconds float64 `json:"seconds"` // of all stretches
	Count   int64   `json:"count"`   // how often it began
	// Metrics are those of the table that make sense for a part of the run.
	Metrics Values      `json:"metrics"`
	Spans   []PhaseSpan `json:"stretches"`
}

// PhaseSpan is a time in which a phase was on: its start, in seconds since 1970, and its length in
// seconds.
type PhaseSpan [2]float64

// Push is where the report went.
type Push struct {
	MLflow PushState   `json:"mlflow"`
	Store  *StoreState `json:"store,omitempty"` // nil if no store was ever named
}

// Pending reports whether anything of it is still to be sent.
func (p *Push) Pending() bool {
	return p != nil && (p.MLflow.State == PushPending || p.Store != nil && p.Store.State == PushPending)
}

// StoreState is whether a store has the report.
type StoreState struct {
	State     string `json:"state"`               // PushDone or PushPending
	URI       string `json:"uri"`                 // of the store, without user info
	Reference string `json:"reference,omitempty"` // STORE#NAME, once it is done
	Error     string `json:"error,omitempty"`     // why it is not
	// Unconditional reports that the store cannot tell whether a name is free: another process may have put a report
	// under the same name at the same moment, and one of the two is lost.
	Unconditional bool                  `json:"unconditional,omitempty"`
	Metrics       *opstats.StoreMetrics `json:"metrics,omitempty"` // of the last attempt
}

// The states of a push.
const (
	PushDone    = "done"    // the server has everything
	PushPending = "pending" // "perfagent push" will send what is missing
	PushOff     = "off"     // not asked for, or nowhere to push to: then Error says why
)

// PushState is the state of a push and, while it is pending, its destination.
type PushState struct {
	State string `json:"state"`
	// RunID is the MLflow run that has the numbers or, while pending, is to get them.
	RunID string `json:"run_id,omitempty"`
	URI   string `json:"uri,omitempty"` // without user info
	Error string `json:"error,omitempty"`
	// ExperimentName and ExperimentID are what was given for a run of our own.
	ExperimentName string `json:"experiment_name,omitempty"`
	ExperimentID   string `json:"experiment_id,omitempty"`
	// Given reports that RunID was named by a person: such a run is never ended by us.
	Given bool `json:"given,omitempty"`
	// Invocation is the tag by which the job's own runs are found.
	Invocation string `json:"invocation,omitempty"`
}

// Summary has the numbers of one sample key beyond its metrics, from every
// sample. The percentiles are of time and accurate to 0.1 point.
type Summary struct {
	Min  float64  `json:"min"`
	Mean float64  `json:"mean"`
	Max  float64  `json:"max"`
	P50  *float64 `json:"p50,omitempty"`
	P95  *float64 `json:"p95,omitempty"`
	P99  *float64 `json:"p99,omitempty"`
}

// Identity is which job, node and rank a process was, as its environment told. What it did not tell is
// absent. The rules are in docs/clusters.md.
type Identity struct {
	// Node is the index of the node, and NodeFrom who told it: "flag", the name of a variable, or "none".
	Node     *int   `json:"node,omitempty"`
	NodeFrom string `json:"node_from"`
	NodeName string `json:"node_name,omitempty"` // as the scheduler calls it

	Rank        *int `json:"rank,omitempty"`          // among all ranks of the launch
	LocalRank   *int `json:"local_rank,omitempty"`    // among those of the node
	RanksOnNode int  `json:"ranks_on_node,omitempty"` // how many the launch has on the node
	WorldSize   int  `json:"world_size,omitempty"`    // how many it has in all
	Nodes       int  `json:"nodes,omitempty"`         // of the launch, else of the job

	Scheduler string `json:"scheduler,omitempty"` // Slurm, PBS, …
	JobID     string `json:"job_id,omitempty"`    // as the scheduler writes it
	Launch    string `json:"launch,omitempty"`    // which of several launches of the job
	Restart   int    `json:"restart,omitempty"`   // how often the scheduler has started the job again
}

// NodeFromFlag is the NodeFrom of an index that was given.
const NodeFromFlag = "flag"

// Time is a time in a report: RFC 3339 in UTC with microseconds.
type Time struct{ time.Time }

const timeFormat = "2006-01-02T15:04:05.000000Z"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+timeFormat+`"`), nil
}

// UnmarshalJSON implements json.Unmarshaler; any RFC 3339 time will do.
func (t *Time) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	parsed, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("time %q is not RFC 3339", s)
	}
	t.Time = parsed.UTC()
	return nil
}
