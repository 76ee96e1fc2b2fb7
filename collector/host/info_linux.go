package host

import (
	"path/filepath"
	"strings"
)

// describe sets the fields of h that come from procfs.
func (r *Reader) describe(h *Info) {
	h.Hostname = readWord(r.proc + "/sys/kernel/hostname")
	h.BootID = readWord(r.proc + "/sys/kernel/random/boot_id")
	h.Kernel = readWord(r.proc + "/sys/kernel/osrelease")
	h.CPUModel = r.cpuModel()
}

// cpuModel returns the first "model name" in /proc/cpuinfo. It reads only the beginning of the file, because on x86 the
// kernel queries a CPU's frequency when its part of the file is read.
func (r *Reader) cpuModel() string {
	head, _ := readStart(filepath.Join(r.proc, "cpuinfo"), 4096)
	for line := range strings.Lines(string(head)) {
		key, value, found := strings.Cut(line, ":")
		key = strings.TrimSpace(key)
		if found && (key == "model name" || key == "Model" || key == "cpu model") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
