package process

import (
	"cmp"
	"slices"
	"time"
)

// The ways in which the end of a process became known: Death.How.
const (
	DeathWaited    = "wait"      // this process waited for it
	DeathZombie    = "zombie"    // from its stat, before its parent waited for it
	DeathConnector = "connector" // from the kernel's process connector
	DeathPidfd     = "pidfd"     // from its pidfd, after its parent had waited for it
	DeathUnknown   = "unknown"   // it is gone, and nothing else is known
)

// A Death is the end of a process of the job.
type Death struct {
	PID  int `json:"pid"`
	PPID int `json:"ppid,omitempty"` // 0 = unknown
	// Command is as in Process. Without a scan, it is the kernel's name of the process; "" = unknown.
	Command string `json:"command,omitempty"`
	// Start and End are on the boot clock; Start is 0 if it is unknown. Struck is when a signal that dumps core began to
	// end the process, before any other process could notice; 0 = unknown.
	Start  time.Duration `json:"start_ns,omitzero"`
	End    time.Duration `json:"end_ns"`
	Struck time.Duration `json:"struck_ns,omitzero"`
	// Signal is the name of the signal that ended the process. If it is "", the process exited with ExitCode, unless How
	// is DeathUnknown.
	Signal     string `json:"signal,omitempty"`
	ExitCode   int    `json:"exit_code,omitzero"`
	CoreDumped bool   `json:"core_dumped,omitzero"`
	How        string `json:"how"`
	// CPUSeconds and PeakMemory (bytes) are from the last scan or, if known, from the end; 0 = unknown.
	CPUSeconds float64 `json:"cpu_s,omitzero"`
	PeakMemory float64 `json:"peak_memory,omitzero"`
}

// The thresholds for a process that exited with another code than 0. One that used less is normal: a test(1) that is
// false, a grep(1) without a match.
const (
	notableLife = time.Second
	notableCPU  = 0.05 // seconds
)

// isNotable reports whether the death belongs in Deaths.List. measured reports whether a scan or wait4(2) measured the
// process.
func (d *Death) isNotable(measured bool) bool {
	switch {
	case d.How == DeathUnknown:
		return true
	case d.Signal != "":
		return d.Signal != "SIGPIPE"
	}
	return measured && (d.Start > 0 && d.End-d.Start >= notableLife || d.CPUSeconds >= notableCPU)
}

// Deaths are the deaths of a job's processes that are known so far, except for the main process, which a Tree with a
// Root leaves out.
type Deaths struct {
	// List holds the notable deaths in the order in which they became known.
	List []Death `json:"list,omitempty"`
	// Quiet counts the failures that are not in List, SIGPIPE included. Last is the newest of them with an exit code;
	// nil = there is none.
	Quiet int64  `json:"quiet,omitzero"`
	Last  *Death `json:"last,omitempty"`
	// Dropped counts the notable deaths that are not in List, because there were too many.
	Dropped int64 `json:"dropped,omitzero"`
	// Missing is the reason why deaths may be missing; "" if there is none.
	Missing string `json:"missing,omitempty"`
}

// maxDeaths is the maximum length of Deaths.List.
const maxDeaths = 512

// Add adds notable deaths. Of too many, the oldest without a signal are dropped first, then the oldest.
func (d *Deaths) Add(more ...Death) {
	d.List = append(d.List, more...)
	surplus := len(d.List) - maxDeaths
	if surplus <= 0 {
		return
	}
	d.Dropped += int64(surplus)
	d.List = slices.DeleteFunc(d.List, func(e Death) bool {
		drop := surplus > 0 && e.Signal == ""
		if drop {
			surplus--
		}
		return drop
	})
	d.List = slices.Delete(d.List, 0, surplus)
}

// total returns the number of all deaths.
func (d *Deaths) total() int64 { return int64(len(d.List)) + d.Quiet + d.Dropped }

// addQuiet adds a failure that is not notable.
func (d *Deaths) addQuiet(e Death) {
	if d.Quiet++; e.Signal == "" {
		d.Last = &e
	}
}

// Of returns the notable deaths in a job, in the order in which the processes began to end, and the number of other
// failures. main is the ID of the main process, which is left out. If the job failed, the result includes processes
// that vanished, and the last failure within the second before end, which is on the boot clock.
func (d *Deaths) Of(main int, failed bool, end time.Duration) (list []Death, quiet int64) {
	if d == nil {
		return nil, 0
	}
	for _, e := range d.List {
		if e.PID != main && (failed || e.How != DeathUnknown) {
			list = append(list, e)
		}
	}
	quiet = d.Quiet
	last := d.Last
	later := func(e Death) bool { return e.ExitCode != 0 && e.End > last.End }
	if failed && last != nil && last.PID != main && end-last.End <= time.Second && !slices.ContainsFunc(list, later) {
		list, quiet = append(list, *last), quiet-1
	}
	slices.SortStableFunc(list, func(a, b Death) int { return cmp.Compare(a.struck(), b.struck()) })
	return list, quiet
}

// struck returns when the process began to end, as far as known.
func (d *Death) struck() time.Duration { return cmp.Or(d.Struck, d.End) }
