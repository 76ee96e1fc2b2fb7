package reporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
)

// Missing describes a value that could not be measured. Its What is the name of a metric, a sample key or a source.
type Missing = series.Missing

// Code identifies the reason for which a value is missing.
type Code = series.ReasonCode

// Codes of reasons. Packages collector, collector/gpu and collector/host define more.
const (
	// There was nothing to measure.
	NoJob           Code = "no_job"
	JobOver         Code = "job_over"
	NoCgroup        Code = "no_cgroup"
	SharedCgroup    Code = "shared_cgroup"
	NoMemoryLimit   Code = "no_memory_limit"
	NoCPUQuota      Code = "no_cpu_quota"
	NoQuotaPeriod   Code = "no_quota_period"
	NoCgroupCounter Code = "no_cgroup_counter"
	NoEnergyCounter Code = "no_energy_counter"
	NoMemoryParts   Code = "no_memory_parts"
	ParentOnly      Code = "parent_only"
	HostByAnother   Code = "host_by_another"

	// Reasons that apply to the whole run.
	NoSample         Code = "no_sample"
	NoSampleYet      Code = "no_sample_yet"
	TooShort         Code = "too_short"
	NoLength         Code = "no_length"
	ClockStep        Code = "clock_step"
	Suspend          Code = "suspend"
	AgentNotApart    Code = "agent_not_apart"
	PerfPyCPUs       Code = "perf_py_cpus"
	PerfPyNoValue    Code = "perf_py_no_value"
	PerfPyNoSample   Code = "perf_py_no_sample"
	PerfPyTimestamps Code = "perf_py_timestamps"
	PerfPyBackwards  Code = "perf_py_backwards"

	// Reasons that apply to the ranks of a node.
	NoRecording Code = "no_recording"
	NotCombined Code = "not_combined"

	// Reasons that apply to the nodes of a run in a store.
	NoReport Code = "no_report"

	// Reasons that apply to one source.
	Unreadable        Code = "unreadable"
	CountedLate       Code = "counted_late"
	CPUStill          Code = "cpu_still"
	JobGoesOn         Code = "job_goes_on"
	JobCPUOpen        Code = "job_cpu_open"
	JobOutside        Code = "job_outside_cgroup"
	Orphans           Code = "orphans_not_counted"
	CountedFromBefore Code = "counted_from_before"
	CgroupNotMade     Code = "cgroup_not_made"
	CgroupStays       Code = "cgroup_stays"
	LimitUnknown      Code = "cpu_limit_unknown"
	LogNotFile        Code = "not_a_file"
	LogUnreadable     Code = "not_readable"
	NoExitStatus      Code = "no_exit_status"

	// Reasons that apply to the files and the live page.
	ReportElsewhere Code = "report_elsewhere"
	NoReportFile    Code = "no_report_file"
	JournalFailed   Code = "journal_failed"
	JournalDamaged  Code = "journal_damaged"
	SamplesLost     Code = "samples_lost"
	ListenFailed    Code = "listen_failed"
	RanksUnseen     Code = "ranks_unseen"

	// Reasons that apply to marks and operations from the job.
	MarksBeyond Code = "marks_beyond_bounds"
	MarksUnread Code = "marks_unreadable"

	OperationsNotReceived Code = "operations_not_received"
	OperationsElsewhere   Code = "operations_sent_elsewhere"
	EnvironmentFull       Code = "environment_full"
)

// A Reason is a row of the table of codes.
type Reason struct {
	Code Code
	// Why is the usual text of the reason. The text in a report may also contain numbers and names.
	Why string
	// Normal reports that there was nothing to measure. Human-readable summaries omit such reasons.
	Normal bool
}

// codeTable holds the codes that a report can contain.
var codeTable = []Reason{
	{NoJob, "no job was wrapped", true},
	{JobOver, "the job ended before it could be measured", true},
	{NoCgroup, "no control group is visible", true},
	{SharedCgroup,
		"other processes are in the job's control group: perfagent run --cgroup create gives the job its own", true},
	{NoMemoryLimit, "no control group limits the memory", true},
	{NoCPUQuota, "no control group limits the CPU time", true},
	{NoQuotaPeriod, "no period of the CPU quota passed while the job ran", true},
	{NoCgroupCounter, "the control group has no such counter", true},
	{NoEnergyCounter, "the device has no readable energy counter", true},
	{NoMemoryParts, "the job's memory was not divided into kinds: it is a sum of resident sizes (rss), " +
		"or the kernel (before Linux 5.3) or perfagent was too old", true},
	{ParentOnly, "perfagent was attached to the job, and the kernel reports this only to a process's parent", true},

	{LogNotFile, "neither the job's standard error nor its standard output is a regular file", true},

	{HostByAnother, "the perfagent of another rank measures the host", true},
	{host.RootOnly, "only root may read it", true},

	{NoSample, "no sample was taken", false},
	{NoSampleYet, "no sample has been taken yet", false},
	{TooShort, "the run is too short: the kernel counts CPU time in ticks of 10 ms", false},
	{NoLength, "the run has no length", false},
	{ClockStep, "the wall clock was stepped: all times follow the clock as it was at the start", false},
	{Suspend, "the machine was suspended: nothing was measured during that time", false},
	{AgentNotApart, "perfagent ran inside another program, and their usage cannot be separated", false},
	{PerfPyCPUs, "perf.py's file has no number of CPUs: give --cpus N", false},
	{PerfPyNoValue, "no sample of perf.py's file has such a value", false},
	{PerfPyNoSample, "there are no samples", false},
	{PerfPyTimestamps, "fewer than two samples have a timestamp: the length is unknown", false},
	{PerfPyBackwards, "the last timestamp is not after the first: the length is unknown", false},

	{NoRecording, "some ranks of the node have no recording", false},
	{NotCombined, "values of several ranks cannot be combined", false},

	{NoReport, "a node of the run has no report in the store", false},

	{Unreadable, "a source could not be read", false},
	{CountedLate, "counted only from some time after the start: it could not be read earlier", false},
	{CPUStill, "the kernel's CPU counters did not advance", false},
	{JobGoesOn, "the job's end is not known", false},
	{JobCPUOpen, "the usage of processes that outlive the job could not be read at its end", false},
	{JobOutside, "processes of the job used CPU that its control group did not count, " +
		"which is missing from the samples; --cgroup off follows these processes", false},
	{
		collector.CounterFull,
		"the counter of a device is at the end of its range: later traffic is not counted",
		false,
	},
	{collector.MountsBeyond, "only some of the network file systems are listed", false},
	{collector.MemoryAsRSS, "later samples add up resident sizes (rss), " +
		"which count shared pages several times", false},
	{collector.ProcessesUnread, "some of the job's processes could not be read one by one", false},
	{Orphans, "usage of the job's orphans is not counted", false},
	{CountedFromBefore, "usage of children from before the start is counted, too", false},
	{CgroupNotMade, "no control group could be made for the job", false},
	{CgroupStays, "the job's control group could not be removed", false},
	{LimitUnknown, "the number of CPUs that the job may use is not known", false},
	{LogUnreadable, "the job's log could not be read", false},
	{NoExitStatus, "how some of the job's processes ended is not known", true},

	{gpu.Silent, "the device or its driver does not respond", false},
	{gpu.NoValue, "the driver does not report this for the device", false},
	{gpu.NotFollowed, "only some of the devices are followed", false},
	{gpu.Restarted, "nvidia-smi was restarted", false},
	{gpu.NotUnderstood, "nvidia-smi printed something unexpected", false},
	{gpu.Unsure, "it is uncertain which devices the job could see", false},

	{ReportElsewhere, "the report goes to a temporary directory", false},
	{NoReportFile, "no directory is writable: there is no report file", false},
	{JournalFailed, "the journal could not be written", false},
	{JournalDamaged, "damaged lines of the journal were left out", false},
	{SamplesLost, "samples of the journal are lost", false},
	{ListenFailed, "the live page and /metrics could not be served", false},
	{RanksUnseen, "the perfagents of the other ranks on the node could not be seen: each measures the host", false},

	{MarksBeyond, "some of the job's marks and phases are beyond the limit", false},
	{MarksUnread, "the job's marks could not be read", false},
	{OperationsNotReceived, "the sockets for operations could not be opened", false},
	{OperationsElsewhere, "the job sends operations to an address that the user has set", false},
	{EnvironmentFull, "the job's arguments and environment leave no room for perfagent's variables: " +
		"the job has no address for its operations and marks", false},
}

// reasonOf returns the row of a code, or one without a text if the table has none.
func reasonOf(code Code) Reason {
	if i := slices.IndexFunc(codeTable, func(r Reason) bool { return r.Code == code }); i >= 0 {
		return codeTable[i]
	}
	return Reason{Code: code}
}

// NewMissing returns the entry for a missing value, with the usual text of code.
func NewMissing(what string, code Code) Missing {
	return Missing{What: what, Code: code, Why: reasonOf(code).Why}
}

// NothingToMeasure reports whether a value is missing because there was nothing to measure: no job, no limit.
// Human-readable summaries omit such values.
func NothingToMeasure(m Missing) bool { return reasonOf(m.Code).Normal }

// CauseOf returns the reason of m without the number of failed readings that m.Why ends with. CauseOf does not parse
// m.Why; it removes exactly the suffix that New added for Count and Total.
func CauseOf(m Missing) string {
	if m.Total == 0 {
		return m.Why
	}
	return strings.TrimSuffix(m.Why, ofReadings(m.Count, m.Total))
}

// ofReadings returns the suffix of Why for a source with count failures in of readings.
func ofReadings(count, of int64) string { return fmt.Sprintf(" (%d of %d readings)", count, of) }

// A missingError is the error of an absent metric.
type missingError struct {
	code Code
	why  string
}

func (a *missingError) Error() string { return a.why }

// newMissingError returns a missingError with the usual text of code.
func newMissingError(code Code) error { return &missingError{code, reasonOf(code).Why} }

// newMissingMetric returns the entry for a metric that could not be computed.
func newMissingMetric(name string, err error) Missing {
	m := Missing{What: name, Code: Unreadable, Why: err.Error()}
	if a, ok := errors.AsType[*missingError](err); ok {
		m.Code = a.code
	}
	return m
}
