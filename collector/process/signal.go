package process

import "time"

// A Signal is a signal that this process received, and its sender (si_code and si_pid of sigaction(2)'s siginfo).
type Signal struct {
	Signal string    `json:"signal"`           // "SIGTERM"
	Number int       `json:"number,omitempty"` // on this system; 0 = unknown
	At     time.Time `json:"at"`               // when it was noticed, about a millisecond after it was sent
	// Kernel reports whether the kernel sent the signal, not a process: after Ctrl-C in the terminal, after a hang-up,
	// or because a limit was reached.
	Kernel bool `json:"kernel,omitempty"`
	// PID and Process are the sender's process ID and name (/proc/PID/comm); -1 and "" mean unknown. Process is "" if
	// the sender had already ended. PID is 0 if the sender is outside this process's PID namespace.
	PID     int    `json:"pid"`
	Process string `json:"process,omitempty"`
}
