package collector

import (
	"os"
	"runtime"
)

// Host says which machine was sampled. Empty = unknown.
type Host struct {
	Hostname string
	BootID   string // /proc/sys/kernel/random/boot_id: tells two machines of one name apart
	OS       string // "linux"
	Kernel   string // release
	Arch     string
	CPUModel string
	CPUs     int     // logical CPUs that are online
	MemoryMB float64 // physical memory, MiB
}

// Host reads who the host is, from the same roots as everything else.
func (r *Reader) Host() Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	r.describe(&h)
	if h.Hostname == "" {
		h.Hostname, _ = os.Hostname()
	}
	_ = guard(func() error { // a failure shows in every Reading
		m, err := r.readMemory()
		if err == nil {
			h.MemoryMB = float64(m.Total) / MiB
		}
		return err
	})
	return h
}
