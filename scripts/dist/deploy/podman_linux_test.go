package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// podman plays Pods in a store of its own.
type podman struct {
	t   *testing.T
	dir string
	env []string
}

// newPodman makes the store with one image, in which are perfagent and a shell, under the names of the manifests.
func newPodman(t *testing.T) *podman {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("containers with limits need root: run the tests as root")
	}
	for _, tool := range []string{"podman", "runc", "busybox", "catatonit"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: apt-get install podman runc busybox-static catatonit (make test does it as root)", tool)
		}
	}
	dir, err := os.MkdirTemp("", "perfagent-deploy-") // overlay's paths are bounded
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

// script runs a script in the store's folder, where $0 is the checkout.
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

// run runs podman and returns what it prints.
func (p *podman) run(args ...string) (string, error) {
	cmd := exec.Command("podman", args...)
	cmd.Env = p.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()

	return out.String(), err
}

// remove ends what is left, and removes the store.
func (p *podman) remove() {
	_, _ = p.run("pod", "rm", "-fa", "-t", "0")
	_ = syscall.Unmount(p.dir+"/graph/overlay", syscall.MNT_DETACH)
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Error(err)
	}
}

// play plays a Pod whose reports come into a folder of this machine. podman neither makes volumes writable for a group
// nor knows the fields that Kubernetes fills in, so that the run has a name of its own.
func (p *podman) play(name string, spec core.PodSpec) (reports string) {
	p.t.Helper()
	reports = filepath.Join(p.dir, "reports")
	if err := os.Mkdir(reports, 0o777); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(reports, 0o777); err != nil {
		p.t.Fatal(err)
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == "reports" {
			spec.Volumes[i].VolumeSource = core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: reports}}
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.Image, c.ImagePullPolicy, c.Ports = "localhost/perfagent:test", core.PullNever, nil // there is no network
		for j := range c.Env {
			if c.Env[j].ValueFrom != nil {
				c.Env[j] = core.EnvVar{Name: c.Env[j].Name, Value: "played"}
			}
		}
	}

	pod := core.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta.ObjectMeta{Name: name}, Spec: spec}
	data, err := yaml.Marshal(pod)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("pod.yaml", string(data))
	if out, err := p.run("play", "kube", "--network=none", filepath.Join(p.dir, "pod.yaml")); err != nil {
		p.t.Fatalf("podman play kube: %s", out)
	}

	return reports
}

// report waits for a report that is complete.
func (p *podman) report(path string) string {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(data), `"incomplete"`) {
			return string(data)
		}
	}
	logs, _ := p.run("ps", "-a")
	p.t.Fatalf("there is no report %s\n%s", path, logs)

	return ""
}

// The Job that is wrapped has its report, with the limit of its container.
func TestKubernetes_PodmanPlaysTheJob(t *testing.T) {
	p := newPodman(t)
	reports := p.play("wrapped", pods(t)["job.yaml"])
	report := p.report(filepath.Join(reports, "played", "node-0.json"))
	if !strings.Contains(report, `"exit_code": 0`) || !strings.Contains(report, `"memory_mb": 256`) {
		t.Errorf("the report is %.3000s", report)
	}
}

// The sidecar of a Job writes its report when it gets TERM after the job, as an ordinary user with a read-only image.
// podman does not know native sidecars: here it is one more container.
func TestKubernetes_PodmanPlaysTheSidecar(t *testing.T) {
	p := newPodman(t)
	spec := pods(t)["sidecar.yaml"]
	sidecar := spec.InitContainers[0]
	sidecar.RestartPolicy = nil
	spec.InitContainers, spec.Containers = nil, append(spec.Containers, sidecar)
	reports := p.play("beside", spec)

	if out, err := p.run("wait", "beside-job"); err != nil {
		t.Fatal(out)
	}
	if out, err := p.run("stop", "-t", "10", "beside-perfagent"); err != nil {
		t.Fatal(out)
	}
	p.report(filepath.Join(reports, "played", "node-0.json"))
	if out, err := p.run("logs", "beside-perfagent"); err != nil || !strings.Contains(out, "report") {
		t.Errorf("the log of the sidecar has no summary: %s", out)
	}
}

// On a node it reads the node's files as a user without rights, and Prometheus finds it.
func TestKubernetes_PodmanPlaysTheDaemon(t *testing.T) {
	p := newPodman(t)
	p.play("daemon", pods(t)["daemonset.yaml"])

	var out string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		out, _ = p.run("exec", "daemon-perfagent", "/bin/busybox", "wget", "-qO-", "http://127.0.0.1:9123/metrics")
		if strings.Contains(out, "\nperfagent_cpu_busy_ratio{") && strings.Contains(out, "\nperfagent_network_receive_bytes_total{") {
			return
		}
	}
	logs, _ := p.run("logs", "daemon-perfagent")
	t.Errorf("the metrics are %.2000s\n%s", out, logs)
}
