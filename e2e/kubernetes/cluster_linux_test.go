//go:build e2e

package kubernetes

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/testenv"
)

var asked = flag.Bool("kubernetes", false, "run a real cluster, and write its transcripts into docs/kubernetes.md")

// A cluster is a Kubernetes cluster on three hosts. The host control runs the API server, the scheduler and the
// controllers. The hosts node1 and node2 each run a kubelet and a containerd, and have separate /run, /var/lib and
// /var/log. On all hosts, the volume is mounted at /srv.
type cluster struct {
	control *hosttest.Host
	nodes   []*hosttest.Host

	t        *testing.T
	dir      string
	programs string // directory with the programs of Kubernetes
	env      []string
	daemons  []*exec.Cmd
}

const network = "10.99.0."

// start starts a cluster that lives until the test ends.
func start(t *testing.T) *cluster {
	t.Helper()
	if !*asked {
		t.Skip("needs a real cluster: make e2e-kubernetes, which builds Kubernetes")
	}
	testenv.NeedsRoot(t, "for control groups and for hosts made of namespaces")
	testenv.NeedsTool(t, "runc", "apt-get install runc (make e2e does it as root)")
	if !clitest.Exists("/sys/fs/cgroup/memory/memory.limit_in_bytes") {
		t.Skip("the nodes of the cluster need control groups v1: boot with systemd.unified_cgroup_hierarchy=0")
	}

	dir, err := os.MkdirTemp("", "perfagent-kube-") // a short path, because the length of socket paths is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cluster{t: t, dir: dir, programs: testenv.Repository(t, ".tools/kubernetes")}
	if !clitest.Exists(c.programs + "/installed") {
		t.Fatal("Kubernetes has not been built: make e2e-kubernetes")
	}
	for _, name := range []string{".", "volume"} {
		_ = os.Mkdir(c.path(name), 0o777)
		if err := os.Chmod(c.path(name), 0o777); err != nil { // jobs run as unprivileged users
			t.Fatal(err)
		}
	}
	kubeconfig := clitest.Write(t, c.path("kubeconfig"), strings.ReplaceAll(kubeconfigText, "NET", network), 0o600)
	c.env = []string{"KUBECONFIG=" + kubeconfig, "PATH=" + c.programs + ":" + filepath.Dir(clitest.Binary(t)) + ":" + os.Getenv("PATH"), "HOME=" + dir}

	c.startHosts()
	t.Cleanup(c.stop)
	c.startControl()
	images := images(t)
	for i := range c.nodes {
		c.startNode(i)
		c.load(i, images)
	}
	c.waitReady()

	return c
}

// path returns the path of a file of the cluster.
func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// startHosts makes the hosts, and installs containerd and etcd on them if they are only unpacked.
func (c *cluster) startHosts() {
	c.t.Helper()
	names := clitest.Write(c.t, c.path("hosts"), "127.0.0.1 localhost\n"+network+"1 control\n"+network+"11 node1\n"+network+"12 node2\n", 0o644)
	var packages []string
	if root, err := filepath.EvalSymlinks(testenv.Repository(c.t, ".tools/containerd")); err == nil {
		packages = append(packages, root)
	}
	c.control = hosttest.NewApart(c.t, "control", network+"1", names, packages)
	c.nodes = []*hosttest.Host{
		hosttest.NewApart(c.t, "node1", network+"11", names, packages), hosttest.NewApart(c.t, "node2", network+"12", names, packages),
	}
	c.control.Connect(c.t, c.nodes)
	c.do(c.control, `mount --bind "$1/volume" /srv`)
}

// do runs a shell script on a host, with the cluster's directory as $1.
func (c *cluster) do(h *hosttest.Host, script string) {
	c.t.Helper()
	clitest.RunCommand(c.t, h.Command(c.t, c.dir, "sh", "-ec", script, "sh", c.dir)).Want(c.t, 0)
}

// daemon starts a program in the foreground. It ends when its host ends.
func (c *cluster) daemon(h *hosttest.Host, name string, args ...string) {
	c.t.Helper()
	if path := filepath.Join(c.programs, name); clitest.Exists(path) {
		name = path
	}
	cmd := h.Command(c.t, c.dir, name, args...)
	cmd.Env = append(cmd.Env, c.env...)
	said, err := os.Create(c.path(filepath.Base(name) + "." + h.Name + ".log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.daemons = append(c.daemons, cmd)
}

const kubeconfigText = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://NET1:6443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: token}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
`

// startControl starts etcd, the API server, the scheduler and the controllers. Their data is removed when the test
// ends.
func (c *cluster) startControl() {
	c.t.Helper()
	key := c.serviceAccountKey()
	tokens := clitest.Write(c.t, c.path("tokens.csv"), "token,admin,admin,system:masters\n", 0o600)
	c.daemon(c.control, "etcd", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--listen-client-urls=http://127.0.0.1:2379",
		"--advertise-client-urls=http://127.0.0.1:2379", "--listen-peer-urls=http://127.0.0.1:2380")
	c.daemon(c.control, "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443", "--advertise-address="+network+"1",
		"--cert-dir="+c.path("certs"), "--service-account-issuer=https://control:6443", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--authorization-mode=Node,RBAC", "--token-auth-file="+tokens,
		"--service-cluster-ip-range=10.97.0.0/24", "--disable-admission-plugins=ServiceAccount", "--kubelet-preferred-address-types=InternalIP")
	clitest.WaitUntil(c.t, "the API server is ready", func() bool {
		o := clitest.RunCommand(c.t, c.command("kubectl", "get", "--raw", "/readyz"))
		return o.Out == "ok"
	})
	c.daemon(c.control, "kube-scheduler", "--kubeconfig="+c.path("kubeconfig"), "--leader-elect=false", "--secure-port=0")
	c.daemon(c.control, "kube-controller-manager", "--kubeconfig="+c.path("kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=false", "--service-account-private-key-file="+key, "--controllers=*,-nodeipam,-cloud-node-lifecycle")
}

// serviceAccountKey makes the key with which the API server signs tokens.
func (c *cluster) serviceAccountKey() string {
	c.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		c.t.Fatal(err)
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}

	return clitest.Write(c.t, c.path("key.pem"), string(pem.EncodeToMemory(&block)), 0o600)
}

// startNode starts containerd and a kubelet. The kubelet changes three kernel settings. It sees a private /proc, so
// that the machine keeps its settings.
func (c *cluster) startNode(i int) {
	c.t.Helper()
	host := c.nodes[i]
	fill := strings.NewReplacer("DIR", c.path(host.Name), "SOCKET", c.socket(i), "PAUSE", pause, "SUBNET", fmt.Sprintf("10.96.%d.0/24", i+1), "GROUP", c.group(i))
	for name, text := range map[string]string{
		"containerd.toml": containerdConfig, "kubelet.yaml": kubeletConfig, "cni/bridge.conflist": cniConfig, "panic": "10\n", "oops": "1\n", "over": "1\n",
	} {
		path := filepath.Join(c.path(host.Name), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		clitest.Write(c.t, path, fill.Replace(text), 0o644)
	}
	c.do(host, `for dir in /run /var/lib /var/log; do mount -t tmpfs tmpfs $dir; done
		mount --bind "$1/volume" /srv; cd "$1/$(hostname)"
		mount --bind panic /proc/sys/kernel/panic; mount --bind oops /proc/sys/kernel/panic_on_oops; mount --bind over /proc/sys/vm/overcommit_memory`)
	c.makeGroups(i)

	c.daemon(host, "containerd", "--config", filepath.Join(c.path(host.Name), "containerd.toml"))
	clitest.WaitUntil(c.t, "containerd answers", func() bool { return clitest.Exists(c.socket(i)) })
	c.daemon(host, "kubelet", "--config="+filepath.Join(c.path(host.Name), "kubelet.yaml"), "--kubeconfig="+c.path("kubeconfig"),
		"--root-dir="+filepath.Join(c.path(host.Name), "kubelet"), "--cert-dir="+filepath.Join(c.path(host.Name), "certs"), "--node-ip="+host.Address)
}

func (c *cluster) socket(node int) string { return c.path(c.nodes[node].Name + ".sock") }

// group returns the control group of all Pods of a node.
func (c *cluster) group(node int) string {
	return fmt.Sprintf("/perfagent-kube-%d-%s", os.Getpid(), c.nodes[node].Name)
}

const containerdConfig = `version = 2
root = "DIR/root"
state = "DIR/state"
[grpc]
address = "SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "PAUSE"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "DIR/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
`

const cniConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false,
	"ipam": {"type": "host-local", "ranges": [[{"subnet": "SUBNET"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: GROUP
containerRuntimeEndpoint: unix://SOCKET
enforceNodeAllocatable: []
evictionHard: {memory.available: 1Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
nodeStatusUpdateFrequency: 2s
readOnlyPort: 0
resolvConf: ""
syncFrequency: 1s
`

// makeGroups creates the control group of a node in each hierarchy.
func (c *cluster) makeGroups(node int) {
	c.t.Helper()
	tops, _ := filepath.Glob("/sys/fs/cgroup/*")
	for _, top := range tops {
		if !clitest.Exists(filepath.Join(top, "cgroup.procs")) {
			continue
		}
		dir := top + c.group(node)
		if err := os.Mkdir(dir, 0o755); err != nil && !clitest.Exists(dir) { // two names may refer to one hierarchy
			c.t.Fatal(err)
		}
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if clitest.Exists(filepath.Join(top, name)) {
				clitest.Write(c.t, filepath.Join(dir, name), clitest.Read(c.t, filepath.Join(top, name)), 0)
			}
		}
	}
}

// waitReady waits until both nodes accept Pods.
func (c *cluster) waitReady() {
	c.t.Helper()
	clitest.WaitUntil(c.t, "two nodes are there", func() bool {
		return clitest.RunCommand(c.t, c.command("kubectl", "get", "nodes", "-o", "name")).Out == "node/node1\nnode/node2\n"
	})
	clitest.RunCommand(c.t, c.command("kubectl", "wait", "nodes", "--all", "--for=condition=Ready", "--timeout=100s")).Want(c.t, 0)
}

// command prepares a program with the environment of an administrator, in the checkout.
func (c *cluster) command(name string, args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := c.control.Command(c.t, testenv.Repository(c.t, "."), name, args...)
	cmd.Env = append(cmd.Env, c.env...)

	return cmd
}

// stop ends the cluster with its containers, and removes the control groups. It does so even if the test has failed.
func (c *cluster) stop() {
	if c.t.Failed() {
		c.logTails()
	}
	for _, h := range append(c.nodes, c.control) {
		h.Kill(c.t)
	}
	for _, cmd := range c.daemons {
		clitest.Wait(c.t, cmd)
	}
	for i := range c.nodes {
		tops, _ := filepath.Glob("/sys/fs/cgroup/*" + c.group(i))
		for _, top := range tops {
			c.removeGroups(top)
		}
	}
}

// removeGroups kills all processes in the control groups below top, and removes the groups.
func (c *cluster) removeGroups(top string) {
	var dirs []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // a group with an error has just been removed
	})
	for _, dir := range slices.Backward(dirs) {
		clitest.WaitUntil(c.t, "removal of "+dir, func() bool {
			data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for word := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
			return os.Remove(dir) == nil || !clitest.Exists(dir)
		})
	}
}

// logTails logs the ends of the daemons' logs, and the state of the cluster.
func (c *cluster) logTails() {
	paths, _ := filepath.Glob(c.path("*.log"))
	for _, path := range paths {
		data, _ := os.ReadFile(path)
		c.t.Logf("%s:\n%s", filepath.Base(path), data[max(0, len(data)-2500):])
	}
}
