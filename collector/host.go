package collector

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
	h.Hostname = r.procLine("sys/kernel/hostname")
	if h.Hostname == "" {
		h.Hostname, _ = os.Hostname()
	}
	h.BootID = r.procLine("sys/kernel/random/boot_id")
	h.Kernel = r.procLine("sys/kernel/osrelease")
	h.CPUModel = r.cpuModel()
	_ = guard(func() error { // a failure shows in every Reading
		m, err := r.readMemory()
		if err == nil {
			h.MemoryMB = float64(m.Total) / MiB
		}
		return err
	})
	return h
}

// procLine is the first line of a file under /proc, or "".
func (r *Reader) procLine(name string) string {
	data, err := os.ReadFile(filepath.Join(r.proc, name))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// cpuModel is the first "model name" of /proc/cpuinfo. Only the file's beginning
// is read: on x86 the kernel asks every CPU for its frequency as the file is read.
func (r *Reader) cpuModel() string {
	f, err := os.Open(filepath.Join(r.proc, "cpuinfo"))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 4096))
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		key = strings.TrimSpace(key)
		if found && (key == "model name" || key == "Model" || key == "cpu model") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
