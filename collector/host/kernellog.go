package host

import "time"

// maxKernelLog is the largest number of bytes that are read from the kernel's log at a time.
const maxKernelLog = 8 << 20

// The constraints under which the kernel ran out of memory, according to its log.
const (
	OOMOfGroup  = "memcg"         // limit of a control group
	OOMOfHost   = "none"          // the host had no free memory
	OOMOfCPUSet = "cpuset"        // the NUMA nodes of a cpuset had no free memory
	OOMOfPolicy = "memory_policy" // the NUMA nodes of a process's memory policy had no free memory
)

// A Task is a process in the kernel's report of an out-of-memory kill.
type Task struct {
	PID     int     `json:"pid"`
	Command string  `json:"command"` // the kernel's name of the process, or its command line
	RSSMB   float64 `json:"rss_mb"`  // resident size, MiB
}

// A Victim is a process killed by the kernel's OOM killer.
type Victim struct {
	Process string    `json:"process"` // its name
	PID     int       `json:"pid"`     // 0 = unknown
	At      time.Time `json:"at,omitzero"`
	Group   string    `json:"group,omitempty"` // the victim's group
	// Constraint is one of the OOMOf constants; "" = unknown.
	Constraint string `json:"constraint,omitempty"`
	// LimitGroup is the group that hit its limit, the victim's or one above it; "" = unknown.
	LimitGroup string `json:"limit_group,omitempty"`
	// Nodes are the NUMA nodes of the cpuset or policy, in the kernel's format: "0-1,3".
	Nodes string `json:"nodes,omitempty"`
	// Parent is the victim's parent when it ended; 0 = unknown.
	Parent  int  `json:"parent,omitempty"`
	Host    bool `json:"host"`              // the host ran out of memory, rather than a group
	InJob   bool `json:"ours,omitempty"`    // part of the job, according to its parents
	Foreign bool `json:"foreign,omitempty"` // not part of the job, according to its parents
}
