package agent

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"github.com/perfagent/perfagent/internal/procfile"
	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
)

// Detection is what the variables of schedulers and launchers say about this process.
type Detection struct {
	// RunID is the name that a run gets here; "" stands for the time and random digits.
	RunID    string            `json:"run_id,omitempty"`
	Identity reporter.Identity `json:"identity"`
	// From has the variables that told the run id and each member of the identity, by its name in JSON.
	From map[string]string `json:"from"`
	// Ignored are variables that are set and do not count.
	Ignored []IgnoredVariable `json:"ignored"`
}

// An IgnoredVariable is a variable that does not count, and why.
type IgnoredVariable struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Detect returns what the environment of this process says. Run, Start, Attach and Sidecar obey it where
// their Options leave a choice.
func Detect() Detection {
	id := scheduler.Detect(scheduler.CurrentEnvironment())
	d := Detection{RunID: id.RunID, Identity: newIdentity(id), From: id.From, Ignored: []IgnoredVariable{}}
	for _, i := range id.Ignored {
		d.Ignored = append(d.Ignored, IgnoredVariable(i))
	}

	return d
}

// InheritsNode reports whether an index that a variable gives does not count: it is that of a perfagent around the
// launcher of this process, which passed it on to the ranks of all nodes.
func (d Detection) InheritsNode(variable string, node int) bool {
	return inheritsNode(variable, node, d.Identity.Launch)
}

// identity returns which job, node and rank this process is, for the report; nil if nothing but the host
// tells it.
func (s *session) identity() *reporter.Identity {
	id := newIdentity(s.o.identity)
	if s.o.nodeGiven {
		id.Node, id.NodeFrom = s.o.Node, cmp.Or(s.o.NodeFrom, reporter.NodeFromFlag)
	}
	if rank, err := strconv.Atoi(s.nodeRole.rank); err == nil && id.Rank == nil {
		id.Rank = &rank
	}
	named := s.o.identity.From["node_name"] != "" // by a variable such as NODE_NAME of a Pod
	if id.NodeFrom == scheduler.NodeFromNone && id.Scheduler == "" && id.Rank == nil && !named {
		return nil
	}
	return &id
}

// newIdentity converts an identity to the report's type.
func newIdentity(id scheduler.Identity) reporter.Identity {
	return reporter.Identity{
		Node: id.Node, NodeFrom: id.NodeFrom, NodeName: id.NodeName,
		Rank: id.Rank, LocalRank: id.LocalRank, RanksOnNode: id.RanksOnNode, WorldSize: id.WorldSize,
		Nodes: id.Nodes, Scheduler: id.Scheduler, JobID: id.JobID, Launch: id.Launch, Restart: id.Restart,
	}
}

// platform returns where this process runs, as the report names it, so that a request for CPUs and memory can be
// written for that platform; "" if it is none of the known ones. The scheduler that was asked for the job comes before
// the container that the job may be in.
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
