package agent

import (
	"testing"

	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
)

// The report of a Pod has an identity with the node name. A host name alone needs no identity, because the report has
// it anyway.
func TestIdentity_HasNodeNameOfPodWithoutIndex(t *testing.T) {
	told := map[string]string{"KUBERNETES_SERVICE_HOST": "10.97.0.1", "NODE_NAME": "node1"}
	for _, variables := range []map[string]string{told, nil} {
		lookup := func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
		s := &session{o: Options{identity: scheduler.Detect(scheduler.Environment{Lookup: lookup, Hostname: "perfagent-x9rhz"})}}
		switch id := s.identity(); {
		case variables == nil && id != nil:
			t.Errorf("identity with only a host name: %+v, want nil", id)
		case variables != nil && (id == nil || id.NodeName != "node1" || id.NodeFrom != scheduler.NodeFromNone || id.Node != nil):
			t.Errorf("identity of a Pod: %+v, want the node name node1 and no index", id)
		}
	}
}

func TestPlatform_PrefersSlurmToKubernetes(t *testing.T) {
	for _, c := range []struct{ slurm, kubernetes, want string }{
		{"4711", "", reporter.PlatformSlurm},
		{"4711", "10.0.0.1", reporter.PlatformSlurm}, // Slurm inside Kubernetes: Slurm received the request
		{"", "10.0.0.1", reporter.PlatformKubernetes},
	} {
		t.Setenv("SLURM_JOB_ID", c.slurm)
		t.Setenv("KUBERNETES_SERVICE_HOST", c.kubernetes)
		if got := platform(scheduler.Detect(scheduler.CurrentEnvironment())); got != c.want {
			t.Errorf("%+v: platform %q, want %q", c, got, c.want)
		}
	}
}

// The unit of a memory request is known only under Slurm.
func TestMemoryPer_IsKnownOnlyUnderSlurm(t *testing.T) {
	for _, c := range []struct{ slurm, cpu, gpu, want string }{
		{"4711", "2048", "", reporter.MemoryPerCPU}, {"4711", "", "8192", reporter.MemoryPerGPU}, {"4711", "", "", ""}, {"", "2048", "", ""},
	} {
		t.Setenv("SLURM_JOB_ID", c.slurm)
		t.Setenv("SLURM_MEM_PER_CPU", c.cpu)
		t.Setenv("SLURM_MEM_PER_GPU", c.gpu)
		if got := memoryPer(scheduler.Detect(scheduler.CurrentEnvironment())); got != c.want {
			t.Errorf("%+v: memoryPer %q, want %q", c, got, c.want)
		}
	}
}

// The mounts are from a Podman 5 container, and from a virtual machine that booted a Docker image.
func TestInContainer_RequiresHostnameMount(t *testing.T) {
	t.Parallel()
	const machine = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	const container = "612 560 0:66 / / rw,relatime - overlay overlay rw\n" +
		"640 612 0:24 /containers/overlay-containers/3f5a/userdata/hostname /etc/hostname rw,nosuid,nodev - tmpfs tmpfs rw\n"
	if inContainer(machine) || !inContainer(container) {
		t.Errorf("inContainer(machine) %v, inContainer(container) %v; want false, true",
			inContainer(machine), inContainer(container))
	}
}
