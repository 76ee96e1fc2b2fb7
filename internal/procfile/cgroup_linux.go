package procfile

import (
	"bytes"
	"fmt"
	"io/fs"
)

// ControlGroups returns /proc/PID/cgroup of the process with the given directory in procfs. The error wraps
// fs.ErrNotExist if the process is about to end: its file then names the root group in each hierarchy of version 1.
func ControlGroups(dir string) ([]byte, error) {
	groups, err := ReadFile(dir + "/cgroup")
	if err != nil || !bytes.Contains(groups, []byte(":/\n")) {
		return groups, err
	}
	if stat, err := ReadFile(dir + "/stat"); err == nil && Exiting(stat) {
		return nil, fmt.Errorf("read %s/cgroup: the process is about to end: %w", dir, fs.ErrNotExist)
	}
	return groups, nil
}
