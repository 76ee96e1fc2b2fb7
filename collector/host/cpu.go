package host

// CPUTimes holds one cpuN line of /proc/stat, in seconds since boot (proc(5)).
type CPUTimes struct {
	Name    string
	Seconds [NumCPUModes]float64
	// Guest and GuestNice are also included in ModeUser and ModeNice.
	Guest, GuestNice float64
}

// A CPUMode is one of the states into which the kernel divides a CPU's time (proc(5)).
type CPUMode int

// The modes, in the kernel's order. ModeUser and ModeNice include guest time, as in the kernel.
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

// String returns the mode's name, as in proc(5) and most tools.
func (m CPUMode) String() string {
	return [NumCPUModes]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}[m]
}
