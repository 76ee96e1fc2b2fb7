package host

import (
	"os"
	"runtime"
)

// Info identifies the machine that was sampled. Empty fields are unknown.
type Info struct {
	Hostname string `json:"hostname"`
	// BootID is /proc/sys/kernel/random/boot_id: it distinguishes two machines of one name.
	BootID   string  `json:"boot_id"`
	OS       string  `json:"os"`     // "linux"
	Kernel   string  `json:"kernel"` // release
	Arch     string  `json:"arch"`
	CPUModel string  `json:"cpu_model"`
	CPUs     int     `json:"cpus"`      // logical CPUs that are online; 0 is unknown
	MemoryMB float64 `json:"memory_mb"` // physical memory, MiB; 0 is unknown
}

// Info reads the host's identity, from the same roots as everything else.
func (r *Reader) Info() Info {
	h := Info{OS: runtime.GOOS, Arch: runtime.GOARCH}
	r.describe(&h)
	if h.Hostname == "" {
		h.Hostname, _ = os.Hostname()
	}
	var m Memory // every Reading reports a failure
	_ = guard(func() (err error) { m, err = r.readMemory(); return err })
	h.MemoryMB = float64(m.Total) / mib
	return h
}

// BootID returns the BootID of this machine, or "" if it is not known.
func BootID() string {
	r := NewReader(Options{})
	defer r.Close()

	return r.Info().BootID
}
