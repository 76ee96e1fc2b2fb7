//go:build e2e

package kubernetes

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/need"
	"github.com/perfagent/perfagent/reporter"
)

// On a real cluster of two nodes, all of deploy/kubernetes works as it is applied at once.
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
		o := clitest.Perform(t, c.command("kubectl", args...))
		if o.Code != 0 {
			t.Fatalf("%s%s%s", o.Err, o.Out, clitest.Perform(t, c.command("kubectl", "describe", "pods")).Out)
		}
	}

	t.Run("job.yaml", func(t *testing.T) { wrapped(t, c) })
	t.Run("indexed-job.yaml", func(t *testing.T) { indexed(t, c, applied) })
	t.Run("pod-sidecar.yaml", func(t *testing.T) { sidecar(t, c) })
	t.Run("daemonset.yaml", func(t *testing.T) { daemons(t, c) })
	t.Run("out of memory", func(t *testing.T) { hungry(t, c) })
}

// restricted: Kubernetes itself says what its profile "restricted" would forbid, which are the DaemonSet's folders.
func restricted(t *testing.T, c *cluster) {
	t.Helper()
	label := "pod-security.kubernetes.io/warn"
	clitest.Perform(t, c.command("kubectl", "label", "namespace", "default", label+"=restricted")).Want(t, 0)
	o := clitest.Perform(t, c.command("kubectl", "apply", "--dry-run=server", "-k", "deploy/kubernetes"))
	o.Want(t, 0)
	if strings.Count(o.Err, "Warning:") != 1 || strings.Count(o.Err, "(") != 1 ||
		!strings.Contains(o.Err, `(volumes "proc", "sys" use restricted volume type "hostPath")`) {
		t.Errorf("it warns: %s", o.Err)
	}
	clitest.Perform(t, c.command("kubectl", "label", "namespace", "default", label+"-")).Want(t, 0)
}

// volume makes the volume that indexed-job.yaml claims.
func (c *cluster) volume() {
	c.t.Helper()
	path := clitest.Write(c.t, c.path("volume.yaml"), `apiVersion: v1
kind: PersistentVolume
metadata: {name: reports}
spec: {accessModes: [ReadWriteMany], capacity: {storage: 1Gi}, hostPath: {path: /srv}}
`, 0o600)
	clitest.Perform(c.t, c.command("kubectl", "apply", "-f", path)).Want(c.t, 0)
}

// log returns the log of a container.
func (c *cluster) log(t *testing.T, args ...string) string {
	t.Helper()
	o := clitest.Perform(t, c.command("kubectl", append([]string{"logs"}, args...)...))
	o.Want(t, 0)
	return o.Out + o.Err
}

// wrapped: the summary knows the limit of the container, and speaks of Kubernetes.
func wrapped(t *testing.T, c *cluster) {
	text := c.log(t, "job/perfagent-wrapped", "-c", "job")
	for _, want := range []string{"exit 0", "256 MiB", "/reports/perfagent-wrapped/node-0.json"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q:\n%s", want, text)
		}
	}
}

// indexed: two Pods are one run of two nodes, which have the names of the cluster's.
func indexed(t *testing.T, c *cluster, applied string) {
	names := make(map[string]bool)
	for i := range 2 {
		index := strconv.Itoa(i)
		var r reporter.Report
		if err := json.Unmarshal([]byte(clitest.Read(t, filepath.Join(c.path("volume"), "perfagent-indexed", "node-"+index+".json"))), &r); err != nil {
			t.Fatal(err)
		}
		id := r.Nodes[index].Identity
		if r.Run.ID != "perfagent-indexed" || id.NodeFrom != "JOB_COMPLETION_INDEX" {
			t.Errorf("run %s, %+v", r.Run.ID, id)
		}
		names[id.NodeName] = true
	}
	if !names["node1"] || !names["node2"] {
		t.Errorf("the nodes are %v", names)
	}

	text := c.run(t, "kubectl get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,STATUS:.status.phase") +
		c.run(t, "perfagent ls --out /srv") + c.run(t, "perfagent show --out /srv perfagent-indexed | head -n 12")
	keep(t, "kubernetes", applied+text)
	if !strings.Contains(text, "\nperfagent-indexed ") || strings.Count(text, "\nperfagent-indexed-") != 2 {
		t.Errorf("the transcript is %s", text)
	}
}

// sidecar: it ends after the job, by TERM, with a summary.
func sidecar(t *testing.T, c *cluster) {
	if text := c.log(t, "perfagent-sidecar", "-c", "perfagent"); !strings.Contains(text, "/reports/perfagent-sidecar/node-0.json") {
		t.Errorf("the sidecar's log is %s", text)
	}
	o := clitest.Perform(t, c.command("kubectl", "get", "pod", "perfagent-sidecar", "-o", "json"))
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
		t.Fatalf("%v, %+v", err, pod)
	}
	beside, job := pod.Status.InitContainerStatuses[0].State.Terminated, pod.Status.ContainerStatuses[0].State.Terminated
	if beside.ExitCode != 0 || beside.StartedAt.After(job.StartedAt) || beside.FinishedAt.Before(job.FinishedAt) {
		t.Errorf("the sidecar %+v, the job %+v", beside, job)
	}
}

// daemons: each node has one, which answers Prometheus and has named its node.
func daemons(t *testing.T, c *cluster) {
	o := clitest.Perform(t, c.command("kubectl", "get", "pods", "-l", "app.kubernetes.io/name=perfagent",
		"-o", `jsonpath={range .items[*]}{.spec.nodeName} {.status.podIP}{"\n"}{end}`))
	o.Want(t, 0)
	lines := strings.Split(strings.TrimSpace(o.Out), "\n")
	if len(lines) != len(c.nodes) {
		t.Fatalf("the DaemonSet's Pods are %q", lines)
	}
	for _, line := range lines {
		name, address, _ := strings.Cut(line, " ")
		host := c.nodes[0]
		if name == c.nodes[1].Name {
			host = c.nodes[1]
		}
		o := clitest.Perform(t, host.Command(t, c.dir, "busybox", "wget", "-qO-", "http://"+address+":9123/metrics"))
		if o.Code != 0 || !strings.Contains(o.Out, "\nperfagent_cpu_busy_ratio{") || !strings.Contains(o.Out, "\nperfagent_network_receive_bytes_total{") {
			t.Errorf("%s: %.1000s%s", line, o.Out, o.Err)
		}
	}
}

// hungry: job.yaml with a command that takes more memory than the limit. The report says what Kubernetes says.
func hungry(t *testing.T, c *cluster) {
	text := clitest.Read(t, need.Repository(t, "deploy/kubernetes/job.yaml"))
	for _, r := range []struct{ old, new string }{
		{"name: perfagent-wrapped", "name: hungry"}, {"image: perfagent", "image: " + images(t)[0].name}, {"image: job", "image: " + images(t)[1].name},
		{`args: [sh, -c, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 1"]`, "args: [dd, if=/dev/zero, of=/dev/null, bs=300M, count=1]"},
	} {
		if strings.Count(text, r.old) != 1 {
			t.Fatalf("job.yaml has not one %q", r.old)
		}
		text = strings.Replace(text, r.old, r.new, 1)
	}
	clitest.Perform(t, c.command("kubectl", "apply", "-f", clitest.Write(t, c.path("hungry.yaml"), text, 0o600))).Want(t, 0)
	clitest.Perform(t, c.command("kubectl", "wait", "--for=condition=failed", "job/hungry", "--timeout=110s")).Want(t, 0)

	said := c.run(t, "kubectl get pods -l job-name=hungry") + c.run(t, "kubectl logs job/hungry -c job | head -n 5")
	keep(t, "kubernetes-oom", said)
	for _, want := range []string{" OOMKilled ", "(exit 137)", "killed by the kernel: dd", "hit the memory limit of 256 MiB"} {
		if !strings.Contains(strings.Join(strings.Fields(said), " "), want) {
			t.Errorf("no %s in\n%s", want, said)
		}
	}
}

const clustersDoc = "docs/clusters.md"

// run runs a command as it is typed, and returns it with what it prints.
func (c *cluster) run(t *testing.T, command string) string {
	t.Helper()
	o := clitest.Perform(t, c.command("sh", "-c", command))
	o.Want(t, 0)
	return "$ " + command + "\n" + o.Out
}

// keep puts a transcript into docs/clusters.md.
func keep(t *testing.T, name, text string) {
	t.Helper()
	file := need.Repository(t, clustersDoc)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(clitest.Read(t, file), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part %s", clustersDoc, name)
	}
	clitest.Write(t, file, before+begin+"```console\n"+text+"```\n"+end+after, 0o644)
}
