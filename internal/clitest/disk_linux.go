package clitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/testenv"
)

// Mount mounts a tmpfs at a new directory and returns the directory.
func Mount(t *testing.T, options string, flags uintptr) string {
	t.Helper()
	testenv.NeedsRoot(t, "to mount a file system")

	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("needs to mount a tmpfs (%v): run the tests where root may", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// OpenFUSE opens the kernel's side of a FUSE file system. Accesses to the file system hang until this side is read.
func OpenFUSE(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("a file system that hangs needs root and /dev/fuse (modprobe fuse): %v", err)
	}
	return os.NewFile(uintptr(fd), "/dev/fuse")
}

// MountFUSE mounts a FUSE file system over path, a directory or a file, and returns the kernel's side.
func MountFUSE(t *testing.T, path string) *os.File {
	t.Helper()
	var at unix.Stat_t
	if err := unix.Stat(path, &at); err != nil {
		t.Fatal(err)
	}
	fuse := OpenFUSE(t)
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=0,group_id=0,allow_other", fuse.Fd(), at.Mode&unix.S_IFMT)
	if err := unix.Mount("hangs", path, "fuse", 0, options); err != nil {
		fuse.Close()
		t.Skipf("a file system that hangs needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		fuse.Close() // makes pending accesses fail
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return fuse
}

// ReadOnly returns a directory to which not even root can write.
func ReadOnly(t *testing.T) string {
	t.Helper()
	return Mount(t, "size=1m", unix.MS_RDONLY)
}

// Fill uses up all space of the file system that contains dir.
func Fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		t.Fatal(err)
	}
}

// nobody is the ID of a user without privileges.
const nobody = 65534

// OpenTemp returns a new directory that all users may use.
func OpenTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "perfagent-open-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// AsNobody makes cmd run as an unprivileged user, in a directory to which this user may write. It does nothing unless
// the test runs as root.
func AsNobody(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		return cmd
	}
	cmd.Dir = OpenTemp(t)
	cmd.Env = append(cmd.Env, "TMPDIR="+cmd.Dir, "HOME="+cmd.Dir)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	return cmd
}

// AsLoneUser is like AsNobody, but with a user that has no other processes. It is for tests of limits on the number of
// processes.
func AsLoneUser(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	testenv.NeedsRoot(t, "for a limit on the processes of a separate user")
	cmd = AsNobody(t, cmd)
	cmd.SysProcAttr.Credential.Uid = uint32(61_000 + os.Getpid()%1000)
	return cmd
}
