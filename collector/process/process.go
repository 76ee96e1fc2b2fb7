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

// A Process holds the observed usage of one process of the job.
type Process struct {
	PID  int `json:"pid"`
	PPID int `json:"ppid"` // when the process was last seen
	// Command is the command line with spaces between the arguments, truncated to 200 bytes, or the process's name in
	// brackets if the kernel has no command line.
	Command string `json:"command"`
	// Start and End are on the boot clock; Start is a multiple of 10 ms. End is when the end of the process was
	// noticed, or when Root waited for the process; 0 means that it has not ended.
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns,omitzero"`
	// CPUSeconds is the user and system time of the process alone.
	CPUSeconds float64 `json:"cpu_s"`
	// EndedChildren is the CPU time, in seconds, of the reaped children that have no row, truncated to ticks of 10 ms.
	EndedChildren float64 `json:"ended_children_cpu_s"`
	// PeakMemory is the highest resident memory in bytes: the kernel's peak when last read (VmHWM of proc(5)) or, if
	// higher, the resident size in a later scan. 0 = unknown.
	PeakMemory float64 `json:"peak_memory,omitzero"`
	// Threads is the highest number of threads seen; 0 = unknown.
	Threads int `json:"threads,omitzero"`
}

// A ReapedProcess is a process that Root has waited for.
type ReapedProcess struct {
	PID int // 0 stands for several processes with unknown IDs
	// CPUSeconds is the user and system time of the process and of its reaped children.
	CPUSeconds float64
	At         time.Duration // when it was waited for, on the boot clock
	Status     int           // as wait(2) returns it
	// Failed and Killed are set only if PID is 0: how many of these processes exited with another code than 0, and how
	// many were ended by a signal.
	Failed, Killed int64
	// Main reports whether the process was the job's main process. The fields below are set only if it was. Start is
	// when it started, on the boot clock (0 = unknown), ChildrenSeconds is the part of CPUSeconds that its children
	// used, and MaxRSS is its highest resident memory in bytes (0 = unknown).
	Main            bool
	Start           time.Duration
	ChildrenSeconds float64
	MaxRSS          float64
}
