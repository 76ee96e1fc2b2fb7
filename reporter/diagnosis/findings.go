package diagnosis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Rule is one row of the table of findings. docs/findings.md describes when each rule fires.
type Rule struct {
	ID       string
	Severity string // SeverityWarning or SeverityInfo

	subject string // the resource that the finding is about: "memory", "disk_space", "gpu" or "cpu"; "" for none
	ofJob   bool   // whether it concerns the end of the job or the resources requested for it

	// judge applies the rule to one node. It returns nil if the rule does not fire. It is nil for rules that compare
	// nodes or ranks.
	judge func(*ruleInput) *reporter.Finding

	Advice string // what to change
}

// The severities of findings.
const (
	SeverityWarning = "warning" // something is wasted, slowed down or in danger
	SeverityInfo    = "info"    // worth knowing
)

// The IDs of findings.
const (
	// MemoryTight is the ID of the finding that advises how much more memory to ask for.
	MemoryTight           = "memory_tight"
	ruleDiskFull          = "disk_nearly_full"
	ruleGPUIdle           = "gpu_idle"
	ruleGPUStarved        = "gpu_starved"
	ruleOneThread         = "one_busy_thread"
	ruleCPUsUnused        = "cpus_unused"
	ruleThrottled         = "throttled"
	ruleNeighbour         = "neighbour"
	ruleClockedDown       = "clocked_down"
	ruleNetworkFileSystem = "network_file_system"
	ruleSwapping          = "swapping"
	ruleMemoryUnused      = "memory_unused"
	ruleMemoryShared      = "memory_is_shared"
	ruleImbalance         = "imbalance"
	// Straggler is the ID of the finding on the rank or node that ended long after the others.
	Straggler         = "straggler"
	ruleOddNode       = "odd_node"
	ruleGPUMemoryFull = "gpu_memory_full"
	ruleSamplingGaps  = "sampling_gaps"
	ruleChildrenDied  = "children_died"
)

// The thresholds of the rules.
const (
	minRunSeconds       = 5    // shorter runs have only children_died, and shorter ranks are not compared
	findTightPct        = 90   // of the memory limit
	findSmallLimit      = 1024 // MiB of memory: less is not worth a warning
	findThrottledLoss   = 0.05 // of the job's CPU time: less is not worth a warning
	findTightRoom       = 1.25 // × the peak is the amount to ask for
	findTightOwn        = 0.1  // of the limit: if the job uses less, other processes or files in memory fill it
	findKilledRoom      = 1.5  // × the limit is the amount to ask for if a process was killed at the limit
	findGrowingRoom     = 2    // × the limit, if memory was still growing when a process was killed
	findDiskPct         = 95   // of the file system
	findDiskFreeMB      = 100 << 10
	findGPUMemoryPct    = 95 // of the device's memory
	findGPUHeldPct      = 10 // of the device's memory: the context of CUDA takes about 600 MiB
	findThreadMin       = 0.85
	findThreadMax       = 1.15
	findPhasesPeak      = 1.5 // CPUs: a higher peak means several threads at times
	findCPURoom         = 1.1 // × the peak is the amount to ask for
	findCPUsOver        = 0.25
	findWaitPct         = 20 // of the time a task waited for a CPU: usage does not show what the job could use
	findMemoryRoom      = 2  // × the peak is the amount to ask for
	findSharedPart      = 3  // the peak is at most this multiple of the shared memory
	findSharedMB        = 256
	findMissedTicks     = 3
	findMissedPct       = 10  // of the ticks, or of the run in one gap
	findImbalanceLess   = 0.5 // × the median
	findImbalanceMore   = 1.5
	findImbalanceLength = 0.9 // × the longest run time: no peer waited for one that ended earlier
	findImbalanceCPUs   = 0.5
	findImbalanceMB     = 1 << 10
	findImbalanceGPU    = 10
	findStragglerLength = 20  // seconds: the clocks of nodes may differ by a second
	findStragglerShare  = 0.1 // of the run
)

// Rules returns the table of rules, the most important first: risks to the whole run, GPUs, CPUs, time, memory, and
// remarks on the run. Findings are listed in this order, warnings first.
func Rules() []Rule {
	s := fmt.Sprintf
	return []Rule{
		{MemoryTight, SeverityWarning, "memory", true, judgeMemoryTight,
			s("ask for %v × the peak or, if processes were killed at the limit, %v × the limit (%v × if memory was still "+
				"growing), after adding the job's swapped-out memory",
				findTightRoom, findKilledRoom, findGrowingRoom)},
		{ruleDiskFull, SeverityWarning, "disk_space", true, judgeDisk, "free up space, or write elsewhere"},
		{ruleGPUIdle, SeverityWarning, "gpu", true, judgeGPUIdle,
			s("ask for fewer GPUs, but keep those with at least %d %% of their memory in use, or find out what they are "+
				"waiting for", findGPUHeldPct)},
		{ruleGPUStarved, SeverityWarning, "gpu", true, judgeGPUStarved,
			"prepare the GPU's work in more processes, or ahead of time"},
		{ruleOneThread, SeverityWarning, "cpu", true, judgeOneThread, "make the job run in parallel, or ask for 1 CPU"},
		{ruleCPUsUnused, SeverityWarning, "cpu", true, judgeCPUsUnused,
			s("ask for the peak plus %.0f %%, rounded up to whole CPUs", 100*(findCPURoom-1))},
		{ruleThrottled, SeverityWarning, "cpu", true, judgeThrottled, "ask for more CPUs, or run fewer threads"},
		{ruleNeighbour, SeverityWarning, "", false, judgeNeighbour,
			"ask for dedicated CPUs or memory, or run the job when the node is quieter"},
		{ruleClockedDown, SeverityWarning, "", false, judgeClockedDown,
			"have the node's cooling checked, or use another node"},
		{ruleNetworkFileSystem, SeverityWarning, "", false, judgeServer,
			"copy frequently used files to a local disk, or open fewer and larger files"},
		{ruleSwapping, SeverityWarning, "memory", true, judgeSwapping, "ask for more memory, or use less"},
		{ruleMemoryUnused, SeverityWarning, "memory", true, judgeMemoryUnused,
			s("ask for %d × the peak, rounded up; no amount is given if it is not known how much the job needs",
				findMemoryRoom)},
		{ruleMemoryShared, SeverityInfo, "memory", false, judgeMemoryShared,
			"use fewer workers, or raise --shm-size if /dev/shm is too small"},
		{ruleImbalance, SeverityWarning, "", true, nil,
			"give the nodes or ranks equal shares of the work, or use fewer of them"},
		{Straggler, SeverityWarning, "", true, nil, "give the last one less to do, or find out what it was waiting for"},
		{ruleOddNode, SeverityWarning, "", true, nil, "look at what is different on that node, or leave it out"},
		{ruleGPUMemoryFull, SeverityInfo, "", false, judgeGPUMemory,
			"expect larger inputs to fail; some frameworks reserve all memory at the start"},
		{ruleSamplingGaps, SeverityInfo, "", false, judgeSampling,
			"leave a little CPU time for perfagent, or choose a longer --interval"},
		{ruleChildrenDied, SeverityInfo, "", true, judgeChildrenDied, "check that the job's results are complete"},
	}
}

// SubjectOf returns which resource a finding with the given ID is about ("memory", "disk_space", "gpu", "cpu" or "" for
// none) and whether it concerns the end of the job or the resources requested for it.
func SubjectOf(id string) (subject string, ofJob bool) {
	rule := ruleOf(id)
	return rule.subject, rule.ofJob
}

// ruleOf returns the rule with the given ID, or the zero Rule if there is none.
func ruleOf(id string) Rule {
	rules := append(Rules(), Rule{})
	return rules[slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id || r.ID == "" })]
}

// findings applies the rules to n, except the rules that compare nodes or ranks. The result is never nil.
func findings(n *reporter.Node, run *reporter.Run) []reporter.Finding {
	out := []reporter.Finding{}
	e := newRuleInput(n, run)
	short := e == nil
	if short && n == nil {
		return out
	}
	if short {
		e = &ruleInput{Node: n, run: run}
	}
	for _, rule := range Rules() {
		if rule.judge == nil || short && rule.ID != ruleChildrenDied {
			continue
		}
		if f := rule.judge(e); f != nil {
			out = append(out, rule.finding(f))
		}
	}

	sortFindings(out)
	return out
}

// finding fills in the ID of f and, unless f has one, the severity.
func (r Rule) finding(f *reporter.Finding) reporter.Finding {
	f.ID = r.ID
	f.Severity = cmp.Or(f.Severity, r.Severity)
	return *f
}

// sortFindings sorts list by severity, warnings first, and then in the order of Rules.
func sortFindings(list []reporter.Finding) {
	rules := Rules()
	place := func(f reporter.Finding) int {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.ID })
		if i < 0 { // the ID is from a newer perfagent
			i = len(rules)
		}
		if f.Severity != SeverityWarning {
			i += len(rules) + 1
		}
		return i
	}
	slices.SortStableFunc(list, func(a, b reporter.Finding) int { return place(a) - place(b) })
}

// evidence returns the evidence of a finding from alternating names and values. It omits unknown and infinite numbers.
func evidence(pairs ...any) map[string]any {
	out := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if v, isNumber := pairs[i+1].(float64); !isNumber {
			out[name] = pairs[i+1]
		} else if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[name] = text.Round(v, 3)
		}
	}
	return out
}

// MergedFinding is a finding and the nodes that it applies to.
type MergedFinding struct {
	reporter.Finding          // of the first node with the highest severity
	Nodes            []string // in the order of their indexes
}

// MergedFindings returns the findings of all nodes, one for each ID, sorted like the findings of one node.
func MergedFindings(r *reporter.Report) []MergedFinding {
	var list []reporter.Finding
	nodes := make(map[string][]string)
	for name, n := range r.EachNode() {
		for _, f := range n.Findings {
			i := slices.IndexFunc(list, func(had reporter.Finding) bool { return had.ID == f.ID })
			switch {
			case i < 0:
				list = append(list, f)
			case list[i].Severity != SeverityWarning && f.Severity == SeverityWarning:
				list[i] = f
			}
			if had := nodes[f.ID]; len(had) == 0 || had[len(had)-1] != name {
				nodes[f.ID] = append(had, name)
			}
		}
	}

	sortFindings(list)
	out := make([]MergedFinding, len(list))
	for i, f := range list {
		out[i] = MergedFinding{f, nodes[f.ID]}
	}
	return out
}
