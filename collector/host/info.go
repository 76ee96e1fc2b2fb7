package host

import (
	"os"
	"runtime"
)

// Info identifies the machine that was sampled. Empty fields are unknown.
type Info struct {
	Hostname string
	BootID   string // /proc/sys/kernel/random/boot_id: tells two machines of one name apart
	OS       string // "linux"
	Kernel   string // release
	Arch     string
	CPUModel string
	CPUs     int     // logical CPUs that are online
	MemoryMB float64 // physical memory, MiB
}

// Info reads the host's identity, from the same roots as everything else.
func (r *Reader) Info() Info {
	h := Info{OS: runtime.GOOS, Arch: runtime.GOARCH}
	r.describe(&h)
	if h.Hostname == "" {
		h.Hostname, _ = os.Hostname()
	}
	_ = guard(func() error { // every Reading tells of a failure
		m, err := r.readMemory()
		if err == nil {
			h.MemoryMB = float64(m.Total) / mib
		}
		return err
	})
	return h
}
