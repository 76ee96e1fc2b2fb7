package host

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/perfagent/perfagent/collector/gpu"
	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/timeout"
)

// A Reader takes Readings of one host. It is not safe for concurrent use.
type Reader struct {
	proc, sys string
	hostProc  bool // proc belongs to another host or namespace (HOST_PROC)
	disks     *diskUsageReader
	devices   [NumDeviceKinds]deviceReader
	classes   [NumDeviceKinds]classCache
	now       func() Instant
	realTime  bool // now reads the machine's clocks
	job       jobReader
	start     Instant             // time of the baseline
	log       *kernelLog          // nil = the log cannot be read
	deaths    *process.DeathWatch // nil without a job
	lastVM    VMStat              // values of the last read of /proc/vmstat
	vmKnown   bool                // lastVM is set
	vmAt      time.Duration       // when /proc/vmstat was last read
	vmBegun   time.Duration       // when it was first read
	optional  optionalSources
	gopsutil  *gopsutil  // nil = the kernel's files are read
	name      string     // Auto or Gopsutil
	scratch              // buffers reused by each Reading
	spare     []*Reading // returned by Reuse
}

// The names of a Reader: how it reads CPU times, memory, disks, network and load.
const (
	Auto     = "auto"     // the kernel's files; gopsutil on systems other than Linux
	Gopsutil = "gopsutil" // gopsutil on every system
)

// Options configures a Reader. The zero value reads this host, without a job.
type Options struct {
	// Gopsutil makes the Reader use gopsutil on Linux as well, for CPU times, memory, disks, network and load.
	Gopsutil bool
	// Proc and Sys are the roots of procfs and sysfs ("" = /proc, /sys). In a sidecar, they are the host's, mounted
	// elsewhere (HOST_PROC, HOST_SYS).
	Proc, Sys string
	// DiskPaths are the file systems to measure (none = "/").
	DiskPaths []string
	// Now replaces the machine's clocks, unless it is nil.
	Now func() Instant
	// Statfs replaces statfs(2), unless it is nil.
	Statfs func(path string) (DiskUsage, error)
	// Job configures where the job's usage is read.
	Job JobOptions
	// GPUs monitors the node's GPUs; nil if they are not monitored. The caller runs the Monitor.
	GPUs *gpu.Monitor
	// JobOnly leaves the host and its GPUs to another perfagent, until MeasureHost is called.
	JobOnly bool
}

// NewReader returns a Reader. It does not read anything yet. The caller must close the Reader.
func NewReader(o Options) *Reader {
	r := &Reader{proc: "/proc", sys: "/sys", now: o.Now, name: Auto}
	r.job = jobReader{JobOptions: o.Job, gpus: o.GPUs, tree: newJobTree(o.Job), helper: newHelper(),
		jobOnly: o.JobOnly}
	if o.Proc != "" {
		r.proc = filepath.Clean(o.Proc)
	}
	if o.Sys != "" {
		r.sys = filepath.Clean(o.Sys)
	}
	r.hostProc, r.scratch = r.proc != "/proc", newScratch(r.proc)
	for k := range deviceKinds {
		if !DeviceKind(k).isOptional() {
			r.devices[k] = deviceKinds[k].open(r)
		}
	}
	if r.now == nil {
		r.now, r.realTime = Now, true
	}

	usage, prompt := diskUsage, timeout.IsLocalFS
	if o.Gopsutil || onlyGopsutil {
		r.gopsutil = newGopsutil(r.proc, r.sys, r.hostProc)
		usage = func(path string) func() (DiskUsage, error) { return usageOf(gopsutilUsage, path) }
	}
	if o.Gopsutil {
		r.name = Gopsutil
	}
	if o.Statfs != nil {
		usage = func(path string) func() (DiskUsage, error) { return usageOf(o.Statfs, path) }
		prompt = nil
	}

	paths := o.DiskPaths
	if len(paths) == 0 {
		paths = []string{"/"}
	}
	r.disks = newDiskSpace(paths, usage)
	r.disks.prompt = prompt
	return r
}

// Name returns Gopsutil if Options.Gopsutil was set, else Auto.
func (r *Reader) Name() string { return r.name }

// Close closes the files that the Reader keeps open, including the files of the job's Group and Tree. It does not wait
// for calls that hang; they end with the program. A Reader may be used again after Close.
func (r *Reader) Close() {
	r.log.close()
	r.log = nil
	if w := r.deaths; w != nil {
		r.deaths = nil
		timeout.Call(treeTimeout, func() (none struct{}) { w.Close(); return none })
	}
	r.scratch.close()
	r.job.close()
}

// JobOnly reports whether another perfagent measures the host.
func (r *Reader) JobOnly() bool { return r.job.jobOnly }

// MeasureHost makes all later Readings include the host.
func (r *Reader) MeasureHost() { r.job.jobOnly = false }

// CPUs returns the number of logical CPUs, or 0 if it cannot be read.
func (r *Reader) CPUs() int {
	var cpus []CPUTimes
	_ = guard(func() (err error) { cpus, err = r.readCPU(nil); return err })
	return len(cpus)
}

// RealTime reports whether Now reads the machine's clocks.
func (r *Reader) RealTime() bool { return r.realTime }

// Now reads the clocks.
func (r *Reader) Now() Instant { return r.now() }

// Job returns the options of the job.
func (r *Reader) Job() JobOptions { return r.job.JobOptions }

// JobTree returns a copy of the job's process tree at the newest Reading, for another goroutine. It returns nil if the
// processes cannot be found. Call it from the goroutine that takes the Readings.
func (r *Reader) JobTree() *process.Tree { return r.job.tree.copy() }

// DiskPaths returns the file systems that are measured.
func (r *Reader) DiskPaths() []string { return r.disks.paths() }

// Baseline takes the Reading at the start of a run. The job waits for it, so it reads only counters, and no classes of
// devices. Gauges need no baseline, a file system may hang, and only the later of two Readings needs classes.
func (r *Reader) Baseline() *Reading {
	out := r.begin()
	if r.job.Source != "" { // the job is not running yet, so its OOM kills will be logged later
		r.log.close()
		r.start, r.log = out.At, openKernelLog()
		if r.job.Tree != nil && r.realTime {
			r.deaths = process.OpenDeathWatch(r.job.Tree)
		}
	}
	r.readCounters(out)
	out.Job = r.job.baseline(out)
	return out
}

// Classify sets the classes of the devices in out.
func (r *Reader) Classify(out *Reading) {
	for k := range deviceKinds {
		if deviceKinds[k].classify == nil {
			continue
		}
		look := func(devs []Device) []DeviceClass { return deviceKinds[k].classify(r, devs) }
		r.classes[k].apply(out.Devices[k], out.At.Mono, look)
	}
}

// Read takes one Reading. It never fails as a whole.
func (r *Reader) Read() *Reading {
	out := r.begin()
	r.readCounters(out)
	if !r.job.jobOnly {
		r.Classify(out)
		r.readGauges(out)
		r.readOptional(out)
		r.readThermal(out)
	}

	out.Job = r.job.read(out)
	if r.job.gpus != nil && !r.job.jobOnly {
		out.buffers.gpus = r.job.gpus.Read()
		out.GPUs = &out.buffers.gpus
	}
	if !r.job.jobOnly { // disks last: one may hang
		disk, err := r.disks.read(out.buffers.disk[:0])
		if out.buffers.disk, out.Disk = disk, disk; err != nil {
			out.fail(SourceDisk, err)
		}
	}
	r.resolveVictims()

	return out
}

// begin returns an empty Reading for this instant. It reuses the memory of a Reading passed to Reuse, if there is any.
func (r *Reader) begin() *Reading {
	if n := len(r.spare); n > 0 {
		out := r.spare[n-1]
		r.spare = r.spare[:n-1]
		*out = Reading{At: r.now(), buffers: out.buffers}
		return out
	}
	return &Reading{At: r.now()}
}

// Reuse takes back a Reading of this Reader to which no references remain. A later Reading reuses its memory.
func (r *Reader) Reuse(old *Reading) { r.spare = append(r.spare, old) }

// readGauges reads the host's gauges.
func (r *Reader) readGauges(out *Reading) {
	buffers := &out.buffers
	if out.try(SourceMemory, func() (err error) { buffers.memory, err = r.readMemory(); return err }) {
		out.Memory = &buffers.memory
	}
	if out.try(SourceLoad, func() (err error) { buffers.load, err = r.readLoad(); return err }) {
		out.Load = &buffers.load
	}
}

// Memory reads the host's memory. Total is 0 if the memory is unknown or another perfagent measures the host.
func (r *Reader) Memory() (m Memory) {
	if !r.job.jobOnly {
		_ = guard(func() (err error) { m, err = r.readMemory(); return err })
	}
	return m
}

// Final takes the last Reading of a run. It includes sources that Read reads only occasionally.
func (r *Reader) Final() *Reading {
	r.job.final()
	return r.Read()
}

// readCounters reads the host's counters. If another perfagent measures the host, it reads only the OOM kills, which
// explain how the job died.
func (r *Reader) readCounters(out *Reading) {
	r.readVMWhenDue(out)
	if r.job.jobOnly {
		return
	}

	buffers := &out.buffers
	out.try(SourceCPU, func() (err error) { out.CPU, err = r.readCPU(buffers.cpu[:0]); return err })
	if out.CPU != nil {
		buffers.cpu = out.CPU
	}

	for k := range deviceKinds {
		if DeviceKind(k).isOptional() {
			continue
		}
		read, at, devices := r.devices[k], out.At.Mono, buffers.devices[k][:0]
		out.try(deviceKinds[k].source, func() (err error) { out.Devices[k], err = read(at, devices); return err })
		if out.Devices[k] != nil {
			buffers.devices[k] = out.Devices[k]
		}
	}

	var known bool
	out.try(SourcePressure, func() (err error) { buffers.pressure, known, err = r.readPressure(); return err })
	if known {
		out.Pressure = &buffers.pressure
	}
}

const (
	// vmEvery is the interval at which /proc/vmstat is read. It is long because the kernel sums the counters of all CPUs
	// for each of the 150 lines, although perfagent needs only four.
	vmEvery = 5 * time.Second
	// vmFirst is the time for which every Reading reads /proc/vmstat, so that even a short job gets data points.
	vmFirst = 20 * time.Second
)

// readVMWhenDue sets out.VM from /proc/vmstat or, if the file is not due, from the last read.
func (r *Reader) readVMWhenDue(out *Reading) {
	vm, known := &out.buffers.vm, r.vmKnown
	if r.vmDue(out.At.Mono) {
		known = out.try(SourceSwap, func() (err error) { *vm, err = r.readVM(); return err })
		r.lastVM, r.vmKnown = *vm, known && !r.job.jobOnly
		r.lastVM.Stale = true
	} else {
		*vm = r.lastVM
	}

	if known {
		out.VM = vm
	}
	if r.job.jobOnly {
		kills := vm.OOMKills
		*vm = unknownVMStat()
		vm.OOMKills = kills
	}
}

// vmDue reports whether to read /proc/vmstat now.
func (r *Reader) vmDue(now time.Duration) bool {
	first := r.vmBegun == 0
	if first {
		r.vmBegun = now
	}
	if r.job.jobOnly {
		return first || r.job.closing
	}
	if now-r.vmBegun > vmFirst && now-r.vmAt < vmEvery && !r.job.closing {
		return false
	}
	r.vmAt = now
	return true
}

// guard turns a panic in read into an error, so that neither a malformed kernel file nor a bug in gopsutil stops
// sampling.
func guard(read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged kernel file: %v", p)
		}
	}()
	return read()
}
