package process

import "time"

// A Relation says whether a process is the job's.
type Relation int

// The Relations. A process may be gone before anybody looks.
const (
	UnknownRelation Relation = iota
	InJob
	Foreign
)

// A Process is what one process of the job has used, as far as it was seen.
type Process struct {
	PID  int `json:"pid"`
	PPID int `json:"ppid"` // when it was seen last
	// Command is its command line, arguments separated by spaces, at most 200 bytes; or its name in
	// brackets, if the kernel has no command line of it.
	Command string `json:"command"`
	// Start and End are on the boot clock, the start to 10 ms. End is when its end was noticed, or
	// when Root waited for it; 0 means that it was still there.
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns,omitzero"`
	// CPUSeconds is the user and system time of the process itself.
	CPUSeconds float64 `json:"cpu_s"`
	// EndedChildren is that of the children that it waited for and that have no row of their own, in
	// seconds; cut to ticks of 10 ms.
	EndedChildren float64 `json:"ended_children_cpu_s"`
	// PeakMemory is the highest resident memory in bytes: the kernel's high-water mark when it was
	// read last (VmHWM of proc(5)), or the resident size of a later scan if that was higher. 0 is not
	// known.
	PeakMemory float64 `json:"peak_memory,omitzero"`
	// Threads is the most that were seen; 0 is not known.
	Threads int `json:"threads,omitzero"`
}

// A ReapedProcess is a process that Root has waited for.
type ReapedProcess struct {
	PID int // 0 stands for several, whose IDs were not kept
	// CPUSeconds is the user and system time of the process and of the children that it waited for.
	CPUSeconds float64
	At         time.Duration // when it was waited for, on the boot clock
	// Main reports that it was the job's main process, of which more is known: when it started, on the
	// boot clock (0 = not known), the part of CPUSeconds that its children used, and its own highest
	// resident memory in bytes (0 = not known).
	Main            bool
	Start           time.Duration
	ChildrenSeconds float64
	MaxRSS          float64
}
