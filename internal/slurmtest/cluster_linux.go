package slurmtest

import (
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// A Cluster is a Slurm cluster with a login host and the nodes node1 and node2. The login host also runs slurmctld. The
// nodes limit jobs with control groups v1. All machines share the file system.
type Cluster struct {
	Login *hosttest.Host
	Nodes []*hosttest.Host

	t        *testing.T
	dir      string
	programs Programs
	env      []string
	daemons  []*exec.Cmd
}

// network is the prefix of all addresses. The network is isolated, so it cannot conflict with other networks.
const network = "10.99.0."

// Start starts a cluster that lives until the test ends. It first waits until no other test has a cluster: Slurm names
// control groups by node, so there can be only one cluster on a machine.
func Start(t *testing.T) *Cluster {
	t.Helper()
	needs(t)
	lock(t)

	dir, err := os.MkdirTemp("", "perfagent-slurm-") // the length of a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &Cluster{t: t, dir: dir}
	for _, name := range []string{".", "bin", "munge", "state", "spool.node1", "spool.node2", "log"} {
		path := filepath.Join(dir, name)
		_ = os.Mkdir(path, 0o711)
		if err := os.Chmod(path, 0o711); err != nil { // jobs of other users need access to directories below
			t.Fatal(err)
		}
	}
	c.programs = FindPrograms(t, c.path("bin"))
	if err := os.Symlink(clitest.Binary(t), c.path("bin/perfagent")); err != nil {
		t.Fatal(err)
	}

	c.startHosts()
	t.Cleanup(c.stop)
	c.configure()
	c.startDaemons()
	return c
}

// needs skips the test on a machine that cannot run a cluster.
func needs(t *testing.T) {
	t.Helper()
	testenv.SkipIfShort(t, "a cluster of Slurm")
	NeedGroups(t)
	testenv.NeedsTool(t, "nsenter", "apt-get install util-linux")
	testenv.NeedsTool(t, "ip", "apt-get install iproute2")
	out, err := exec.Command("unshare", "--net", "--uts", "--mount", "ip", "link", "add", "test", "type", "veth").CombinedOutput()
	if err != nil {
		t.Skipf("needs network namespaces (%s): run the tests where root may create them", out)
	}
}

// lock waits until no other test has a cluster.
func lock(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "perfagent-slurmtest.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// path returns the path of a file of the cluster.
func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// startHosts starts the login host and the nodes.
func (c *Cluster) startHosts() {
	c.t.Helper()
	names := "127.0.0.1 localhost\n" + network + "1 login\n" + network + "11 node1\n" + network + "12 node2\n"
	hosts := clitest.Write(c.t, c.path("hosts"), names, 0o644)
	packages := c.openMPI()
	c.Login = hosttest.New(c.t, "login", network+"1", hosts, packages)
	c.Nodes = []*hosttest.Host{
		hosttest.New(c.t, "node1", network+"11", hosts, packages),
		hosttest.New(c.t, "node2", network+"12", hosts, packages),
	}
	c.Login.Connect(c.t, c.Nodes)
}

// openMPI links mpirun into the directory of Slurm's programs, and returns the packages that mpirun needs.
func (c *Cluster) openMPI() []string {
	c.t.Helper()
	if err := os.Symlink(mpirun, c.path("bin/mpirun")); err != nil {
		c.t.Fatal(err)
	}
	root := testenv.Repository(c.t, ".tools/openmpi")
	if clitest.Exists(mpirun) || !clitest.Exists(root+mpirun) {
		return nil
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		c.t.Fatal(err)
	}
	return []string{root}
}

// mpirun is the path of Open MPI's launcher in Debian.
const mpirun = "/usr/bin/mpirun.openmpi"

// NeedOpenMPI skips the test if the nodes have no mpirun.
func (c *Cluster) NeedOpenMPI(t *testing.T) {
	t.Helper()
	if o := clitest.RunCommand(t, c.Command(t, "mpirun", "--version")); o.Code != 0 {
		testenv.SkipOrFail(t, "needs Open MPI: apt-get install openmpi-bin (make e2e unpacks it into .tools/openmpi, as root on Debian)")
	}
}

// configure writes Slurm's configuration. It declares more CPUs than the machine has, so that jobs can run
// concurrently.
func (c *Cluster) configure() {
	c.t.Helper()
	more := strings.NewReplacer("DIR", c.dir, "NET", network).Replace(slurmConf)
	c.env = c.programs.Configure(c.t, c.dir, more)
}

// slurmConf holds the cluster's own lines of slurm.conf. A requeued job waits until the credentials of its first run
// have expired. Regardless of SlurmdTimeout, Slurm does not declare a node dead before 30 s have passed.
const slurmConf = `SlurmctldHost=login(NET1)
SlurmctldPort=6817
AuthInfo=socket=DIR/munge/socket,cred_expire=20
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
JobRequeue=1
SlurmdTimeout=30
MessageTimeout=25
NodeName=node1 NodeAddr=NET11 Port=6818 CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=16000 State=UNKNOWN
NodeName=node2 NodeAddr=NET12 Port=6818 CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=node[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
`

// startDaemons starts munge and Slurm, and waits until both nodes are idle.
func (c *Cluster) startDaemons() {
	c.t.Helper()
	args, socket := c.programs.Munged(c.dir)
	c.start(c.Login, "munged", args...)
	clitest.WaitUntil(c.t, "munged answers", func() bool { return clitest.Exists(socket) })
	c.start(c.Login, "slurmctld", "-D", "-c")
	for i := range c.Nodes {
		c.StartNode(i)
	}
	c.WaitIdle(c.t)
}

// StartNode starts slurmd on node i. It may be called after Kill.
func (c *Cluster) StartNode(i int) {
	c.t.Helper()
	host := c.Nodes[i]
	c.start(host, "slurmd", append([]string{"-D", "-N", host.Name}, c.programs.Stepd()...)...)
}

// start starts a daemon in the foreground. timeout(1) ends it if it is still running after 40 minutes.
func (c *Cluster) start(h *hosttest.Host, name string, args ...string) {
	c.t.Helper()
	cmd := h.Command(c.t, c.dir, "timeout", append([]string{"-k", "5", "2400", c.programs.Path(name)}, args...)...)
	cmd.Env = append(cmd.Env, c.env...)
	output, err := os.Create(c.path("log/" + name + "." + h.Name + ".out"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.daemons = append(c.daemons, cmd)
}

// WaitIdle waits until both nodes are idle.
func (c *Cluster) WaitIdle(t *testing.T) {
	t.Helper()
	state := ""
	for begin := time.Now(); state != "idle 2"; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > clitest.Longest {
			t.Fatalf("nodes are not idle after %v: %q", clitest.Longest, state)
		}
		o := clitest.RunCommand(t, c.Command(t, "sinfo", "-h", "-o", "%T %D"))
		state = strings.TrimSpace(o.Out + o.Err)
	}
}

// Command prepares a program for a user on the login host, in a new directory, with Slurm's programs and
// perfagent in PATH.
func (c *Cluster) Command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return c.CommandIn(t, t.TempDir(), name, args...)
}

// CommandIn is like Command, in the directory dir.
func (c *Cluster) CommandIn(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	if path := c.programs.Path(name); clitest.Exists(path) {
		name = path
	}
	cmd := c.Login.Command(t, dir, name, args...)
	cmd.Env = append(cmd.Env, c.env...)
	return cmd
}

// Path returns the directory with the programs of Slurm, and perfagent.
func (c *Cluster) Path() string { return c.programs.Dir }

// Groups returns the directories of the control groups of the node h, parents first.
func (c *Cluster) Groups(h *hosttest.Host) []string {
	var dirs []string
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/slurm_" + h.Name)
	for _, top := range tops {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // a group that cannot be read has just been removed
		})
	}
	return dirs
}

// stop ends the cluster and removes its control groups. It does so even if the test has failed.
func (c *Cluster) stop() {
	for _, cmd := range c.daemons {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, h := range append(c.Nodes, c.Login) {
		h.Kill(c.t)
	}
	for _, cmd := range c.daemons {
		clitest.Wait(c.t, cmd)
	}
	for _, h := range c.Nodes {
		for _, dir := range slices.Backward(c.Groups(h)) {
			c.remove(dir)
		}
	}
	if c.t.Failed() {
		c.logTails()
	}
}

// remove removes the control group dir as soon as the kernel permits it.
func (c *Cluster) remove(dir string) {
	for begin := time.Now(); os.Remove(dir) != nil && clitest.Exists(dir); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > clitest.Longest {
			c.t.Errorf("control group %s cannot be removed", dir)
			return
		}
	}
}

// logTails logs the ends of the daemons' logs.
func (c *Cluster) logTails() {
	paths, _ := filepath.Glob(c.path("log/*"))
	for _, path := range paths {
		data, _ := os.ReadFile(path)
		c.t.Logf("%s:\n%s", filepath.Base(path), data[max(0, len(data)-1500):])
	}
}

// Forward makes a server of the test's machine reachable from the hosts, and returns its address there.
func (c *Cluster) Forward(t *testing.T, address string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l := c.Login.Listen(t, forwardPort)
	server := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return "http://" + l.Addr().String()
}

// forwardPort is free: only Slurm runs on the login host.
const forwardPort = 5000
