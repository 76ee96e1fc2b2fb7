package hosttest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
)

// A Host is a simulated machine made of namespaces: it has a separate host name, network, mounts and /dev/shm. It
// shares the files and control groups of the test's machine. It also shares the processes, unless [NewApart] created
// it.
type Host struct {
	Name    string
	Address string
	holder  *clitest.Process // keeps the namespaces alive
	pid     int              // ID of a process in all of the namespaces
	enters  []string         // options of nsenter(1)
}

// New makes a host without network connections. names is the path of a file like /etc/hosts. packages lists directories
// with unpacked packages to install on the host.
func New(t *testing.T, name, address, names string, packages []string) *Host {
	t.Helper()
	return launch(t, &Host{Name: name, Address: address, enters: []string{"--net", "--uts", "--mount"}}, nil, names, packages)
}

// NewApart is like [New], but gives the host a PID namespace: its /proc shows no other processes. All of its processes,
// including daemons and containers, end with the test, even if the test is killed.
func NewApart(t *testing.T, name, address, names string, packages []string) *Host {
	t.Helper()
	h := &Host{Name: name, Address: address, enters: []string{"--net", "--uts", "--mount", "--pid"}}

	return launch(t, h, []string{"--fork", "--kill-child"}, names, packages)
}

// launch starts the process that keeps the namespaces of h alive. options are further options of unshare(1).
func launch(t *testing.T, h *Host, options []string, names string, packages []string) *Host {
	t.Helper()
	script := `set -e
read -r pid rest </proc/self/stat # as the test's /proc numbers it
[ "$pid" = $$ ] || mount -t proc proc /proc
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
echo "ready $pid"
exec cat` // until the test closes the pipe or dies
	args := slices.Concat(h.enters, options, []string{"sh", "-c", script, "host", h.Name, names}, packages)
	cmd := clitest.Command(t, "unshare", args...)
	input, hold := clitest.Pipe(t)
	cmd.Stdin = input
	h.holder = clitest.StartProcess(t, cmd)
	pid, err := strconv.Atoi(h.holder.Field("ready"))
	if err != nil {
		t.Fatal(err)
	}
	h.pid = pid
	input.Close()
	t.Cleanup(func() {
		hold.Close()
		clitest.Wait(t, cmd)
	})
	return h
}

// PID returns the ID of a process that is in the host's namespaces during the whole lifetime of the host.
func (h *Host) PID() int { return h.pid }

// Command prepares a process on the host, in directory dir.
func (h *Host) Command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	words := append(append(h.enter(dir), name), args...)
	return clitest.Command(t, words[0], words[1:]...)
}

// enter returns the first arguments of a command line that runs a command on the host, in directory dir.
func (h *Host) enter(dir string) []string {
	words := append([]string{"nsenter", "--target", strconv.Itoa(h.PID())}, h.enters...)
	return append(words, "--wdns="+dir, "--")
}

// do runs a shell script in the host's network, but with the processes of the test's machine. Any output is an error.
func (h *Host) do(t *testing.T, script string, args ...string) {
	t.Helper()
	words := append([]string{"--target", strconv.Itoa(h.PID()), "--net", "sh", "-ec", script, "host"}, args...)
	o := clitest.RunCommand(t, clitest.Command(t, "nsenter", words...))
	if o.Code != 0 || o.Out+o.Err != "" {
		t.Fatalf("%s on %s: exit code %d: %s%s", script, h.Name, o.Code, o.Out, o.Err)
	}
}

// Connect makes this host a switch, and connects others to it. The switch has a fixed hardware address. Otherwise it
// would use the address of a port, and would change its address when the host at that port ends. The other hosts would
// notice the change only half a minute later.
func (h *Host) Connect(t *testing.T, others []*Host) {
	t.Helper()
	h.do(t, `ip link add cluster address 02:00:00:00:00:01 type bridge; ip addr add "$1/24" dev cluster; ip link set cluster up`, h.Address)
	for i, other := range others {
		h.do(t, `ip link add "$1" type veth peer name eth0 netns "$2"; ip link set "$1" master cluster up`,
			fmt.Sprintf("port%d", i+1), strconv.Itoa(other.PID()))
		other.do(t, `ip addr add "$1/24" dev eth0; ip link set eth0 up`, other.Address)
	}
}

// Listen opens a port in the host's network for the test's process.
func (h *Host) Listen(t *testing.T, port int) net.Listener {
	t.Helper()
	type answer struct {
		net.Listener
		error
	}
	ch := make(chan answer)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
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

// listen moves the calling thread into the host's network and listens there.
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

// Processes returns the processes on the host.
func (h *Host) Processes() []int {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", h.PID()))
	if err != nil {
		return nil // the host has ended
	}
	var pids []int
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/uts")
	for _, path := range paths {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if ns, err := os.Readlink(path); err == nil && ns == own && pid != h.PID() && pid != h.holder.Cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Kill kills all processes on the host, as a power cut would. The host itself remains.
func (h *Host) Kill(t *testing.T) {
	t.Helper()
	clitest.WaitUntil(t, "no process on "+h.Name, func() bool {
		pids := h.Processes()
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return len(pids) == 0
	})
}

// PowerOff ends a host made by [NewApart]. All its processes are killed at the same time.
func (h *Host) PowerOff(t *testing.T) {
	t.Helper()
	if err := unix.Kill(h.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	clitest.WaitUntil(t, "the end of "+h.Name, func() bool { return clitest.ProcessState(h.PID()) == "" })
}

// WriteShell writes a program that, like ssh, runs a command on one of the hosts.
func WriteShell(t *testing.T, path string, hosts []*Host) {
	t.Helper()
	script := "#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nhost=$1\nshift\ncase $host in\n"
	for _, h := range hosts {
		script += fmt.Sprintf("%s | %s) exec %s sh -c \"$*\" ;;\n", h.Name, h.Address, strings.Join(h.enter("/"), " "))
	}
	clitest.Write(t, path, script+"esac\necho \"no host $host\" >&2\nexit 255\n", 0o755)
}
