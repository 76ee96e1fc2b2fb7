package agent

import (
	"os"
	"strings"

	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
)

// platform returns where this process runs, as the report names it: in whose words a request for CPUs and
// memory is written. "" = elsewhere. The scheduler that was asked for the job comes before the container
// that the job may be in.
func platform(id scheduler.Identity) string {
	switch {
	case id.Scheduler == scheduler.Slurm:
		return reporter.PlatformSlurm
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return reporter.PlatformKubernetes
	case exists("/run/.containerenv") && inContainer(mounts()):
		return reporter.PlatformPodman
	case exists("/.dockerenv") && inContainer(mounts()):
		return reporter.PlatformDocker
	}
	return ""
}

// memoryPer returns what memory was requested for, as the report names it. "" = for a node, or it is not known.
func memoryPer(id scheduler.Identity) string {
	switch {
	case id.Scheduler != scheduler.Slurm:
	case os.Getenv("SLURM_MEM_PER_CPU") != "":
		return reporter.MemoryPerCPU
	case os.Getenv("SLURM_MEM_PER_GPU") != "":
		return reporter.MemoryPerGPU
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// inContainer reports whether Docker or Podman made these mounts: both give a container its own host name. The
// files that they leave in the root directory may have come with an image that a virtual machine booted.
func inContainer(mounts string) bool { return strings.Contains(mounts, " /etc/hostname ") }

// mounts returns the mounts of this process, as the kernel lists them.
func mounts() string {
	data, _ := procfile.ReadFile("/proc/self/mountinfo")
	return string(data)
}
