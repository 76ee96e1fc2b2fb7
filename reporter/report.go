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

// Schema is the format of the report file. Readers reject any other major number.
const Schema = "perfagent.report/1"

// Report is the content of a report file: the usage of one run on one or more nodes.
type Report struct {
	Schema string           `json:"schema"`
	Run    Run              `json:"run"`
	Nodes  map[string]*Node `json:"nodes"` // by node index, as decimal text
}

// Run describes the run as a whole. In a merged report it spans all nodes.
type Run struct {
	ID      string   `json:"id"`
	Command []string `json:"command,omitempty"` // absent for a sidecar
	// Platform is one of the Platform constants, or "" for any other platform.
	Platform string `json:"platform,omitempty"`
	// MemoryPer is the unit of the memory request, MemoryPerCPU or MemoryPerGPU; "" for a request per node.
	MemoryPer string `json:"memory_per,omitempty"`
	// Start, End and WallSeconds are omitted if they are unknown, as for a perf.py file without timestamps or a journal
	// that was cut off before its first sample.
	Start Time `json:"start,omitzero"`
	End   Time `json:"end,omitzero"`
	// WallSeconds is the time from start to end on the monotonic clock.
	WallSeconds float64 `json:"wall_seconds,omitzero"`
	// ExitCode is perfagent's exit code: the job's code, or 128+n if signal n killed the job.
	ExitCode *int `json:"exit_code,omitempty"`
	// Signal is the name of the signal that killed the job, such as SIGKILL.
	Signal string            `json:"signal,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"`
	// Incomplete is the reason for a missing end: still running, or a crash.
	Incomplete string `json:"incomplete,omitempty"`
	// Verdict is the verdict on the first job that failed, over all nodes and ranks.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Nodes is the number of nodes in a report of several nodes. Encode sets it.
	Nodes int `json:"nodes,omitempty"`
	// Gather describes the store that the nodes were merged from; nil if they are not from a store.
	Gather *GatherResult `json:"gather,omitempty"`
}

// Values of Run.Platform.
const (
	PlatformSlurm      = "slurm"
	PlatformKubernetes = "kubernetes"
	PlatformDocker     = "docker"
	PlatformPodman     = "podman"
)

// Values of Run.MemoryPer.
const (
	MemoryPerCPU = "cpu"
	MemoryPerGPU = "gpu"
)

// Node is the resource usage of one node.
type Node struct {
	// Command is the node's wrapped command. It is set only if it differs from the run's, in a report of several nodes.
	Command []string `json:"command,omitempty"`

	Host     *Host     `json:"host,omitempty"`
	Identity *Identity `json:"identity,omitempty"` // nil if only the host is known
	Sampling *Sampling `json:"sampling,omitempty"`
	Agent    *Agent    `json:"agent,omitempty"`
	Job      *Job      `json:"job,omitempty"` // absent for a sidecar
	// MemoryAtPeak is Job.MemoryAtPeak if there is no Job because its end is not known.
	MemoryAtPeak *MemoryParts `json:"memory_at_peak,omitempty"`
	// Ranks are the ranks on the node, by rank as decimal text, if the launch had several processes on it; otherwise
	// nil. Job and the job metrics cover all ranks together.
	Ranks     Ranks              `json:"ranks,omitempty"`
	Limits    *Limits            `json:"limits,omitempty"`
	GPUs      []GPU              `json:"gpus,omitempty"`
	Mounts    []Mount            `json:"mounts,omitempty"`   // used network file systems
	Verdict   *Verdict           `json:"verdict,omitempty"`  // absent for a sidecar
	LogTail   *LogTail           `json:"log_tail,omitempty"` // nil unless the job failed and its log is a file
	Findings  []Finding          `json:"findings,omitzero"`  // nil if the rules were not applied
	Metrics   Values             `json:"metrics"`
	Summaries map[string]Summary `json:"summaries,omitempty"`
	Earlier   *Earlier           `json:"earlier,omitempty"` // nil without earlier runs of the same command
	Marks     []Mark             `json:"marks,omitempty"`
	Phases    []Phase            `json:"phases,omitempty"` // by first start
	// Processes are the job's twenty processes with the most CPU time and the twenty with the highest peak memory,
	// sorted by CPU time; nil if no process was sampled.
	Processes []Process `json:"processes,omitempty"`
	// Deaths are the ends of other processes of the job than the main process, in order: by a signal, or, with another
	// exit code than 0, of a process that ran for a second or more, or just before a failure. QuietExits counts the other
	// processes that did not exit with 0, and MoreDeaths those that are not listed because there were too many.
	Deaths     []Death `json:"deaths,omitempty"`
	QuietExits int64   `json:"quiet_exits,omitzero"`
	MoreDeaths int64   `json:"more_deaths,omitzero"`
	// Operations and Transfers are the job's own measurements; nil if they were not recorded.
	Operations *aggregate.Operations         `json:"operations,omitempty"`
	Transfers  map[string]aggregate.Transfer `json:"transfers,omitzero"` // by name
	Missing    []Missing                     `json:"missing"`
	Push       *Push                         `json:"push,omitempty"`
	// Origin is OriginPerfPy for a node from a perf.py file: its totals count since boot, and its shares of time are
	// shares of the kept samples.
	Origin string `json:"origin,omitempty"`

	// Reference is STORE#NAME of the stored report that contains the series of this node, if the node was merged
	// without them. Bytes is the stored length of that report, and SHA256 the hash of the stored bytes in hexadecimal.
	Reference string `json:"reference,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	SHA256    string `json:"sha256,omitempty"`

	// The series come last in the file, so that a reader of the numbers can stop before them.
	Samples  Samples  `json:"samples"`
	Envelope Envelope `json:"envelope,omitempty"`
}

// OriginPerfPy marks a Node read from perf.py's JSON.
const OriginPerfPy = "perf.py"

// Host is the machine. Empty fields and 0 mean unknown.
type Host = host.Info

// Sampling describes how completely the node was sampled.
type Sampling struct {
	// Start is the time of the baseline, just before the job's start.
	Start             Time         `json:"start,omitzero"`
	IntervalSeconds   float64      `json:"interval_seconds"`
	Samples           int64        `json:"samples"`      // taken, including samples no longer kept
	MissedTicks       int64        `json:"missed_ticks"` // grid points without a sample
	LongestGapSeconds float64      `json:"longest_gap_seconds"`
	Stride            int64        `json:"stride"`               // samples per kept sample
	MaxLength         int          `json:"max_length"`           // capacity of the ring
	Reader            string       `json:"reader,omitempty"`     // name of the host's reader
	DiskPaths         []string     `json:"disk_paths,omitempty"` // file systems with a measured fill level
	Disks             []string     `json:"disks"`                // counted block devices
	NICs              []string     `json:"nics"`                 // counted interfaces
	ClockSteps        []ClockEvent `json:"clock_steps,omitempty"`
	HostSpans         []HostSpan   `json:"holders,omitempty"` // the times in which ranks measured the host, in order
	Suspends          []ClockEvent `json:"suspends,omitempty"`
}

// ClockEvent is a step of the wall clock or a suspend.
type ClockEvent struct {
	At      Time    `json:"at"`
	Seconds float64 `json:"seconds"`
}

// Agent holds perfagent's version and its own cost. Unknown values are omitted.
type Agent struct {
	Version    string  `json:"version"`
	CPUSeconds float64 `json:"cpu_seconds,omitzero"`
	MaxRSSMB   float64 `json:"max_rss_mb,omitzero"`
}

// Job is the account of the wrapped command. Unless documented otherwise, a field is exact and comes from the rusage of
// wait4(2), which covers the job, the children that the job waited for, and the orphans that perfagent reaped.
type Job struct {
	PID int `json:"pid"`
	// PIDs are the IDs of the processes that perfagent was attached to; PID is the first of them. Attached reports
	// whether perfagent was attached to the job. Such a job has no rusage, so MarshalJSON omits the fields that come
	// from rusage.
	PIDs     []int `json:"pids,omitempty"`
	Attached bool  `json:"attached,omitempty"`
	Start    Time  `json:"start"`
	End      Time  `json:"end"`
	// ExitCode is absent while the job is running, for a program that monitors itself, and if the kernel does not
	// report the code of an attached process.
	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// CPU time in seconds.
	UserSeconds   float64 `json:"user_seconds"`
	SystemSeconds float64 `json:"system_seconds"`
	// MaxRSSMB is the peak memory of the largest single process, MiB.
	MaxRSSMB float64 `json:"max_rss_mb"`
	// MaxRSSAtMost reports that MaxRSSMB is only an upper bound: the kernel includes
	// the memory of perfagent itself, from which the job was forked.
	MaxRSSAtMost bool `json:"max_rss_at_most,omitempty"`
	// Storage traffic of the job, MiB (ru_inblock, ru_oublock).
	BlockReadMB  float64 `json:"block_read_mb"`
	BlockWriteMB float64 `json:"block_write_mb"`
	MinorFaults  int64   `json:"minor_faults"`
	MajorFaults  int64   `json:"major_faults"`
	// Context switches because the job waited (voluntary) or was preempted (involuntary).
	VoluntarySwitches   int64 `json:"voluntary_context_switches"`
	InvoluntarySwitches int64 `json:"involuntary_context_switches"`
	// Orphans is the number of re-parented descendants that were reaped and counted.
	Orphans int `json:"orphans"`

	// Source is the source of the fields below and of the job's samples: a control group
	// with only perfagent and the job in it ("cgroup"), one that was created for the job ("created"),
	// or the job's processes ("tree").
	Source string `json:"source,omitempty"`
	// CPUSeconds is all CPU time of the job until its end. It includes short-lived children and
	// running daemons, and excludes perfagent and its helpers.
	CPUSeconds float64 `json:"cpu_seconds"`
	// CPUAtLeast reports that CPUSeconds is only a lower bound: some processes outlived the job's main process, and
	// their usage could not be read.
	CPUAtLeast bool `json:"cpu_at_least,omitempty"`
	// PeakMemoryMB is the peak memory of the whole job in MiB, 0 if unknown. MemoryKind is the way in which memory was
	// counted: pss, rss or cgroup.
	PeakMemoryMB float64 `json:"peak_memory_mb,omitzero"`
	MemoryKind   string  `json:"memory_kind,omitempty"`
	// MemoryAtPeak belongs to the sample in which the job had the most memory, and MemoryAtKill to the last sample before
	// the newest out-of-memory kill, if that explains the end of the job. nil means that no sample had the parts.
	MemoryAtPeak *MemoryParts `json:"memory_at_peak,omitempty"`
	MemoryAtKill *MemoryParts `json:"memory_at_kill,omitempty"`
	// UnownedMB is the largest growth of the node's shared memory (/dev/shm, other tmpfs) while the job ran, less the
	// part known to be the job's, in MiB. PeakMemoryMB does not include it: it may belong to other processes.
	UnownedMB float64 `json:"shared_memory_of_unknown_owner_mb,omitzero"`
	// PeakMemoryFrom is PeakFromRanks if PeakMemoryMB combines several ranks; else "".
	PeakMemoryFrom string `json:"job_peak_memory_from,omitempty"`
	// Cgroup is the path of the control group. CgroupPeakMB is the group's peak memory as counted by the kernel, in
	// MiB, including page cache. CgroupStays reports that a group created for the job could not be removed, because
	// processes of the job are still in it.
	Cgroup       string  `json:"cgroup,omitempty"`
	CgroupPeakMB float64 `json:"cgroup_peak_mb,omitzero"`
	CgroupStays  bool    `json:"cgroup_stays,omitempty"`
}

// MarshalJSON implements json.Marshaler. For an attached job it omits the fields that only rusage has.
func (j Job) MarshalJSON() ([]byte, error) {
	type plain Job
	if !j.Attached {
		return text.JSON(plain(j))
	}
	return text.JSON(struct {
		plain
		// These fields hide the fields of plain with the same names.
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

// none is the type of an omitted field.
type none struct{}

// Limits are the limits of the job on its node.
type Limits = host.Limits

// Reclaim holds signs that a job needed more memory than it had.
type Reclaim = host.Reclaim

// LimitRange is the range of a limit that changed during a run.
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
	// ClockMHz is the highest clock rate in any sample; Throttle lists the reasons for lower rates.
	ClockMHz series.Optional `json:"clock_mhz,omitzero"`
	Throttle []string        `json:"throttle,omitempty"`
	// Idle describes the idle gaps; nil if there were none, or the device is not the job's.
	Idle *GPUIdle `json:"idle,omitempty"`
}

// GPUIdle describes the gaps of at least a second in which a GPU of the job was idle, and the mean load during these
// gaps. Unknown values are null.
type GPUIdle struct {
	Seconds            float64         `json:"seconds"`
	Gaps               int64           `json:"gaps"`
	LongestGapSeconds  float64         `json:"longest_gap_seconds"`
	JobCPUs            series.Optional `json:"job_cpus"`
	DiskMBPerSecond    series.Optional `json:"disk_mb_per_second"`      // of the node, read and written
	WaitingForStorePct series.Optional `json:"waiting_for_storage_pct"` // any task of the job, or else of the node
}

// Verdict describes how the job ended, with the cause and the evidence.
type Verdict struct {
	Cause string `json:"cause"` // one of the causes of package diagnosis
	Text  string `json:"text"`  // one sentence
	// Evidence holds the numbers behind the verdict: exit_code; signal; limit_mb, peak_mb, oom_kills, process, time…
	Evidence   map[string]any `json:"evidence"`
	Conditions []string       `json:"conditions"` // problems of the job other than the cause of its end
	// LogError is an error in the last lines of the job's log, which proves no cause; nil if none is known.
	LogError *LogError `json:"said,omitempty"`
	// The list has sentences on what happened before the end without being known to be its cause.
	Beside []string `json:"beside,omitempty"`
}

// Finding is a piece of advice with the numbers behind it.
type Finding struct {
	ID       string         `json:"id"`
	Severity string         `json:"severity"` // "warning", "info"
	Text     string         `json:"text"`     // the problem and the change to make
	Evidence map[string]any `json:"evidence"`
}

// Mark is a moment that the job marked.
type Mark struct {
	Timestamp float64 `json:"timestamp"` // seconds since 1970, on the time axis of the samples
	Text      string  `json:"text"`
}

// Phase is the resource usage during a phase of the job.
type Phase struct {
	Name    string  `json:"name"`
	Start   float64 `json:"start"`   // of the first span, seconds since 1970
	Seconds float64 `json:"seconds"` // of all spans
	Count   int64   `json:"count"`   // how often the phase began
	// Metrics are the metrics of the table that apply to a part of the run.
	Metrics Values      `json:"metrics"`
	Spans   []PhaseSpan `json:"stretches"`
}

// PhaseSpan is one occurrence of a phase: its start, in seconds since 1970, and its length in seconds.
type PhaseSpan [2]float64

// Push is the state of the report's pushes to MLflow and to a store.
type Push struct {
	MLflow PushState   `json:"mlflow"`
	Store  *StoreState `json:"store,omitempty"` // nil if no store was ever given
}

// Pending reports whether anything is still to be sent.
func (p *Push) Pending() bool {
	return p != nil && (p.MLflow.State == PushPending || p.Store != nil && p.Store.State == PushPending)
}

// StoreState is the state of the push to a store.
type StoreState struct {
	State     string `json:"state"`               // PushDone or PushPending
	URI       string `json:"uri"`                 // of the store, without user info
	Reference string `json:"reference,omitempty"` // STORE#NAME, if done
	Error     string `json:"error,omitempty"`     // reason for pending
	// Unconditional reports that the store has no conditional writes: another process may have put a report
	// under the same name at the same moment, and one of the two is lost.
	Unconditional bool                  `json:"unconditional,omitempty"`
	Metrics       *opstats.StoreMetrics `json:"metrics,omitempty"` // of the last attempt
}

// States of a push.
const (
	PushDone    = "done"    // the server has everything
	PushPending = "pending" // "perfagent push" will send the rest
	PushOff     = "off"     // not requested, or no destination: then Error has the reason
)

// PushState is the state of a push to MLflow and, while it is pending, its destination.
type PushState struct {
	State string `json:"state"`
	// RunID is the ID of the MLflow run that has the numbers or, while the push is pending, will get them.
	RunID string `json:"run_id,omitempty"`
	URI   string `json:"uri,omitempty"` // without user info
	Error string `json:"error,omitempty"`
	// ExperimentName and ExperimentID are the requested experiment of a run that perfagent creates.
	ExperimentName string `json:"experiment_name,omitempty"`
	ExperimentID   string `json:"experiment_id,omitempty"`
	// Given reports that RunID was given by the user. perfagent never ends such a run.
	Given bool `json:"given,omitempty"`
	// Invocation is the tag that identifies runs created by the job.
	Invocation string `json:"invocation,omitempty"`
}

// Summary holds the statistics of one sample key over all samples, including samples no longer kept. The percentiles
// are weighted by time and accurate to 0.1 percentage points.
type Summary struct {
	Min  float64  `json:"min"`
	Mean float64  `json:"mean"`
	Max  float64  `json:"max"`
	P50  *float64 `json:"p50,omitempty"`
	P95  *float64 `json:"p95,omitempty"`
	P99  *float64 `json:"p99,omitempty"`
}

// Identity is the job, node and rank of a process, as found in its environment. Unknown fields are absent. The rules
// are in docs/schedulers.md.
type Identity struct {
	// Node is the index of the node, and NodeFrom its source: NodeFromFlag, the name of an environment variable, or
	// "none".
	Node     *int   `json:"node,omitempty"`
	NodeFrom string `json:"node_from"`
	NodeName string `json:"node_name,omitempty"` // the scheduler's name for the node

	Rank        *int `json:"rank,omitempty"`          // among all ranks of the launch
	LocalRank   *int `json:"local_rank,omitempty"`    // among the ranks of the node
	RanksOnNode int  `json:"ranks_on_node,omitempty"` // of the launch
	WorldSize   int  `json:"world_size,omitempty"`    // ranks of the launch
	Nodes       int  `json:"nodes,omitempty"`         // of the launch, else of the job

	Scheduler string `json:"scheduler,omitempty"` // Slurm, PBS, …
	JobID     string `json:"job_id,omitempty"`    // in the scheduler's notation
	Launch    string `json:"launch,omitempty"`    // identifies one of the job's launches
	Restart   int    `json:"restart,omitempty"`   // number of restarts by the scheduler
}

// NodeFromFlag is the value of NodeFrom for an index that a flag sets.
const NodeFromFlag = "flag"

// Time is a time in a report: RFC 3339 in UTC with microseconds.
type Time struct{ time.Time }

const timeFormat = "2006-01-02T15:04:05.000000Z"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"`+timeFormat+`"`), nil
}

// UnmarshalJSON implements json.Unmarshaler. It accepts any RFC 3339 time.
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
