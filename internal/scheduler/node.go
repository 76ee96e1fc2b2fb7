package scheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// readNode sets the index and the name of the node, from the first source that has an index.
func (d *detector) readNode(s System, nearest Launcher) {
	d.id.NodeFrom = NodeFromNone
	for _, tell := range []func(Launcher) bool{
		d.nodeOfSlurm, d.nodeOfPod, d.nodeOfVariable, d.nodeOfSageMaker, d.nodeOfHosts,
	} {
		if tell(nearest) {
			break
		}
	}

	if d.id.Nodes == 0 {
		d.count(&d.id.Nodes, "nodes", s.Nodes)
	}
	if d.id.Node == nil && d.id.Nodes == 1 {
		d.setNode(0, d.id.From["nodes"])
	}
	d.id.NodeName = cmp.Or(d.id.NodeName, d.Hostname)
}

// setNode sets the index of the node and returns true.
func (d *detector) setNode(index int, from string) bool {
	d.id.Node, d.id.NodeFrom, d.id.From["node"] = &index, from, from
	return true
}

func (d *detector) setName(name, from string) {
	d.id.NodeName, d.id.From["node_name"] = name, from
}

// nodeOfSlurm uses the position of this node in the list of the job's nodes. Under mpirun, SLURM_NODEID and
// SLURMD_NODENAME describe the launcher's daemons, which may be on another node, so the kernel's host name takes
// precedence.
func (d *detector) nodeOfSlurm(Launcher) bool {
	const list, index, daemon = "SLURM_JOB_NODELIST", "SLURM_NODEID", "SLURMD_NODENAME"

	for _, name := range []struct{ value, from string }{{d.Hostname, "host name"}, {d.value(daemon), daemon}} {
		place, inList, ok := indexInList(name.value, d.value(list))
		if !ok {
			continue
		}
		d.setName(inList, list)
		d.setNode(place, list)
		if n, ok := d.number(index); ok && n != place {
			d.ignore(index, fmt.Sprintf("%s has this node (%s) in place %d", list, name.from, place))
		}
		return true
	}

	if name := d.value(daemon); name != "" {
		d.setName(name, daemon)
	}
	n, ok := d.number(index)
	return ok && d.setNode(n, index)
}

// nodeOfVariable takes the index from the first variable that has one. Under torchrun that is GROUP_RANK, because each
// torchrun agent forms a group. Under Volcano it is the task index, because each task is a pod.
func (d *detector) nodeOfVariable(nearest Launcher) bool {
	for _, row := range []struct{ name, launcher, system string }{
		{"GROUP_RANK", torchrun, ""},
		{"NODE_RANK", azureML, ""},
		{"PALS_NODEID", "", ""},
		{"PBS_NODENUM", "", ""},
		{"AWS_BATCH_JOB_NODE_INDEX", "", ""},
		{"GROUP_RANK", "", ""},
		{"VC_TASK_INDEX", "", volcano},
		{"VK_TASK_INDEX", "", volcano},
	} {
		if row.launcher != "" && row.launcher != nearest.Name {
			continue
		}
		if n, ok := d.number(row.name); ok {
			if row.system != "" {
				d.setScheduler(row.system, row.name)
			}
			return d.setNode(n, row.name)
		}
	}
	return false
}

// nodeOfPod uses the variables that Kubernetes and Kubeflow set in a pod, which counts as a node.
func (d *detector) nodeOfPod(nearest Launcher) bool {
	const index, place, pods = "JOB_COMPLETION_INDEX", "PET_NODE_RANK", "PET_NNODES"

	inCluster := d.isSet("KUBERNETES_SERVICE_HOST")
	if name := d.value("NODE_NAME"); inCluster && name != "" { // the usual name for spec.nodeName
		d.setName(name, "NODE_NAME")
	}
	if d.id.Nodes == 0 {
		d.count(&d.id.Nodes, "nodes", pods)
	}

	if n, ok := d.number(index); ok {
		d.setScheduler(kubernetes, index)
		d.jobOfPod(index)
		return d.setNode(n, index)
	}
	if n, ok := d.number(place); ok && d.isSet(pods) { // Kubeflow configures torchrun by these two variables
		if inCluster {
			d.setScheduler(kubeflow, place)
		}
		return d.setNode(n, place)
	}

	return inCluster && nearest.Name == "" && d.nodeOfKubeflow()
}

// jobOfPod derives the name of the job from the pod's name, JOB-INDEX.
func (d *detector) jobOfPod(index string) {
	job, ok := strings.CutSuffix(d.Hostname, "-"+d.value(index))
	if ok && d.id.JobID == "" {
		d.id.JobID, d.id.From["job_id"] = job, "host name"
		d.setRunID(job, "host name")
	}
}

// nodeOfKubeflow uses the RANK of a pod. If LOCAL_RANK is set, RANK is the rank of a process instead.
func (d *detector) nodeOfKubeflow() bool {
	if !d.isSet("WORLD_SIZE") || !d.isSet("MASTER_ADDR") || d.isSet("LOCAL_RANK") {
		return false
	}
	n, ok := d.number("RANK")
	if !ok {
		return false
	}

	operator := kubeflow
	if d.isSet("VC_TASK_INDEX") { // it counts the tasks of one kind; RANK counts all tasks
		operator = volcano
	}
	d.setScheduler(operator, "RANK")
	d.count(&d.id.Nodes, "nodes", "WORLD_SIZE")
	d.unignore("RANK")

	return d.setNode(n, "RANK")
}

// setScheduler sets the system in charge, unless a job ID has determined it.
func (d *detector) setScheduler(name, from string) {
	if d.id.Scheduler == "" {
		d.id.Scheduler, d.id.From["scheduler"] = name, from
	}
}

// nodeOfSageMaker uses the position of this host in SageMaker's list. It does not do so under MPI, because SageMaker's
// mpirun passes the variables of the first node to all ranks.
func (d *detector) nodeOfSageMaker(nearest Launcher) bool {
	const list, current = "SM_HOSTS", "SM_CURRENT_HOST"

	var hosts []string
	if text := d.value(list); text == "" {
		return false
	} else if err := json.Unmarshal([]byte(text), &hosts); err != nil {
		d.ignore(list, "not a list of JSON")
		return false
	}
	d.setScheduler(sageMaker, list)
	if nearest.Name != "" && nearest.Name != torchrun {
		d.ignore(current, nearest.Name+" may have copied it from another host")
		return false
	}
	place := slices.Index(hosts, d.value(current))
	if place < 0 {
		return false
	}

	d.setName(d.value(current), current)
	d.id.Nodes, d.id.From["nodes"] = len(hosts), list

	return d.setNode(place, current)
}

// nodeOfHosts uses the position of this host in LSF's list of hosts. Under jsrun the first host does not count, because
// it runs no task.
func (d *detector) nodeOfHosts(nearest Launcher) bool {
	hosts, from := d.hostsOfLSF()
	if nearest.Name == jsm && len(hosts) > 1 {
		hosts = hosts[1:]
	}

	place := slices.IndexFunc(hosts, func(host string) bool { return sameHost(host, d.Hostname) })
	if place < 0 {
		return false
	}
	d.setName(hosts[place], from)
	d.id.Nodes, d.id.From["nodes"] = len(hosts), from

	return d.setNode(place, from)
}

// hostsOfLSF returns the hosts of an LSF job, without duplicates, and the variable that lists them.
func (d *detector) hostsOfLSF() (hosts []string, from string) {
	const counted, slots = "LSB_MCPU_HOSTS", "LSB_HOSTS"

	words := strings.Fields(d.value(counted)) // each host is followed by the number of its slots
	for i := 0; i+1 < len(words); i += 2 {
		hosts = append(hosts, words[i])
	}
	if len(hosts) > 0 {
		return hosts, counted
	}
	for _, host := range strings.Fields(d.value(slots)) { // a host is repeated for each slot
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}

	return hosts, slots
}

// maxNodes bounds how many names of a node list are read. Slurm supports at most 65,536 nodes.
const maxNodes = 1 << 16

// nodeNames yields the names in a Slurm node list: "gpu[1-2,07],login" is gpu1, gpu2, gpu07 and login. A name may have
// several brackets; the last varies fastest. A malformed list yields the names before the mistake.
func nodeNames(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := maxNodes
		bounded := func(name string) bool {
			left--
			return yield(name) && left > 0
		}

		for list != "" {
			var expression string
			expression, list = cutExpression(list)
			if expression == "" || !expand("", expression, bounded) {
				return
			}
		}
	}
}

// cutExpression cuts list at the first comma outside of brackets.
func cutExpression(list string) (expression, rest string) {
	inside := false
	for i := range len(list) {
		switch list[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				return list[:i], list[i+1:]
			}
		}
	}
	return list, ""
}

// expand yields each name in expression, with prefix before it. It returns false if yield does, or if expression is
// malformed.
func expand(prefix, expression string, yield func(string) bool) bool {
	before, rest, found := strings.Cut(expression, "[")
	if !found {
		return yield(prefix + expression)
	}
	ranges, after, found := strings.Cut(rest, "]")
	if !found {
		return false
	}

	for part := range strings.SplitSeq(ranges, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 32)
		last, err2 := strconv.ParseUint(high, 10, 32)
		if err1 != nil || err2 != nil || last < first {
			return false
		}
		for n := first; n <= last; n++ {
			if !expand(fmt.Sprintf("%s%s%0*d", prefix, before, len(low), n), after, yield) {
				return false
			}
		}
	}

	return true
}

// indexInList returns the position of host among the names of list, counting from 0, and the host's name in the list.
func indexInList(host, list string) (place int, name string, ok bool) {
	for name := range nodeNames(list) {
		if sameHost(name, host) {
			return place, name, true
		}
		place++
	}
	return 0, "", false
}

// sameHost reports whether a and b name the same host. One of the names may lack the domain.
func sameHost(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	labelA, domainA, _ := strings.Cut(a, ".")
	labelB, domainB, _ := strings.Cut(b, ".")

	return labelA == labelB && (domainA == domainB || domainA == "" || domainB == "")
}

// tasksAt returns the number of tasks that list gives for the node with the index node. In a list such as "3,1" or
// "2(x2),1", "2(x2)" stands for two nodes with two tasks each.
func tasksAt(list string, node int) (tasks int, ok bool) {
	for part := range strings.SplitSeq(list, ",") {
		count, times, repeated := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.ParseUint(count, 10, 31)
		if err != nil {
			return 0, false
		}
		of := uint64(1)
		if repeated {
			if of, err = strconv.ParseUint(times, 10, 31); err != nil {
				return 0, false
			}
		}

		if uint64(node) < of {
			return int(n), true
		}
		node -= int(of)
	}

	return 0, false
}
