//go:build e2e

package kubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/hosttest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// On a real cluster with two nodes, all manifests in deploy/kubernetes work when they are applied together.
func TestKubernetes(t *testing.T) {
	c := start(t)
	c.volume()

	restricted(t, c)
	applied := c.run(t, "kubectl apply -k deploy/kubernetes")
	for _, args := range [][]string{
		{"wait", "--for=condition=complete", "job/perfagent-wrapped", "job/perfagent-indexed", "--timeout=110s"},
		{"wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/perfagent-sidecar", "--timeout=110s"},
		{"rollout", "status", "daemonset/perfagent", "--timeout=110s"},
	} {
		o := clitest.RunCommand(t, c.command("kubectl", args...))
		if o.Code != 0 {
			t.Fatalf("kubectl apply: exit code %d, want 0: %s%s%s",
				o.Code, o.Err, o.Out, clitest.RunCommand(t, c.command("kubectl", "describe", "pods")).Out)
		}
	}

	t.Run("job.yaml", func(t *testing.T) { wrapped(t, c) })
	t.Run("indexed-job.yaml", func(t *testing.T) { indexed(t, c, applied) })
	t.Run("pod-sidecar.yaml", func(t *testing.T) { sidecar(t, c) })
	t.Run("daemonset.yaml", func(t *testing.T) { daemons(t, c) })
	t.Run("out of memory", func(t *testing.T) { hungry(t, c) })
	t.Run("failed Pod", func(t *testing.T) { failing(t, c) })
	t.Run("lost node", func(t *testing.T) { lost(t, c) })
}

// restricted checks that the Kubernetes profile "restricted" rejects only the host directories of the DaemonSet.
func restricted(t *testing.T, c *cluster) {
	t.Helper()
	label := "pod-security.kubernetes.io/warn"
	clitest.RunCommand(t, c.command("kubectl", "label", "namespace", "default", label+"=restricted")).Want(t, 0)
	o := clitest.RunCommand(t, c.command("kubectl", "apply", "--dry-run=server", "-k", "deploy/kubernetes"))
	o.Want(t, 0)
	if strings.Count(o.Err, "Warning:") != 1 || strings.Count(o.Err, "(") != 1 ||
		!strings.Contains(o.Err, `(volumes "proc", "sys" use restricted volume type "hostPath")`) {
		t.Errorf("warnings %s, want only one about the host paths proc and sys", o.Err)
	}
	clitest.RunCommand(t, c.command("kubectl", "label", "namespace", "default", label+"-")).Want(t, 0)
}

// volume creates the volume that indexed-job.yaml claims.
func (c *cluster) volume() {
	c.t.Helper()
	path := clitest.Write(c.t, c.path("volume.yaml"), `apiVersion: v1
kind: PersistentVolume
metadata: {name: reports}
spec: {accessModes: [ReadWriteMany], capacity: {storage: 1Gi}, hostPath: {path: /srv}}
`, 0o600)
	clitest.RunCommand(c.t, c.command("kubectl", "apply", "-f", path)).Want(c.t, 0)
}

// apply applies a variant of a manifest.
func (c *cluster) apply(t *testing.T, file, name string) {
	t.Helper()
	path := clitest.Write(t, c.path(name+".yaml"), variant(t, file, name), 0o600)
	clitest.RunCommand(t, c.command("kubectl", "apply", "-f", path)).Want(t, 0)
}

// log returns the log of a container.
func (c *cluster) log(t *testing.T, args ...string) string {
	t.Helper()
	o := clitest.RunCommand(t, c.command("kubectl", append([]string{"logs"}, args...)...))
	o.Want(t, 0)
	return o.Out + o.Err
}

// wrapped checks that the summary has the limit of the container, and names Kubernetes.
func wrapped(t *testing.T, c *cluster) {
	text := c.log(t, "job/perfagent-wrapped", "-c", "job")
	for _, want := range []string{"Succeeded after ", "256 MiB", "/reports/perfagent-wrapped/node-0.json"} {
		if !strings.Contains(text, want) {
			t.Errorf("log lacks %q:\n%s", want, text)
		}
	}
}

// indexed checks that two Pods are one run of two nodes, with the names of the cluster's nodes.
func indexed(t *testing.T, c *cluster, applied string) {
	names := make(map[string]bool)
	for i := range 2 {
		r, id := c.report(t, "perfagent-indexed", i)
		if r.Run.ID != "perfagent-indexed" || id.NodeFrom != "JOB_COMPLETION_INDEX" || id.Scheduler != "Kubernetes" {
			t.Errorf("run %s, identity %+v; want perfagent-indexed, and the node from JOB_COMPLETION_INDEX of Kubernetes",
				r.Run.ID, id)
		}
		names[id.NodeName] = true
	}
	if !names["node1"] || !names["node2"] {
		t.Errorf("nodes %v, want node1 and node2", names)
	}

	text := c.run(t, "kubectl get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,STATUS:.status.phase") +
		c.run(t, "perfagent ls --out /srv")
	keep(t, "kubernetes", applied+text)
	if !strings.Contains(text, "\nperfagent-indexed ") || strings.Count(text, "\nperfagent-indexed-") != 2 {
		t.Errorf("transcript lacks the Job or its two Pods: %s", text)
	}
}

// report returns the report of a node in the volume, and the identity in the report.
func (c *cluster) report(t *testing.T, run string, node int) (reporter.Report, reporter.Identity) {
	t.Helper()
	index := strconv.Itoa(node)

	return readReport(t, filepath.Join(c.path("volume"), run, "node-"+index+".json"), index)
}

func readReport(t *testing.T, path, index string) (r reporter.Report, id reporter.Identity) {
	t.Helper()
	if err := json.Unmarshal([]byte(clitest.Read(t, path)), &r); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if i := r.Nodes[index].Identity; i != nil {
		id = *i
	}

	return r, id
}

// sidecar checks that the sidecar writes its report on SIGTERM, and ends after the job.
func sidecar(t *testing.T, c *cluster) {
	if text := c.log(t, "perfagent-sidecar", "-c", "perfagent"); !strings.Contains(text, "/reports/perfagent-sidecar/node-0.") {
		t.Errorf("log of the sidecar lacks the path of its report: %s", text)
	}
	o := clitest.RunCommand(t, c.command("kubectl", "get", "pod", "perfagent-sidecar", "-o", "json"))
	o.Want(t, 0)
	type statuses []struct {
		State struct {
			Terminated struct {
				ExitCode              int
				StartedAt, FinishedAt time.Time
			}
		}
	}
	var pod struct {
		Status struct{ InitContainerStatuses, ContainerStatuses statuses }
	}
	if err := json.Unmarshal([]byte(o.Out), &pod); err != nil || len(pod.Status.InitContainerStatuses) != 1 || len(pod.Status.ContainerStatuses) != 1 {
		t.Fatalf("pod %+v (%v), want one init container and one container", pod, err)
	}
	beside, job := pod.Status.InitContainerStatuses[0].State.Terminated, pod.Status.ContainerStatuses[0].State.Terminated
	if beside.ExitCode != 0 || beside.StartedAt.After(job.StartedAt) || beside.FinishedAt.Before(job.FinishedAt) {
		t.Errorf("sidecar %+v, want exit code 0, a start before and an end after those of the job, %+v", beside, job)
	}
}

// daemons checks that the DaemonSet on each node responds to Prometheus. Its report must have the name of the node, and
// the network traffic of the node. The traffic of its Pod would be only a few probes.
func daemons(t *testing.T, c *cluster) {
	o := clitest.RunCommand(t, c.command("kubectl", "get", "pods", "-l", "app.kubernetes.io/name=perfagent",
		"-o", `jsonpath={range .items[*]}{.spec.nodeName} {.status.podIP}{"\n"}{end}`))
	o.Want(t, 0)
	lines := strings.Split(strings.TrimSpace(o.Out), "\n")
	if len(lines) != len(c.nodes) {
		t.Fatalf("%d Pods of the DaemonSet, want %d: %q", len(lines), len(c.nodes), lines)
	}
	for _, line := range lines {
		name, address, _ := strings.Cut(line, " ")
		r, id := c.daemonReport(t, name) // when the report exists, so do the metrics
		if network := r.Nodes["0"].Metrics["boot_total_net_io_ext_recv_mb"]; id.NodeName != name || network < 0.05 {
			t.Errorf("report of %s: node %q, %v MiB received since boot; want the same node, at least 0.05 MiB",
				name, id.NodeName, network)
		}

		o := clitest.RunCommand(t, c.host(t, name).Command(t, c.dir, "busybox", "wget", "-qO-", "http://"+address+":9123/metrics"))
		if o.Code != 0 || !strings.Contains(o.Out, "\nperfagent_cpu_busy_ratio{") || !strings.Contains(o.Out, "\nperfagent_network_receive_bytes_total{") {
			t.Errorf("metrics of Pod %s lack the CPU or the network:\n%.1000s%s", line, o.Out, o.Err)
		}
	}
}

// daemonReport waits for the report of the DaemonSet on a node, in a volume of the kubelet.
func (c *cluster) daemonReport(t *testing.T, node string) (r reporter.Report, id reporter.Identity) {
	t.Helper()
	pattern := filepath.Join(c.path(node), "kubelet/pods/*/volumes/kubernetes.io~empty-dir/reports/2*/node-0.json")
	clitest.WaitUntil(t, "a report of the DaemonSet on "+node, func() bool {
		paths, _ := filepath.Glob(pattern)
		if len(paths) == 1 {
			r, id = readReport(t, paths[0], "0")
		}
		return len(paths) == 1
	})

	return r, id
}

// hungry checks job.yaml with a command that exceeds the memory limit: the report must agree with Kubernetes.
func hungry(t *testing.T, c *cluster) {
	c.apply(t, "job.yaml", "hungry")
	clitest.RunCommand(t, c.command("kubectl", "wait", "--for=condition=failed", "job/hungry", "--timeout=110s")).Want(t, 0)

	said := c.run(t, "kubectl get pods -l job-name=hungry") + c.run(t, "kubectl logs job/hungry -c job | head -n 3")
	keep(t, "kubernetes-oom", said)
	wantWords(t, said, " OOMKilled ", "Out of memory: ", "at the limit of 256 MiB")
}

// failing checks a Job with two Pods. One fails, and Kubernetes ends the other. The job in the other Pod must get
// SIGTERM, and its report must be complete.
func failing(t *testing.T, c *cluster) {
	c.apply(t, "indexed-job.yaml", "failing")
	clitest.RunCommand(t, c.command("kubectl", "wait", "--for=condition=failed", "job/failing", "--timeout=110s")).Want(t, 0)
	clitest.WaitUntil(t, "the Pod that Kubernetes ended is deleted", func() bool {
		o := clitest.RunCommand(t, c.command("kubectl", "get", "pods", "-l", "job-name=failing", "-o", "name"))
		return o.Code == 0 && strings.Count(o.Out, "\n") == 1
	})

	said := c.run(t, "kubectl get pods -l job-name=failing -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,"+
		"EXIT:.status.containerStatuses[0].state.terminated.exitCode") + c.run(t, "perfagent show --out /srv failing | head -n 3")
	_, first := c.report(t, "failing", 1)
	wantWords(t, said, " "+first.NodeName+" 7", "Node 1 failed (exit 7)")
	if r, _ := c.report(t, "failing", 0); r.Run.ExitCode == nil || *r.Run.ExitCode != 143 || r.Run.Incomplete != "" {
		t.Errorf("run of the Pod that Kubernetes ended: %+v, want a complete run with exit code 143", r.Run)
	}
}

// lost checks that, after a power failure of a node, its recording is in the volume and the report of the other node is
// complete.
func lost(t *testing.T, c *cluster) {
	c.apply(t, "indexed-job.yaml", "lost")
	journal := filepath.Join(c.path("volume"), "lost", "node-1.jsonl")
	clitest.WaitUntil(t, "three samples of the node that will be lost", func() bool {
		data, _ := os.ReadFile(journal)
		return strings.Count(string(data), "\n") >= 5
	})
	o := clitest.RunCommand(t, c.command("kubectl", "get", "pods", "-l", "batch.kubernetes.io/job-completion-index=1,job-name=lost",
		"-o", "jsonpath={.items[0].spec.nodeName}"))
	o.Want(t, 0)
	c.host(t, o.Out).PowerOff(t)
	clitest.Write(t, filepath.Join(c.path("volume"), "powerless"), "", 0o644)
	clitest.RunCommand(t, c.command("kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod",
		"-l", "batch.kubernetes.io/job-completion-index=0,job-name=lost", "--timeout=110s")).Want(t, 0)

	said := c.run(t, "perfagent ls --out /srv | head -n 2") + c.run(t, "perfagent show --out /srv lost")
	wantWords(t, said, "on node 1: the job's end is not known")
	if !regexp.MustCompile(`:\d\d +lost +[0-9.]+s +2 `).MatchString(said) {
		t.Errorf("ls lacks a lost run of 2 nodes: %s", said)
	}
	if r, _ := c.report(t, "lost", 0); r.Run.ExitCode == nil || *r.Run.ExitCode != 0 || r.Run.Incomplete != "" {
		t.Errorf("run of the remaining node: %+v, want a complete run with exit code 0", r.Run)
	}
}

// host returns the node with the given name.
func (c *cluster) host(t *testing.T, name string) *hosttest.Host {
	t.Helper()
	for _, h := range c.nodes {
		if h.Name == name {
			return h
		}
	}
	t.Fatalf("cluster has no node %q", name)

	return nil
}

// wantWords checks that text contains all words. It treats line ends as spaces.
func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	folded := strings.Join(strings.Fields(text), " ")
	for _, want := range words {
		if !strings.Contains(folded, want) {
			t.Errorf("text lacks %q:\n%s", want, text)
		}
	}
}

// run runs a command line, and returns the command line with its output, as in a terminal.
func (c *cluster) run(t *testing.T, command string) string {
	t.Helper()
	o := clitest.RunCommand(t, c.command("sh", "-c", command))
	o.Want(t, 0)
	return "$ " + command + "\n" + o.Out
}

// keep writes a transcript into docs/kubernetes.md.
func keep(t *testing.T, name, text string) {
	t.Helper()
	file := testenv.Repository(t, kubernetesDoc)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(clitest.Read(t, file), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no markers for %s", kubernetesDoc, name)
	}
	clitest.Write(t, file, before+begin+"```console\n"+text+"```\n"+end+after, 0o644)
}
