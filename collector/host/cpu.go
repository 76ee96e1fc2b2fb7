package host

// CPUTimes is one line cpuN of /proc/stat in seconds since boot (proc(5)).
type CPUTimes struct {
	Name    string
	Seconds [NumCPUModes]float64
	// Guest and GuestNice are counted in ModeUser and ModeNice as well.
	Guest, GuestNice float64
}

// A CPUMode is one of the states that the kernel counts a CPU's time by (proc(5)).
type CPUMode int

// The modes, in the kernel's order. Time of guests is in ModeUser and ModeNice, as the kernel
// counts it.
const (
	ModeUser CPUMode = iota
	ModeNice
	ModeSystem
	ModeIdle
	ModeIowait
	ModeIRQ
	ModeSoftIRQ
	ModeSteal
	NumCPUModes
)

// String returns the mode's name in proc(5) and other tools.
func (m CPUMode) String() string {
	return [NumCPUModes]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}[m]
}
