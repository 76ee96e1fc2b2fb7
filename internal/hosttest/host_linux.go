package hosttest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
)

// A Host is a machine made of namespaces: its host name, network, mounts and /dev/shm are its own. It has the
// processes, files and control groups of the test's machine.
type Host struct {
	Name    string
	Address string
	holder  *clitest.Process // keeps the namespaces
}

// New makes a host that is connected to nothing. names is a file as /etc/hosts, and packages are directories with
// unpacked packages, which are installed on the host.
func New(t *testing.T, name, address, names string, packages []string) *Host {
	t.Helper()
	script := `set -e
hostname "$1"
ip link set lo up
names=$2
shift 2
for dir; do
	mount -t overlay -o "lowerdir=$dir/usr:/usr" overlay /usr
	mount -t overlay -o "lowerdir=$dir/etc:/etc" overlay /etc
done
mount --bind "$names" /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
echo ready
exec cat` // until the test closes the pipe, or dies
	args := []string{"--net", "--uts", "--mount", "sh", "-c", script, "host", name, names}
	cmd := clitest.Command(t, "unshare", append(args, packages...)...)
	input, hold := clitest.Pipe(t)
	cmd.Stdin = input
	h := &Host{Name: name, Address: address, holder: clitest.Launch(t, cmd)}
	h.holder.Expect("ready")
	input.Close()
	t.Cleanup(func() {
		hold.Close()
		clitest.Wait(t, cmd)
	})
	return h
}

// PID returns a process that is in the host's namespaces as long as the host exists.
func (h *Host) PID() int { return h.holder.Cmd.Process.Pid }

// Command prepares a process on the host, in a directory.
func (h *Host) Command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	words := append(append(h.enter(dir), name), args...)
	return clitest.Command(t, words[0], words[1:]...)
}

// enter returns the words that begin a command on the host, in a directory.
func (h *Host) enter(dir string) []string {
	return []string{"nsenter", "--target", strconv.Itoa(h.PID()), "--net", "--uts", "--mount", "--wdns=" + dir, "--"}
}

// do runs a shell's script on the host. What it says is an error.
func (h *Host) do(t *testing.T, script string, args ...string) {
	t.Helper()
	o := clitest.Perform(t, h.Command(t, "/", "sh", append([]string{"-ec", script, "host"}, args...)...))
	if o.Code != 0 || o.Out+o.Err != "" {
		t.Fatalf("%s on %s: exit code %d: %s%s", script, h.Name, o.Code, o.Out, o.Err)
	}
}

// Connect makes this host a switch, and connects others with it.
func (h *Host) Connect(t *testing.T, others []*Host) {
	t.Helper()
	h.do(t, `ip link add cluster type bridge; ip addr add "$1/24" dev cluster; ip link set cluster up`, h.Address)
	for i, other := range others {
		h.do(t, `ip link add "$1" type veth peer name eth0 netns "$2"; ip link set "$1" master cluster up`,
			fmt.Sprintf("port%d", i+1), strconv.Itoa(other.PID()))
		other.do(t, `ip addr add "$1/24" dev eth0; ip link set eth0 up`, other.Address)
	}
}

// Listen opens a port of the host's own network for the test's process.
func (h *Host) Listen(t *testing.T, port int) net.Listener {
	t.Helper()
	type answer struct {
		net.Listener
		error
	}
	ch := make(chan answer)
	go func() {
		runtime.LockOSThread() // and never back: the thread ends with the goroutine
		l, err := h.listen(port)
		ch <- answer{l, err}
	}()
	a := <-ch
	if a.error != nil {
		t.Fatal(a.error)
	}
	t.Cleanup(func() { a.Close() })
	return a.Listener
}

// listen moves the calling thread into the host's network.
func (h *Host) listen(port int) (net.Listener, error) {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", h.PID()))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("entering the network of %s: %w", h.Name, err)
	}
	return net.Listen("tcp", net.JoinHostPort(h.Address, strconv.Itoa(port)))
}

// Processes returns the processes that run on the host.
func (h *Host) Processes() []int {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", h.PID()))
	if err != nil {
		return nil // the host has ended
	}
	var pids []int
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/uts")
	for _, path := range paths {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if ns, err := os.Readlink(path); err == nil && ns == own && pid != h.PID() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Kill kills all processes of the host at once, as a power cut would. The host itself stays.
func (h *Host) Kill(t *testing.T) {
	t.Helper()
	clitest.Until(t, "no process on "+h.Name, func() bool {
		pids := h.Processes()
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return len(pids) == 0
	})
}

// WriteShell writes a program that runs a command on one of the hosts, as ssh does.
func WriteShell(t *testing.T, path string, hosts []*Host) {
	t.Helper()
	script := "#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nhost=$1\nshift\ncase $host in\n"
	for _, h := range hosts {
		script += fmt.Sprintf("%s | %s) exec %s sh -c \"$*\" ;;\n", h.Name, h.Address, strings.Join(h.enter("/"), " "))
	}
	clitest.Write(t, path, script+"esac\necho \"no host $host\" >&2\nexit 255\n", 0o755)
}
