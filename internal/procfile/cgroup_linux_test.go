package procfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that has begun to end is not taken for one that has gone to the root groups.
func TestControlGroups(t *testing.T) {
	stat := func(flags int) string { return fmt.Sprintf("7 (a) R 1 7 7 0 -1 %d 0", flags) }
	for _, test := range []struct {
		name, groups, stat string
		ends               bool
	}{
		{"in a group of v2", "0::/a\n", stat(0x4), false},
		{"in a root group", "4:memory:/\n0::/a\n", stat(0x400000), false},
		{"about to end", "4:memory:/\n0::/a\n", stat(0x400004), true},
		{"killed by a signal", "4:memory:/\n0::/a\n", stat(0x400), true},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"cgroup": test.groups, "stat": test.stat} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ControlGroups(dir)
		if ends := errors.Is(err, fs.ErrNotExist); ends != test.ends || !ends && (err != nil || string(got) != test.groups) {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
}

// The kernel's own files of a process that has ended and was not waited for.
func TestControlGroups_OfZombie(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}

	dir := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	own, err := ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ControlGroups(dir)
	if !errors.Is(err, fs.ErrNotExist) && string(got) != string(own) {
		t.Errorf("%q, %v; our own are %q", got, err, own)
	}
}
