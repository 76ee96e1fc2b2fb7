package host

import (
	"os"

	"github.com/perfagent/perfagent/collector/process"
	"github.com/perfagent/perfagent/internal/procfile"
)

// Neighbours returns the value of Account.Neighbours: 1 if another program shares the group that counts the job's
// memory, otherwise 0. Perfagent, its helper and its ancestors do not count, because they exist as long as perfagent
// does. known is false if the processes of the group cannot be determined.
func (r *Reader) Neighbours() (n int, known bool) {
	if r.job.Group == nil || r.job.Tree == nil {
		return 0, false
	}
	pids, err := r.job.Group.MemoryPIDs()
	if err != nil {
		return 0, false
	}

	for _, pid := range pids {
		needed := func() bool { return pid == os.Getpid() || pid == r.job.gpus.PID() || procfile.IsAncestor(pid) }
		if r.job.tree.relation(pid) == process.Foreign && !needed() {
			return 1, true
		}
	}
	return 0, true
}
