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

// Detection is the run ID and identity of this process, as detected from the environment variables of schedulers and
// launchers.
type Detection struct {
	// RunID is the default RunID of a run started here; "" means the time and random digits.
	RunID    string            `json:"run_id,omitempty"`
	Identity reporter.Identity `json:"identity"`
	// From maps the JSON name of each detected field, run_id included, to the variables from which its value comes.
	From map[string]string `json:"from"`
	// Ignored lists variables that are set but ignored.
	Ignored []IgnoredVariable `json:"ignored"`
}

// An IgnoredVariable describes a variable that is ignored, with the reason.
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

// InheritsNode reports whether node, an index from the given variable, must be ignored. That is so if it is the index
// of a perfagent around the launcher of this process: the launcher passed it on to the ranks of all nodes.
func (d Detection) InheritsNode(variable string, node int) bool {
	return inheritsNode(variable, node, d.Identity.Launch)
}

// identity returns the job, node and rank of this process for the report, or nil if only the host's name is known.
func (s *session) identity() *reporter.Identity {
	id := newIdentity(s.o.identity)
	if s.o.nodeGiven {
		id.Node, id.NodeFrom = s.o.Node, cmp.Or(s.o.NodeFrom, reporter.NodeFromFlag)
	}
	if rank, err := strconv.Atoi(s.nodeRole.rank); err == nil && id.Rank == nil {
		id.Rank = &rank
	}
	named := s.o.identity.From["node_name"] != "" // named by a variable such as NODE_NAME of a Pod
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

// platform returns the platform of this process in the report's words, or "" if it is unknown. From it, the form of a
// request for CPUs and memory is known. A scheduler takes precedence over a container.
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

// memoryPer returns what a memory request is per, in the report's words: a CPU or a GPU; "" means a node, or unknown.
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

// inContainer reports whether Docker or Podman made mounts, which include a container's own /etc/hostname. The marker
// files in the root directory are not enough, because a virtual machine may have booted the image.
func inContainer(mounts string) bool { return strings.Contains(mounts, " /etc/hostname ") }

// mounts returns the contents of /proc/self/mountinfo.
func mounts() string {
	data, _ := procfile.ReadFile("/proc/self/mountinfo")
	return string(data)
}
