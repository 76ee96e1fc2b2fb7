// Package deploy tests the folder deploy of the checkout, and action.yml, with libraries on which the program must not
// depend.
package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	checkout   = "../../.."
	kubernetes = checkout + "/deploy/kubernetes"
)

// manifests decodes the manifests in a file into Kubernetes types. Unknown fields are errors.
func manifests(t *testing.T, name string, into ...any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(kubernetes, name))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), "\n---\n")
	if len(parts) != len(into) {
		t.Fatalf("%s has %d manifests, want %d", name, len(parts), len(into))
	}
	for i, part := range parts {
		if err := yaml.UnmarshalStrict([]byte(part), into[i]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pods returns the specs of the Pods in all manifests, by file name.
func pods(t *testing.T) map[string]core.PodSpec {
	t.Helper()
	var job, indexed batch.Job
	var claim core.PersistentVolumeClaim
	var sidecar core.Pod
	var daemons apps.DaemonSet
	manifests(t, "job.yaml", &job)
	manifests(t, "indexed-job.yaml", &claim, &indexed)
	manifests(t, "pod-sidecar.yaml", &sidecar)
	manifests(t, "daemonset.yaml", &daemons)
	got := []string{job.Kind, claim.Kind, indexed.Kind, sidecar.Kind, daemons.Kind}
	if !slices.Equal(got, []string{"Job", "PersistentVolumeClaim", "Job", "Pod", "DaemonSet"}) {
		t.Errorf("kinds = %q, want two Jobs, a PersistentVolumeClaim, a Pod and a DaemonSet", got)
	}
	if m := indexed.Spec.CompletionMode; m == nil || *m != batch.IndexedCompletion || *indexed.Spec.Completions != 2 || *indexed.Spec.Parallelism != 2 {
		t.Errorf("spec in indexed-job.yaml = %+v, want an Indexed Job with two completions in parallel", indexed.Spec)
	}
	labels := daemons.Spec.Template.Labels
	for key, value := range daemons.Spec.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("daemonset.yaml selects %s=%s, but the labels of its Pods are %q", key, value, labels)
		}
	}

	return map[string]core.PodSpec{
		"job.yaml": job.Spec.Template.Spec, "indexed-job.yaml": indexed.Spec.Template.Spec, "pod-sidecar.yaml": sidecar.Spec,
		"daemonset.yaml": daemons.Spec.Template.Spec,
	}
}

// No Pod has more rights than a job. All Pods comply with the Kubernetes profile "restricted", except for the two
// directories of the node that the DaemonSet reads.
func TestKubernetes_PodsAreUnprivileged(t *testing.T) {
	for name, pod := range pods(t) {
		if c := pod.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil ||
			c.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: security context of the Pod = %+v, want a non-root user and the default seccomp profile", name, c)
		}
		if pod.HostPID || pod.HostNetwork || pod.HostIPC {
			t.Errorf("%s: Pod shares processes, the network or IPC with the node", name)
		}
		for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
			if s := c.SecurityContext; s == nil || s.Privileged != nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: security context of %s = %+v, want no privileges and no capabilities", name, c.Name, s)
			}
			if read := c.SecurityContext.ReadOnlyRootFilesystem; c.Image == "perfagent" && (read == nil || !*read) {
				t.Errorf("%s: root file system of %s is writable", name, c.Name)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: resources of %s = %+v, want requests for CPU and memory, and a memory limit", name, c.Name, c.Resources)
			}
			for _, m := range c.VolumeMounts {
				if isHostPath(pod, m.Name) && !m.ReadOnly {
					t.Errorf("%s: %s can write to the node's %s", name, c.Name, m.Name)
				}
			}
		}
		for _, v := range pod.Volumes {
			if v.HostPath != nil && (name != "daemonset.yaml" || v.HostPath.Path != "/proc" && v.HostPath.Path != "/sys") {
				t.Errorf("%s mounts the node's %s", name, v.HostPath.Path)
			}
		}
	}
}

func isHostPath(pod core.PodSpec, volume string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == volume && v.HostPath != nil })
}

// The sidecar is a native one: an init container that keeps running.
func TestKubernetes_SidecarIsNative(t *testing.T) {
	pod := pods(t)["pod-sidecar.yaml"]
	if len(pod.InitContainers) != 1 || pod.InitContainers[0].RestartPolicy == nil ||
		*pod.InitContainers[0].RestartPolicy != core.ContainerRestartPolicyAlways || pod.InitContainers[0].Image != "perfagent" {
		t.Errorf("init containers = %+v, want one perfagent that is always restarted", pod.InitContainers)
	}
}

// In the output of kustomize, the image is from the registry and has the version of this checkout. kustomization.yaml
// covers all images.
func TestKubernetes_KustomizeSetsImages(t *testing.T) {
	version, err := os.ReadFile(filepath.Join(checkout, "VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}

	var images []string
	for line := range strings.Lines(string(text)) {
		if _, image, found := strings.Cut(line, "image: "); found {
			images = append(images, strings.TrimSpace(image))
		}
	}
	slices.Sort(images)
	perfagent := "registry.example.com/perfagent:" + strings.TrimSpace(string(version))
	const job = "registry.example.com/job:v1"
	want := []string{job, job, job, perfagent, perfagent, perfagent, perfagent}
	if made.Size() != 5 || !slices.Equal(images, want) {
		t.Errorf("%d resources with the images %q, want 5 with %q", made.Size(), images, want)
	}
}
