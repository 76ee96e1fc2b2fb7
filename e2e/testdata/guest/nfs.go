//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// exported is the folder that this machine's NFS server exports. It is a separate file system.
const exported = "/export"

// nfs runs a command on a machine that is its own NFS server: /mnt/nfs is a mount of the export, and /mnt/bound is a
// bind mount of a folder in it. The kernel asks a daemon about access rights, and this program is that daemon.
func nfs(args []string) error {
	for _, name := range []string{"sunrpc", "grace", "lockd", "nfs_acl", "auth_rpcgss", "nfsd", "netfs", "fscache", "nfs",
		"dns_resolver", "nfsv4"} {
		if err := load("/mod/" + name + ".ko"); err != nil {
			return err
		}
	}
	if err := errors.Join(upLoopback(), serveNFS(), mountNFS()); err != nil {
		return err
	}

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if err := errors.Join(unix.Unmount("/mnt/bound", 0), unix.Unmount("/mnt/nfs", 0)); err != nil {
		return err
	}
	return errors.Join(err, stopNFS())
}

// upLoopback enables the loopback interface.
func upLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// serveNFS starts the kernel's NFS server, with version 4 only.
func serveNFS() error {
	for _, m := range [][2]string{{"tmpfs", exported}, {"nfsd", "/proc/fs/nfsd"}} {
		if err := os.MkdirAll(m[1], 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	for cache, reply := range map[string]func([]string) string{
		"auth.unix.ip": func(f []string) string { return f[0] + " " + f[1] + " " + later() + " guest" },
		"nfsd.fh":      func(f []string) string { return strings.Join(f[:3], " ") + " " + later() + " " + exported },
		// The flags are insecure ports, no_subtree_check and fsid, as in linux/nfsd/export.h. The fsid is 0.
		"nfsd.export": func(f []string) string {
			return fmt.Sprintf("%s %s %s %d 65534 65534 0", f[0], f[1], later(), 0x2|0x400|0x2000)
		},
	} {
		if err := answer(cache, reply); err != nil {
			return err
		}
	}

	return startNFS()
}

// startNFS starts the threads of the server, with the shortest possible wait for earlier clients.
func startNFS() error {
	for _, w := range [][2]string{{"nfsv4gracetime", "10"}, {"nfsv4leasetime", "10"}, {"versions", "-2 -3 +4 +4.1 +4.2"},
		{"portlist", "tcp 2049"}, {"threads", "2"}} {
		if err := os.WriteFile("/proc/fs/nfsd/"+w[0], []byte(w[1]+"\n"), 0); err != nil {
			return fmt.Errorf("%s: %w", w[0], err)
		}
	}
	return nil
}

// stopNFS stops the threads of the server. Clients wait until the threads are started again.
func stopNFS() error { return os.WriteFile("/proc/fs/nfsd/threads", []byte("0\n"), 0) }

// hangNFS stops the server for d, and checks that an access waits during this time.
func hangNFS(d time.Duration) error {
	if err := stopNFS(); err != nil {
		return err
	}
	looked := make(chan error)
	go func() {
		_, err := os.Stat("/mnt/nfs/none")
		looked <- err
	}()
	select {
	case err := <-looked:
		return fmt.Errorf("stopped server responded: %w", err)
	case <-time.After(d):
	}
	if err := startNFS(); err != nil {
		return err
	}
	if err := <-looked; !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// later returns the expiry time of an answer.
func later() string { return fmt.Sprint(time.Now().Add(time.Hour).Unix()) }

// answer answers the kernel's requests for one cache until the program ends.
func answer(cache string, reply func(fields []string) string) error {
	f, err := os.OpenFile(filepath.Join("/proc/net/rpc", cache, "channel"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 8192)
		for {
			n, err := f.Read(buf)
			if err != nil || n == 0 { // there is no request now
				time.Sleep(time.Millisecond)
				continue
			}
			for line := range bytes.Lines(buf[:n]) {
				text := reply(strings.Fields(string(line)))
				if _, err := f.WriteString(text + "\n"); err != nil {
					fmt.Fprintf(os.Stderr, "guest: %s: %q: %v\n", cache, text, err)
				}
			}
		}
	}()
	return nil
}

// mountNFS mounts the export, and waits until files can be opened.
func mountNFS() error {
	if err := errors.Join(os.MkdirAll("/mnt/nfs", 0o755), os.MkdirAll("/mnt/bound", 0o755), os.Mkdir(exported+"/sub", 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("127.0.0.1:/", "/mnt/nfs", "nfs4", 0, "vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,sec=sys,proto=tcp"); err != nil {
		return fmt.Errorf("mount 127.0.0.1:/: %w", err)
	}
	if err := os.WriteFile("/mnt/nfs/sub/written", nil, 0o644); err != nil {
		return err
	}
	return unix.Mount("/mnt/nfs/sub", "/mnt/bound", "", unix.MS_BIND, "")
}

// useNFS writes mib MiB through the mount, reads the same amount through the bind mount, and looks up the given number
// of missing files. The client's cache has none of the data that useNFS reads.
func useNFS(mib int, files int) error {
	if err := writeSync("/mnt/nfs/sub/written", mib); err != nil {
		return err
	}
	if err := os.WriteFile(exported+"/sub/read", make([]byte, mib<<20), 0o644); err != nil {
		return err
	}
	data, err := os.ReadFile("/mnt/bound/read")
	if err != nil || len(data) != mib<<20 {
		return fmt.Errorf("%d bytes read, %v", len(data), err)
	}
	for i := range files {
		if _, err := os.Stat(fmt.Sprintf("/mnt/nfs/none-%d", i)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("stat: %v", err)
		}
	}
	return nil
}
