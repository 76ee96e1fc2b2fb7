package summary

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// addFindings adds the findings to c. If c has no action, the first finding on the job's request or its end becomes the
// action.
func (e *end) addFindings(c *Conclusion) {
	own := c.Action != ""
	failed := c.Outcome == Failed || c.Outcome == Stopped
	found := adviceFindings(e.Report)
	for _, f := range found {
		words := strings.TrimSpace(text.Printable(f.Text))
		if words == "" || f.ID == diagnosis.MemoryTight && own && c.Subject == "memory" {
			continue
		}
		if rank := f.Evidence["rank"]; len(e.Nodes) > 1 && rank == nil {
			words = strings.TrimSuffix(words, ".") + " (node " + text.Printable(text.List(f.Nodes, 2)) + ")."
		}
		subject, ofJob := diagnosis.SubjectOf(f.ID)
		of := reporter.Verdict{Evidence: f.Evidence}
		switch {
		case failed && f.ID != diagnosis.MemoryTight && subject != "disk_space",
			!ofJob && (c.Outcome != Odd || c.Subject == "memory") && !(of.Number("job_cpus") >= heldUp):
			c.Other = append(c.Other, words)
		case c.Action == "" && ofJob:
			c.Action = words
			if c.Subject == "" {
				c.Subject = subject
			}
		default:
			c.Notes = append(c.Notes, words)
		}
	}
	for _, condition := range e.verdict.Conditions[:min(len(e.verdict.Conditions), maxConditions)] {
		if !slices.ContainsFunc(found, func(f diagnosis.MergedFinding) bool { return f.ID == condition }) {
			c.Other = append(c.Other, "Before the end: "+cmp.Or(conditionWords[condition], text.Printable(condition))+".")
		}
	}
}

// heldUp is the minimum CPU usage, in CPUs, of a job that busy neighbours can have slowed down.
const heldUp = 0.5

// maxConditions is greater than the number of conditions that exist. It bounds the cost of a hostile report.
const maxConditions = 20

// adviceFindings returns the findings of the nodes, after the first finding of killFinding, if there is one.
func adviceFindings(r *reporter.Report) []diagnosis.MergedFinding {
	var out []diagnosis.MergedFinding
	for name, n := range r.EachNode() {
		if f := killFinding(n, &r.Run); f != nil {
			out = append(out, diagnosis.MergedFinding{Finding: *f, Nodes: []string{name}})
			break
		}
	}
	if len(r.Nodes) > 1 {
		return append(out, diagnosis.MergedFindings(r)...)
	}
	for _, f := range onlyNode(r).Findings {
		out = append(out, diagnosis.MergedFinding{Finding: f})
	}
	return out
}

// requestedAmounts returns the memory in MiB and the CPUs that a finding advises to request; 0 = none.
func requestedAmounts(f reporter.Finding) (mb, cpus float64) {
	v := reporter.Verdict{Evidence: f.Evidence}
	return askable(v.Number("ask_mb")), askable(v.Number("ask_cpus"))
}

// resourceRequest holds the greatest needs of the job on any node; 0 = unknown.
type resourceRequest struct {
	mb, cpus        float64
	limit           float64 // CPUs that the job has
	ranks           int     // on the node
	memoryAdvised   bool    // a finding advises to request mb
	needsMoreMemory bool    // mb is more than the job has
	gpus            int     // of the job, on the node
	memoryUnknown   bool    // the memory need of some node is unknown
	cpusChanged     bool    // cpus differs from limit
}

// add adds the amounts that the findings of n advise. Without advice on CPUs, the job keeps its CPUs; without advice on
// memory, the request is for at most twice the peak.
func (a *resourceRequest) add(n *reporter.Node, run *reporter.Run) {
	list := n.Findings
	if f := killFinding(n, run); f != nil {
		list = append(slices.Clone(list), *f)
	}
	mb, cpus, limit, gpus := 0.0, 0.0, 0.0, 0
	for _, f := range list {
		m, c := requestedAmounts(f)
		mb, cpus = max(mb, m), max(cpus, c)
		a.needsMoreMemory = a.needsMoreMemory || m > 0 && f.ID == diagnosis.MemoryTight
	}
	if a.memoryAdvised = a.memoryAdvised || mb > 0; mb == 0 {
		mb = askable(diagnosis.SuggestedMemory(n, run))
	}
	if n.Limits != nil {
		a.needsMoreMemory = a.needsMoreMemory || n.Limits.MemoryMB > 0 && mb > math.Ceil(float64(n.Limits.MemoryMB))
		limit = askable(max(n.Limits.CPUs, n.Limits.GivenCPUs))
	}
	for i := range n.GPUs {
		if n.GPUs[i].OfJob {
			gpus++
		}
	}
	a.mb, a.cpus, a.limit = max(a.mb, mb), max(a.cpus, cmp.Or(cpus, limit)), max(a.limit, limit)
	a.ranks, a.gpus, a.memoryUnknown = max(a.ranks, len(n.Ranks)), max(a.gpus, gpus), a.memoryUnknown || mb == 0
}

// slurm returns the options for Slurm. Each rank is a task. The memory is requested per node, CPU or GPU, as in the
// run's own request, because Slurm accepts only one of the three options.
func (a resourceRequest) slurm(memoryPer, size string) string {
	ranks := float64(max(1, a.ranks))
	perTask := math.Ceil(a.cpus / ranks)
	parts := map[string]float64{reporter.MemoryPerCPU: perTask * ranks, reporter.MemoryPerGPU: float64(a.gpus)}[memoryPer]
	memory := "--mem=" + size
	switch {
	case parts > 0:
		memory = "--mem-per-" + memoryPer + "=" + text.Fixed(math.Ceil(a.mb/parts), 0) + "M"
	case memoryPer != "": // the number of GPUs is unknown
		a.mb = 0
	}
	return a.join(" ", "--cpus-per-task="+text.Fixed(perTask, 0), memory)
}

// join joins cpus, if the number of CPUs changes, and memory, if the amount is known.
func (a resourceRequest) join(separator, cpus, memory string) string {
	var words text.Parts
	words.Add(a.cpusChanged, "%s", cpus)
	words.Add(a.mb > 0, "%s", memory)
	return strings.Join(words, separator)
}

// conditionWords describes conditions in words.
var conditionWords = map[string]string{
	diagnosis.ConditionThrottled: "held back by its CPU quota", diagnosis.ConditionMemoryStarved: "short of memory",
	diagnosis.ConditionIOWait: "waiting for storage", diagnosis.ConditionSwapping: "the node was swapping",
	diagnosis.ConditionGPUIdle: "its GPUs were idle",
}

// killFinding returns the finding on a kill at the memory limit if n lacks it because the job ran too briefly for
// findings. It returns nil if n has the finding or there was no such kill.
func killFinding(n *reporter.Node, run *reporter.Run) *reporter.Finding {
	if slices.ContainsFunc(n.Findings, func(f reporter.Finding) bool { return f.ID == diagnosis.MemoryTight }) {
		return nil
	}
	return diagnosis.MemoryKillFinding(n, run)
}

// askable returns v if it is an amount that can be requested, and 0 otherwise.
func askable(v float64) float64 {
	if v > 0 && v <= 1e12 {
		return v
	}
	return 0
}

// requestLine returns the line that requests the resources that the job needs, in the syntax of the run's platform. It
// returns "" if there is nothing to change, or if the platform has no known syntax.
func requestLine(r *reporter.Report) string {
	var all resourceRequest
	for _, n := range r.EachNode() {
		all.add(n, &r.Run)
	}

	if all.memoryUnknown && !all.needsMoreMemory { // the advice to request less covers only other nodes
		all.mb, all.memoryAdvised = 0, false
	}
	if all.cpusChanged = all.cpus != all.limit; !all.cpusChanged && !all.memoryAdvised { // a node needs all it has
		return ""
	}
	cpus := text.Fixed(math.Ceil(all.cpus), 0)
	size, unit := text.Fixed(math.Ceil(all.mb), 0), "M"
	if gib := all.mb / 1024; gib == math.Trunc(gib) {
		size, unit = text.Fixed(gib, 0), "G"
	}

	switch r.Run.Platform {
	case reporter.PlatformSlurm:
		if words := all.slurm(r.Run.MemoryPer, size+unit); words != "" {
			return "#SBATCH " + words
		}
	case reporter.PlatformKubernetes:
		memory, limits := "memory: "+size+unit+"i", ""
		if all.needsMoreMemory {
			limits = ", limits: {" + memory + "}"
		}
		return "resources: {requests: {" + all.join(", ", `cpu: "`+cpus+`"`, memory) + "}" + limits + "}"
	case reporter.PlatformDocker, reporter.PlatformPodman:
		return "docker run " + all.join(" ", "--cpus="+cpus, "--memory="+size+strings.ToLower(unit))
	}
	return ""
}
