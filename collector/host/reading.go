package host

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/perfagent/perfagent/collector/cgroup"
	"github.com/perfagent/perfagent/collector/gpu"
)

// The sources of a Reading, as they are named in errors and reports.
const (
	SourceCPU     = "cpu"
	SourceMemory  = "memory"
	SourceDisk    = "disk"    // space of file systems
	SourceDiskIO  = "disk_io" // bytes of block devices
	SourceNetwork = "network"

	SourceLoad     = "load"     // how many tasks want to run
	SourceSwap     = "swap"     // pages moved to and from swap
	SourcePressure = "pressure" // PSI of the host
	SourceJob      = "job"      // what the job itself uses
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

// An Instant is one moment on the three clocks that matter: the wall clock can be stepped, the
// monotonic clock stops while the machine is suspended, and the boot clock does neither
// (clock_gettime(2)).
type Instant struct {
	Wall time.Time
	Mono time.Duration // CLOCK_MONOTONIC
	Boot time.Duration // CLOCK_BOOTTIME
}

// A Reading is what the kernel said at one instant. A part whose source failed is nil, and its
// error is in Failed. Counters are cumulative since boot.
type Reading struct {
	At     Instant
	CPU    []CPUTimes
	Memory *Memory
	Disk   []DiskUsage
	// Devices has every device of each kind that the kernel lists; nil if the kind was not read.
	Devices [NumDeviceKinds][]Device
	// Skipped reports of each kind that it was not read now, as it was read a moment ago: then Devices has
	// none of it.
	Skipped [NumDeviceKinds]bool
	OptionalDevices
	Load *Load
	VM   *VMStat
	// Pressure is the host's. A file that could not be read is NaN in it.
	Pressure *cgroup.Pressure
	Job      *JobUsage // nil if there is no job
	GPUs     *gpu.Reading
	Failed   map[string]error

	buffers readingBuffers
}

// A readingBuffers is the memory of a Reading: what its pointers point to, and lists with room for what was read
// before.
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

// Load is how many tasks want to run on the host (/proc/loadavg).
type Load struct {
	Load1     float64 // mean of the last minute, uninterruptible sleep included
	Running   float64 // right now, running or waiting for a CPU
	NewestPID int64   // the ID of the process or thread that began last, in our PID namespace; 0 = not known
}

// A FileError is why one file of a source could not be used; the source's others may be sound.
type FileError struct {
	File string
	Err  error
}

func (e FileError) Error() string { return e.File + ": " + e.Err.Error() }
func (e FileError) Unwrap() error { return e.Err }

// jobUse returns the Reading's JobUse, in which nothing is known yet.
func (r *Reading) jobUse() *JobUsage {
	r.buffers.job = unknownJobUsage()
	return &r.buffers.job
}

// failFiles records why files of a source have no values.
func (r *Reading) failFiles(source string, failed map[string]error) {
	if err := fileErrors(failed); err != nil {
		r.fail(source, err)
	}
}

// fileErrors joins the reasons why files of a source could not be used.
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

// errAbsent is for a source that this system does not have: nothing is missing.
var errAbsent = errors.New("absent")

// try reads a part of the Reading, and reports whether that went well. If not, it records why the source has no values,
// unless the system does not have the source (errAbsent).
func (r *Reading) try(source string, read func() error) bool {
	err := guard(read)
	if err != nil && err != errAbsent {
		r.fail(source, err)
	}
	return err == nil
}

// fail records why a source, or a file of it, has no values.
func (r *Reading) fail(source string, err error) {
	if r.Failed == nil {
		r.Failed = make(map[string]error)
	}
	if before := r.Failed[source]; before != nil {
		err = errors.Join(before, err)
	}
	r.Failed[source] = err
}
