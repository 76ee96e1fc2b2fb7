package host

import (
	"path/filepath"
	"strings"
)

// describe sets the fields that procfs has.
func (r *Reader) describe(h *Info) {
	h.Hostname = readWord(r.proc + "/sys/kernel/hostname")
	h.BootID = readWord(r.proc + "/sys/kernel/random/boot_id")
	h.Kernel = readWord(r.proc + "/sys/kernel/osrelease")
	h.CPUModel = r.cpuModel()
}

// cpuModel returns the first "model name" of /proc/cpuinfo. It reads only the beginning of the file: on x86 the kernel
// queries every CPU's frequency as the file is read.
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
