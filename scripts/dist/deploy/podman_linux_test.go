package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// podman runs Pods in a separate store of podman.
type podman struct {
	t   *testing.T
	dir string
	env []string
}

// The Containerfile builds an image with the program. No registry is reachable in the test, so the build begins with an
// empty image that has this machine's Go, instead of the image golang.
func TestContainerfile_BuildsImage(t *testing.T) {
	p := newPodman(t)
	p.script(`at() { go env "$1"; }
		mkdir -p builder/tmp && tar -C builder -cf builder.tar . && podman import -q -c "ENV PATH=$(at GOROOT)/bin:/usr/bin:/bin" \
			-c "ENV GOMODCACHE=$(at GOMODCACHE)" -c "ENV GOCACHE=$(at GOCACHE)" builder.tar localhost/golang:test >/dev/null
		for dir in /usr /bin /lib /lib64 "$(at GOROOT)" "$(at GOMODCACHE)" "$(at GOCACHE)"; do set -- "$@" --volume="$dir:$dir"; done
		podman build -q --network=none --from=localhost/golang:test "$@" -f "$0/deploy/Containerfile" -t localhost/perfagent:built "$0"`)
	if out, err := p.run("run", "--rm", "--network=none", "localhost/perfagent:built", "version"); err != nil || !strings.HasPrefix(out, "perfagent ") {
		t.Errorf("perfagent version in the image: error %v, output:\n%s", err, out)
	}
}

// newPodman creates a store with one image, which contains perfagent and a shell. The image has all names that the
// manifests use.
func newPodman(t *testing.T) *podman {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("containers with limits need root: run the tests as root")
	}
	for _, tool := range []string{"podman", "runc", "busybox", "catatonit"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: apt-get install podman runc busybox-static catatonit (make e2e does it as root)", tool)
		}
	}
	dir, err := os.MkdirTemp("", "perfagent-deploy-") // a short path, because the length of overlay paths is limited
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{t: t, dir: dir}
	p.write("containers.conf", "[containers]\ndefault_ulimits = [\"nofile=20000:20000\", \"nproc=10000:10000\"]\n"+
		"[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n")
	p.write("storage.conf", fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", dir+"/graph", dir+"/run"))
	p.env = append(os.Environ(), "CONTAINERS_CONF="+dir+"/containers.conf", "CONTAINERS_STORAGE_CONF="+dir+"/storage.conf", "TMPDIR="+dir)
	t.Cleanup(p.remove)

	p.script(`mkdir -p root/bin && cp "$(command -v busybox)" root/bin/busybox && ln -s busybox root/bin/sh && ln -s busybox root/bin/sleep &&
		VCS=false sh "$0/scripts/build.sh" "$PWD/root/perfagent" && ln -s ../perfagent root/bin/perfagent && tar -C root -cf image.tar . &&
		podman import -q -c 'ENV PATH=/bin' -c 'ENTRYPOINT ["/perfagent"]' image.tar localhost/perfagent:test >/dev/null`)

	return p
}

func (p *podman) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// script runs a shell script in the folder of the store, with the path of the checkout as $0.
func (p *podman) script(text string) {
	p.t.Helper()
	root, err := filepath.Abs(checkout)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command("sh", "-ec", text, root)
	cmd.Dir, cmd.Env = p.dir, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}

// run runs podman in the folder of the store and returns its output. When a container runs out of memory, conmon leaves
// a file in the working directory.
func (p *podman) run(args ...string) (string, error) {
	cmd := exec.Command("podman", args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()

	return out.String(), err
}

// remove ends remaining containers, and removes the store.
func (p *podman) remove() {
	_, _ = p.run("pod", "rm", "-fa", "-t", "0")
	_ = syscall.Unmount(p.dir+"/graph/overlay", syscall.MNT_DETACH)
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Error(err)
	}
}

// folder creates a folder on this machine to which containers may write.
func (p *podman) folder(name string) string {
	p.t.Helper()
	dir := filepath.Join(p.dir, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		p.t.Fatal(err)
	}

	return dir
}

// play starts a Pod. It returns the folder on this machine with the reports of all Pods. It replaces volumes with
// folders, because podman neither has claims nor makes volumes writable for a group. It also replaces node names, which
// podman lacks.
func (p *podman) play(about meta.ObjectMeta, spec core.PodSpec) (reports string) {
	p.t.Helper()
	reports = p.folder("reports")
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		switch {
		case v.Name == "reports":
			v.VolumeSource = core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: reports}}
		case v.EmptyDir != nil:
			v.VolumeSource = core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: p.folder(about.Name + "-" + v.Name)}}
		}
	}
	for _, containers := range [][]core.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Image, c.ImagePullPolicy, c.Ports = "localhost/perfagent:test", core.PullNever, nil // without a network
			for j := range c.Env {
				if from := c.Env[j].ValueFrom; from != nil && from.FieldRef.FieldPath == "spec.nodeName" {
					c.Env[j] = core.EnvVar{Name: c.Env[j].Name, Value: "node1"}
				}
			}
		}
	}

	data, err := yaml.Marshal(core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: about, Spec: spec})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(about.Name+".yaml", string(data))
	if out, err := p.run("play", "kube", "--network=none", filepath.Join(p.dir, about.Name+".yaml")); err != nil {
		p.t.Fatalf("podman play kube: %s", out)
	}

	return reports
}

// jobPod returns the name and the labels that the Job controller would give to a Pod.
func jobPod(job, suffix string) meta.ObjectMeta {
	return meta.ObjectMeta{Name: job + suffix, Labels: map[string]string{"batch.kubernetes.io/job-name": job}}
}

// A report is the part of a report that these tests use.
type report struct {
	Run struct {
		ID         string
		ExitCode   int `json:"exit_code"`
		Incomplete bool
	}
	Nodes map[string]struct {
		Identity struct {
			Scheduler string
			JobID     string `json:"job_id"`
			NodeFrom  string `json:"node_from"`
		}
		Limits struct {
			MemoryMB float64 `json:"memory_mb"`
		}
		Verdict struct{ Cause, Text string }
	}
}

// report waits for a complete report.
func (p *podman) report(path string) report {
	p.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var r report
		if err := json.Unmarshal(data, &r); err != nil {
			p.t.Fatal(err)
		}
		if !r.Run.Incomplete {
			return r
		}
	}
	logs, _ := p.run("ps", "-a")
	p.t.Fatalf("report %s does not exist; containers:\n%s", path, logs)

	return report{}
}

// The wrapped Job has a report with the limit of its container.
func TestKubernetes_PodmanRunsJob(t *testing.T) {
	p := newPodman(t)
	reports := p.play(jobPod("wrapped", "-x7k2p"), pods(t)["job.yaml"])
	r := p.report(filepath.Join(reports, "wrapped", "node-0.json"))
	if r.Run.ExitCode != 0 || r.Nodes["0"].Limits.MemoryMB != 256 {
		t.Errorf("report = %+v, want exit code 0 and a limit of 256 MiB", r)
	}
}

// The kernel kills a Job that exceeds its memory limit. The report has this cause, and the container's exit code is
// 137.
func TestKubernetes_PodmanRunsJobOutOfMemory(t *testing.T) {
	p := newPodman(t)
	var run string
	for try := 1; ; try++ {
		spec := pods(t)["job.yaml"]
		spec.Containers[0].Args = []string{"busybox", "dd", "if=/dev/zero", "of=/dev/null", "bs=300M", "count=1"}
		name := "hungry-" + strconv.Itoa(try)
		run = filepath.Join(p.play(jobPod(name, "-q9wzt"), spec), name)
		if out, err := p.run("wait", name+"-q9wzt-job"); err != nil || strings.TrimSpace(out) != "137" {
			t.Errorf("exit code of the container = %s (error %v), want 137", out, err)
		}
		// On a busy machine, the kernel may kill perfagent, too, which then leaves a journal.
		if journals, _ := filepath.Glob(run + "/*.jsonl"); journals == nil || try == 5 {
			break
		}
	}
	r := p.report(filepath.Join(run, "node-0.json"))
	if v := r.Nodes["0"].Verdict; r.Run.ExitCode != 137 || v.Cause != "oom_cgroup" {
		t.Errorf("report = %+v, want exit code 137 and the cause oom_cgroup", r)
	}
}

// The two Pods of an Indexed Job are one run with two nodes, without settings in the manifest.
func TestKubernetes_PodmanRunsIndexedJob(t *testing.T) {
	p := newPodman(t)
	var reports string
	for _, index := range []string{"0", "1"} {
		spec := pods(t)["indexed-job.yaml"]
		spec.Hostname = "sweep-" + index // the name that the controller would set
		job := &spec.Containers[0]
		job.Env = append(job.Env, core.EnvVar{Name: "JOB_COMPLETION_INDEX", Value: index})
		reports = p.play(jobPod("sweep", "-"+index+"-b4n8c"), spec)
	}

	for _, index := range []string{"0", "1"} {
		r := p.report(filepath.Join(reports, "sweep", "node-"+index+".json"))
		id := r.Nodes[index].Identity
		if r.Run.ID != "sweep" || id.JobID != "sweep" || id.Scheduler != "Kubernetes" || id.NodeFrom != "JOB_COMPLETION_INDEX" {
			t.Errorf("report of node %s = %+v, want run and job sweep of Kubernetes, node from JOB_COMPLETION_INDEX", index, r)
		}
	}
}

// The sidecar of a Pod writes its report when it receives SIGTERM after the end of the job. It runs as an unprivileged
// user with a read-only image. podman does not support native sidecars, so the sidecar is an ordinary container in this
// test.
func TestKubernetes_PodmanRunsSidecar(t *testing.T) {
	p := newPodman(t)
	spec := pods(t)["pod-sidecar.yaml"]
	sidecar := spec.InitContainers[0]
	sidecar.RestartPolicy = nil
	spec.InitContainers, spec.Containers = nil, append(spec.Containers, sidecar)
	reports := p.play(meta.ObjectMeta{Name: "beside"}, spec)

	if out, err := p.run("wait", "beside-job"); err != nil {
		t.Fatal(out)
	}
	if out, err := p.run("stop", "-t", "120", "beside-perfagent"); err != nil {
		t.Fatal(out)
	}
	p.report(filepath.Join(reports, "beside", "node-0.json"))
	if out, err := p.run("logs", "beside-perfagent"); err != nil || !strings.Contains(out, "report") {
		t.Errorf("log of the sidecar lacks the summary: %s", out)
	}
}

// The DaemonSet reads the node's files as an unprivileged user, and serves metrics to Prometheus.
func TestKubernetes_PodmanRunsDaemonSet(t *testing.T) {
	p := newPodman(t)
	p.play(meta.ObjectMeta{Name: "daemon"}, pods(t)["daemonset.yaml"])

	var out string
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		out, _ = p.run("exec", "daemon-perfagent", "/bin/busybox", "wget", "-qO-", "http://127.0.0.1:9123/metrics")
		if strings.Contains(out, "\nperfagent_cpu_busy_ratio{") && strings.Contains(out, "\nperfagent_network_receive_bytes_total{") {
			return
		}
	}
	logs, _ := p.run("logs", "daemon-perfagent")
	t.Errorf("metrics lack the CPU or the network: %.2000s\n%s", out, logs)
}
