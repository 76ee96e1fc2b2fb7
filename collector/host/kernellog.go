package host

import "time"

const (
	// maxKernelLog bounds what is read of the kernel's log after an OOM kill, maxKernelPoll what is
	// read at other times.
	maxKernelLog  = 8 << 20
	maxKernelPoll = 64 << 10
)

// A Victim is a process that the kernel's OOM killer killed.
type Victim struct {
	Process string    `json:"process"` // its name
	PID     int       `json:"pid"`     // 0 = unknown
	At      time.Time `json:"at,omitzero"`
	Group   string    `json:"group,omitempty"` // of the victim
	// LimitGroup is the group whose limit was hit: the victim's or one above it; "" = unknown.
	LimitGroup string `json:"limit_group,omitempty"`
	Host       bool   `json:"host"`              // the host was out of memory, not a group
	Foreign    bool   `json:"foreign,omitempty"` // it was seen among processes that are not the job's
}

// An oomLog reads from the kernel's log which processes the OOM killer has killed since the
// baseline.
type oomLog struct {
	start   Instant
	opening chan *kernelLog // delivers the log once it is open; nil = not opened yet
	log     *kernelLog      // nil = it cannot be read
}

// open opens the kernel's log at its end, in the background: that takes the kernel 50 µs, and the
// job waits for us.
func (o *oomLog) open(start Instant) {
	o.close()
	o.start, o.opening = start, make(chan *kernelLog, 1)
	opening := o.opening
	go func() { opening <- openKernelLog() }()
}

// opened returns the log once it is open, or nil if it cannot be read.
func (o *oomLog) opened() *kernelLog {
	if o.opening != nil {
		o.log, o.opening = <-o.opening, nil
	}
	return o.log
}

// close closes the log.
func (o *oomLog) close() {
	o.opened().close()
	o.log = nil
}

// Victims returns the processes that the OOM killer is known to have killed since
// the baseline, or nil where its log cannot be read. It reports whether they are all that the log
// has, with process IDs that are ours.
func (r *Reader) Victims(now Instant) (victims []Victim, whole bool) {
	log := r.oom.opened()
	if log == nil {
		return nil, false
	}
	log.read(r.oom.start, now, r.job.tree.foreign, maxKernelLog)
	return log.victims(), log.whole()
}

// pollLog reads on in the kernel's log, if others are in the job's group, before a counter reports
// a kill: only the newest scans know whose a process was.
func (r *Reader) pollLog(now Instant) {
	if r.job.Source != JobFromTree || r.job.Group == nil {
		return
	}
	if log := r.oom.opened(); log != nil {
		log.read(r.oom.start, now, r.job.tree.foreign, maxKernelPoll)
	}
}
