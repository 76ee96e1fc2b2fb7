package process

import "time"

// A Relation is the relation of a process to the job.
type Relation int

// The Relations. A relation is unknown if, for example, the process was gone before it was looked up.
const (
	UnknownRelation Relation = iota
	InJob
	Foreign
)

// A Process holds the usage of one process of the job, as far as it was seen.
type Process struct {
	PID  int `json:"pid"`
	PPID int `json:"ppid"` // when it was last seen
	// Command is the command line with spaces between the arguments, cut to 200 bytes, or the process's name in
	// brackets if the kernel has no command line.
	Command string `json:"command"`
	// Start and End are on the boot clock, Start in steps of 10 ms. End is when the end of the process was noticed, or
	// when Root waited for it; 0 means that it still existed.
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns,omitzero"`
	// CPUSeconds is the user and system time of the process alone.
	CPUSeconds float64 `json:"cpu_s"`
	// EndedChildren is the CPU time, in seconds, of the reaped children that have no row, truncated to ticks of 10 ms.
	EndedChildren float64 `json:"ended_children_cpu_s"`
	// PeakMemory is the highest resident memory in bytes: the kernel's peak when last read (VmHWM of proc(5)) or, if
	// higher, the resident size in a later scan. 0 = unknown.
	PeakMemory float64 `json:"peak_memory,omitzero"`
	// Threads is the highest number seen; 0 = unknown.
	Threads int `json:"threads,omitzero"`
}

// A ReapedProcess is a process that Root has waited for.
type ReapedProcess struct {
	PID int // 0 stands for several processes with unknown IDs
	// CPUSeconds is the user and system time of the process and of its reaped children.
	CPUSeconds float64
	At         time.Duration // when it was waited for, on the boot clock
	// Main reports that the process was the job's main process. Only then are the fields below set: when it started, on
	// the boot clock (0 = unknown), the part of CPUSeconds that its children used, and its highest resident memory in
	// bytes (0 = unknown).
	Main            bool
	Start           time.Duration
	ChildrenSeconds float64
	MaxRSS          float64
}
