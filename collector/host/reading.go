package host

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/process"
)

// The sources of a Reading, as named in errors and reports.
const (
	SourceCPU     = "cpu"
	SourceMemory  = "memory"
	SourceDisk    = "disk"    // space of file systems
	SourceDiskIO  = "disk_io" // bytes of block devices
	SourceNetwork = "network"

	SourceLoad     = "load"     // tasks running or waiting to run
	SourceSwap     = "swap"     // pages moved from and to swap
	SourcePressure = "pressure" // PSI of the host
	SourceJob      = "job"      // usage of the job
	SourceCgroup   = "cgroup"   // the job's control group and its limits
	SourceGPU      = "gpu"
)

// Sources returns the names of all sources.
func Sources() []string {
	sources := []string{SourceCPU, SourceMemory, SourceDisk}
	for k := range deviceKinds {
		sources = append(sources, deviceKinds[k].source)
	}
	return append(sources, SourceLoad, SourceSwap, SourcePressure, SourceJob, SourceCgroup, SourceGPU,
		SourceEnergy, SourceThermal)
}

// An Instant is one moment on three clocks: the wall clock can be stepped, the monotonic clock stops during suspend,
// and the boot clock does neither (clock_gettime(2)).
type Instant struct {
	Wall time.Time
	Mono time.Duration // CLOCK_MONOTONIC
	Boot time.Duration // CLOCK_BOOTTIME
}

// A Reading holds the kernel's counters and gauges at one instant. A part is nil if its source failed; Failed then
// holds the error of the source. Counters count from boot.
type Reading struct {
	At     Instant
	CPU    []CPUTimes
	Memory *Memory
	Disk   []DiskUsage
	// Devices lists every device of each kind; nil if the kind was not read.
	Devices [NumDeviceKinds][]Device
	// Skipped reports which kinds have no Devices because they were read a moment ago and are not due.
	Skipped [NumDeviceKinds]bool
	OptionalDevices
	Load *Load
	VM   *VMStat
	// Pressure is the host's PSI. It is NaN where a file could not be read.
	Pressure *cgroup.Pressure
	Job      *JobUsage // nil if there is no job
	GPUs     *gpu.Reading
	Failed   map[string]error

	buffers readingBuffers
}

// A readingBuffers is the reusable memory of a Reading: the targets of its pointers, and slices with spare capacity.
type readingBuffers struct {
	memory   Memory
	load     Load
	vm       VMStat
	pressure cgroup.Pressure
	job      JobUsage
	group    cgroup.Counters
	gpus     gpu.Reading

	cpu     []CPUTimes
	disk    []DiskUsage
	devices [NumDeviceKinds][]Device
}

// Load is the number of tasks on the host that are running or waiting to run (/proc/loadavg).
type Load struct {
	Load1     float64 // mean of the last minute, including uninterruptible sleep
	Running   float64 // tasks that are running or waiting for a CPU now
	NewestPID int64   // newest process or thread, in perfagent's PID namespace; 0 = unknown
}

// A FileError is the reason why one file of a source could not be used. Other files of the source may be valid.
type FileError struct {
	File string
	Err  error
}

func (e FileError) Error() string { return e.File + ": " + e.Err.Error() }
func (e FileError) Unwrap() error { return e.Err }

// newJobUsage returns the Reading's JobUsage with all numbers unknown.
func (r *Reading) newJobUsage() *JobUsage {
	nan := math.NaN()
	r.buffers.job = JobUsage{CPUSeconds: nan, IO: process.UnknownIO(), LivingCPUSeconds: nan, Memory: nan,
		PageCache: nan, Swap: nan, Unowned: nan, MemoryLowerBound: nan, Processes: nan, Threads: nan,
		Parts: unknownParts()}
	return &r.buffers.job
}

// failFiles records the errors in failed, which maps file names to errors.
func (r *Reading) failFiles(source string, failed map[string]error) {
	if err := fileErrors(failed); err != nil {
		r.fail(source, err)
	}
}

// fileErrors joins the errors in failed as FileErrors, sorted by file name.
func fileErrors(failed map[string]error) error {
	if len(failed) == 0 {
		return nil
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, FileError{name, failed[name]})
	}
	return errors.Join(errs...)
}

// errAbsent is the error of a source that this system does not have. It is not reported as missing.
var errAbsent = errors.New("absent")

// try runs read and reports whether it succeeded. It records the error for the source, unless the system does not have
// the source (errAbsent).
func (r *Reading) try(source string, read func() error) bool {
	err := guard(read)
	if err != nil && err != errAbsent {
		r.fail(source, err)
	}
	return err == nil
}

// fail records err as a reason why the source, or one of its files, has no values.
func (r *Reading) fail(source string, err error) {
	if r.Failed == nil {
		r.Failed = make(map[string]error)
	}
	if before := r.Failed[source]; before != nil {
		err = errors.Join(before, err)
	}
	r.Failed[source] = err
}
