package host

import (
	"os"
	"runtime"
)

// Info identifies the sampled machine. Empty fields are unknown.
type Info struct {
	Hostname string `json:"hostname"`
	// BootID is /proc/sys/kernel/random/boot_id. It distinguishes machines that have the same name.
	BootID   string  `json:"boot_id"`
	OS       string  `json:"os"`     // "linux"
	Kernel   string  `json:"kernel"` // release
	Arch     string  `json:"arch"`
	CPUModel string  `json:"cpu_model"`
	CPUs     int     `json:"cpus"`      // logical CPUs that are online; 0 = unknown
	MemoryMB float64 `json:"memory_mb"` // physical memory, MiB; 0 = unknown
}

// Info reads the host's identity, from the same roots as the Readings.
func (r *Reader) Info() Info {
	h := Info{OS: runtime.GOOS, Arch: runtime.GOARCH}
	r.describe(&h)
	if h.Hostname == "" {
		h.Hostname, _ = os.Hostname()
	}
	var m Memory // a failure is reported by every Reading
	_ = guard(func() (err error) { m, err = r.readMemory(); return err })
	h.MemoryMB = float64(m.Total) / mib
	return h
}

// BootID returns the BootID of this machine, or "" if it is unknown.
func BootID() string {
	r := NewReader(Options{})
	defer r.Close()

	return r.Info().BootID
}
