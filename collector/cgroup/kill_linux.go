package cgroup

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Kill sends KILL to all processes of the made group, and of those below it, at once: none is missed
// that is just being made. Only v2 can do so (cgroup.kill, Linux 5.14); the error says that this group
// cannot.
func (m *Made) Kill() error {
	if m.v2 == nil {
		return fmt.Errorf("kill the processes of a control group: %w", unix.ENOTSUP)
	}

	return writeFile(filepath.Join(m.v2.dir, "cgroup.kill"), "1")
}
