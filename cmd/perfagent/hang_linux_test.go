package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hangingDir mounts a file system of which nobody answers for, as a dead file server's.
func hangingDir(t *testing.T) string {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("a directory that hangs needs root and /dev/fuse (modprobe fuse): %v", err)
	}
	dir := t.TempDir()
	if err := unix.Mount("hangs", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)); err != nil {
		unix.Close(fd)
		t.Skipf("a directory that hangs needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		unix.Close(fd) // whoever waits gets an error
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A directory of the PATH that hangs, behind that of the command, holds nobody up: a shell
// would not look there either.
func TestPathThatHangs(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run": {"run", "--", "sh", "-c", "sleep 1.5; trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"}, "sidecar": {"sidecar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := perfagent(t, append([]string{args[0], "--run-id", "x"}, args[1:]...)...)
			cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(tool(t, "sh", "a shell"))+":"+filepath.Dir(tool(t, "sleep", "coreutils"))+":"+hangingDir(t))
			l, code := launch(t, cmd), 7
			if name == "run" {
				l.expect("ready")
			} else {
				code = 0
				until(t, "the sidecar has taken samples for two seconds", func() bool {
					data, _ := os.ReadFile(filepath.Join(cmd.Dir, "perfagent-out/x/node-0.jsonl"))
					return strings.Count(string(data), "\n") > 2
				})
			}
			begin := time.Now()
			l.signal(syscall.SIGTERM)
			o, _ := l.end()
			if took := time.Since(begin); took > noise {
				t.Errorf("its end took %v", took)
			}
			o.want(t, code)
			if why := reasons(o.report(t).Nodes["0"], "gpu"); !strings.Contains(why, "find nvidia-smi on the PATH") {
				t.Errorf("missing says %q of the GPUs", why)
			}
		})
	}
}
