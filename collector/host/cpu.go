package host

// CPUTimes is one line cpuN of /proc/stat in seconds since boot (proc(5)).
type CPUTimes struct {
	Name    string
	Seconds [NumCPUModes]float64
	// Guest and GuestNice are counted in ModeUser and ModeNice as well.
	Guest, GuestNice float64
}

// CPUMode numbers what the kernel counts a CPU's time as (proc(5)).
type CPUMode int

// The modes. Time of guests is in ModeUser and ModeNice, as the kernel counts it.
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

// String is the mode's name, as proc(5) and other tools have it.
func (m CPUMode) String() string {
	return [NumCPUModes]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}[m]
}
