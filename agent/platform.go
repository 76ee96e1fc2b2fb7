package agent

import (
	"os"

	"github.com/perfagent/perfagent/internal/scheduler"
	"github.com/perfagent/perfagent/reporter"
)

// platform returns where this process runs, as the report names it: in whose words a request for CPUs and
// memory is written. "" = elsewhere. The scheduler that was asked for the job comes before the container
// that the job may be in.
func platform() string {
	switch {
	case scheduler.Detect(os.LookupEnv).Scheduler == scheduler.Slurm:
		return reporter.PlatformSlurm
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return reporter.PlatformKubernetes
	case exists("/run/.containerenv"):
		return reporter.PlatformPodman
	case exists("/.dockerenv"):
		return reporter.PlatformDocker
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
