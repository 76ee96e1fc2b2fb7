// Package deploy checks what lies in the folder deploy of the checkout, and action.yml, with libraries that the program
// must not depend on.
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

// manifest reads a manifest into a type of Kubernetes. A field that Kubernetes does not know is an error.
func manifest(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(kubernetes, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// pods are the Pods of all manifests, by the name of the file.
func pods(t *testing.T) map[string]core.PodSpec {
	t.Helper()
	var job, sidecar batch.Job
	var daemons apps.DaemonSet
	manifest(t, "job.yaml", &job)
	manifest(t, "sidecar.yaml", &sidecar)
	manifest(t, "daemonset.yaml", &daemons)
	if got := []string{job.Kind, sidecar.Kind, daemons.Kind}; !slices.Equal(got, []string{"Job", "Job", "DaemonSet"}) {
		t.Errorf("kinds %q", got)
	}
	labels := daemons.Spec.Template.Labels
	for key, value := range daemons.Spec.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("daemonset.yaml selects %s=%s, its Pods have %q", key, value, labels)
		}
	}

	return map[string]core.PodSpec{
		"job.yaml": job.Spec.Template.Spec, "sidecar.yaml": sidecar.Spec.Template.Spec, "daemonset.yaml": daemons.Spec.Template.Spec,
	}
}

// Nothing has a right that a job would not have: the profile "restricted" of Kubernetes, but for the two folders of the
// node that the DaemonSet reads.
func TestKubernetes_NoPrivilege(t *testing.T) {
	for name, pod := range pods(t) {
		if c := pod.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil ||
			c.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the Pod's security context is %+v", name, c)
		}
		if pod.HostPID || pod.HostNetwork || pod.HostIPC {
			t.Errorf("%s shares something with the node", name)
		}
		for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
			if s := c.SecurityContext; s == nil || s.Privileged != nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: the security context of %s is %+v", name, c.Name, s)
			}
			for _, m := range c.VolumeMounts {
				if isHostPath(pod, m.Name) && !m.ReadOnly {
					t.Errorf("%s: %s may write to the node's %s", name, c.Name, m.Name)
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

// A sidecar is native: an init container that goes on.
func TestKubernetes_NativeSidecar(t *testing.T) {
	pod := pods(t)["sidecar.yaml"]
	if len(pod.InitContainers) != 1 || pod.InitContainers[0].RestartPolicy == nil ||
		*pod.InitContainers[0].RestartPolicy != core.ContainerRestartPolicyAlways || pod.InitContainers[0].Image != "perfagent" {
		t.Errorf("init containers %+v", pod.InitContainers)
	}
}

// What kustomize makes of the folder names the registry's image with the version of this checkout, and no image that
// kustomization.yaml leaves alone.
func TestKubernetes_Kustomize(t *testing.T) {
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
	want := []string{"registry.example.com/job:latest", "registry.example.com/job:latest", perfagent, perfagent}
	if made.Size() != 3 || !slices.Equal(images, want) {
		t.Errorf("%d resources with the images %q, want 3 with %q", made.Size(), images, want)
	}
}
