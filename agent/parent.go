package agent

import (
	"fmt"
	"os"

	"github.com/perfagent/perfagent/internal/procfile"
)

// ParentVariable is set in a job's environment, for a perfagent within the job: PID NODE HOST of the one around it.
const ParentVariable = "PERFAGENT_PARENT"

// The other variables that a job gets, beside those of marks, operations and MLflow.
const (
	runIDVariable = "PERFAGENT_RUN_ID"
	nodeVariable  = "PERFAGENT_NODE"
)

// A parent is the perfagent around this process, as the environment says. A launcher may have brought the
// variable to another host.
type parent struct {
	pid, node int
	host      string
}

// findParent returns the perfagent whose job set the environment, if any.
func findParent() (p parent, ok bool) {
	n, err := fmt.Sscanf(os.Getenv(ParentVariable), "%d %d %s", &p.pid, &p.node, &p.host)
	return p, n == 3 && err == nil
}

// contains reports whether this process is within the job of p.
func (p parent) contains() bool {
	host, err := os.Hostname()
	return err == nil && host == p.host && procfile.Descends(p.pid)
}

// jobEnv returns what the job's environment gets, so that a perfagent in it knows the run.
func (o Options) jobEnv() []string {
	env := []string{runIDVariable + "=" + o.RunID, fmt.Sprintf("%s=%d", nodeVariable, *o.Node)}
	if host, err := os.Hostname(); err == nil {
		env = append(env, fmt.Sprintf("%s=%d %d %s", ParentVariable, os.Getpid(), *o.Node, host))
	}

	return env
}

// inheritsNode reports whether the index is that of a perfagent around the launcher of this process, which has
// passed PERFAGENT_NODE on to the ranks of all nodes.
func inheritsNode(from string, node int, launch string) bool {
	p, ok := findParent()
	return ok && from == nodeVariable && launch != "" && node == p.node
}
