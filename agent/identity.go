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

// Detection holds the run ID and identity of this process, as detected from the environment variables of schedulers and
// launchers.
type Detection struct {
	// RunID is the default run ID. "" means that the default is made from the time and random digits.
	RunID    string            `json:"run_id,omitempty"`
	Identity reporter.Identity `json:"identity"`
	// From maps the JSON name of each detected field, including run_id, to the variables that supplied the value.
	From map[string]string `json:"from"`
	// Ignored lists variables that are set but ignored.
	Ignored []IgnoredVariable `json:"ignored"`
}

// An IgnoredVariable is an environment variable that is ignored, with the reason.
type IgnoredVariable struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Detect returns the run ID and identity from the environment of this process. Run, Start, Attach and Sidecar use them
// as defaults for their Options.
func Detect() Detection {
	id := scheduler.Detect(scheduler.CurrentEnvironment())
	d := Detection{RunID: id.RunID, Identity: newIdentity(id), From: id.From, Ignored: []IgnoredVariable{}}
	for _, i := range id.Ignored {
		d.Ignored = append(d.Ignored, IgnoredVariable(i))
	}

	return d
}

// InheritsNode reports whether node, an index read from the given variable, must be ignored. It must be ignored if it
// belongs to an outer perfagent that runs the launcher of this process, because the launcher passes the variable on to
// the ranks of all nodes.
func (d Detection) InheritsNode(variable string, node int) bool {
	return inheritsNode(variable, node, d.Identity.Launch)
}

// identity returns the job, node and rank of this process for the report, or nil if only the host name is known.
func (s *session) identity() *reporter.Identity {
	id := newIdentity(s.o.identity)
	if s.o.nodeGiven {
		id.Node, id.NodeFrom = s.o.Node, cmp.Or(s.o.NodeFrom, reporter.NodeFromFlag)
	}
	if rank, err := strconv.Atoi(s.nodeRole.rank); err == nil && id.Rank == nil {
		id.Rank = &rank
	}
	named := s.o.identity.From["node_name"] != "" // set by a variable, such as NODE_NAME in a Pod
	if id.NodeFrom == scheduler.NodeFromNone && id.Scheduler == "" && id.Rank == nil && !named {
		return nil
	}
	return &id
}

// newIdentity converts id to the report's type.
func newIdentity(id scheduler.Identity) reporter.Identity {
	return reporter.Identity{
		Node: id.Node, NodeFrom: id.NodeFrom, NodeName: id.NodeName,
		Rank: id.Rank, LocalRank: id.LocalRank, RanksOnNode: id.RanksOnNode, WorldSize: id.WorldSize,
		Nodes: id.Nodes, Scheduler: id.Scheduler, JobID: id.JobID, Launch: id.Launch, Restart: id.Restart,
	}
}

// platform returns the platform of this process as a constant of package reporter, or "" if it is unknown. The platform
// determines how CPUs and memory are requested. A scheduler takes precedence over a container.
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

// memoryPer returns the unit of a memory request, as a constant of package reporter: per CPU or per GPU. "" means that
// the request is per node, or that the unit is unknown.
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

// inContainer reports whether mounts are the mounts of a Docker or Podman container, which include a separate
// /etc/hostname. The marker files in the root directory are not enough, because a virtual machine may have booted the
// image.
func inContainer(mounts string) bool { return strings.Contains(mounts, " /etc/hostname ") }

// mounts returns the contents of /proc/self/mountinfo.
func mounts() string {
	data, _ := procfile.ReadFile("/proc/self/mountinfo")
	return string(data)
}
