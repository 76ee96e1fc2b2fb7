package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// Rule is one row of the table of findings.
type Rule struct {
	ID       string
	Severity string // SeverityWarning or SeverityInfo
	When     string // the threshold
	Advice   string // what to change

	// judge applies the rule to one node. It returns nil if the rule does not fire. It is nil itself
	// for rules that compare nodes or ranks.
	judge func(*ruleInput) *reporter.Finding
}

// The severities of findings.
const (
	SeverityWarning = "warning" // something is wasted, slowed down or in danger
	SeverityInfo    = "info"    // worth knowing
)

// The IDs of findings.
const (
	// MemoryTight is the ID of the finding that says how much more memory to ask for.
	MemoryTight       = "memory_tight"
	findDiskFull      = "disk_nearly_full"
	findGPUIdle       = "gpu_idle"
	findGPUStarved    = "gpu_starved"
	findOneThread     = "one_busy_thread"
	findCPUsUnused    = "cpus_unused"
	findThrottled     = "throttled"
	findNeighbour     = "neighbour"
	findClockedDown   = "clocked_down"
	findServer        = "network_file_system"
	findSwapping      = "swapping"
	findMemoryUnused  = "memory_unused"
	findImbalance     = "imbalance"
	findStraggler     = "straggler"
	findOddNode       = "odd_node"
	findGPUMemoryFull = "gpu_memory_full"
	findSamplingGaps  = "sampling_gaps"
)

// The thresholds of the rules.
const (
	findSeconds         = 5    // shorter runs have no findings, and shorter ranks are not compared
	findTightPct        = 90   // of the memory limit
	findSmallLimit      = 1024 // MiB of memory: less is not worth a warning
	findThrottledLoss   = 0.05 // of the job's CPU time: less is not worth a warning
	findTightRoom       = 1.25 // × the peak is the amount to ask for
	findTightOwn        = 0.1  // of the limit: if the job has less, others or files in memory fill it
	findKilledRoom      = 1.5  // × the limit, if a process was killed for it
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
	findMissedTicks     = 3
	findMissedPct       = 10  // of the ticks, or of the run in one gap
	findImbalanceLess   = 0.5 // × the median
	findImbalanceMore   = 1.5
	findImbalanceLength = 0.9 // × the longest: of what ended earlier the others have not waited
	findImbalanceCPUs   = 0.5
	findImbalanceMB     = 1 << 10
	findImbalanceGPU    = 10
	findStragglerLength = 20  // seconds: the clocks of nodes may differ by a second
	findStragglerShare  = 0.1 // of the run
)

// Rules returns the table of rules, in the order of their importance: what can cost the whole run,
// GPUs, CPUs, time, memory, and last remarks on the run. Findings are listed in this order, warnings
// first.
func Rules() []Rule { return slices.Concat(limitRules(), hostRules(), partRules()) }

// limitRules returns the rules for what the job may use.
func limitRules() []Rule {
	s := fmt.Sprintf
	return []Rule{
		{
			ID: MemoryTight, Severity: SeverityWarning, judge: judgeMemoryTight,
			When: s("the working set of the control group that has the memory limit came to %d %% of the limit or "+
				"more; info where the job itself had less than %.0f %% of it and nothing was killed",
				findTightPct, 100*findTightOwn),
			Advice: s("ask for %v × its peak; for %v × the limit when processes were killed for it; of both with what "+
				"was swapped out of the job",
				findTightRoom, findKilledRoom),
		},
		{
			ID: findDiskFull, Severity: SeverityWarning, judge: judgeDisk,
			When: s("a file system of --disk-path was %d %% full or more, with less than %s free where that is known",
				findDiskPct, text.WholeSize(findDiskFreeMB)),
			Advice: "make room, or write elsewhere",
		},
		{
			ID: findGPUIdle, Severity: SeverityWarning, judge: judgeGPUIdle,
			When: s("GPUs of the job on which a kernel ran in less than %.0f %% of the time, on average; not of one "+
				"that was measured for less than %.0f %% of the run", gpuIdleShare, 100*gpuIdleKnown),
			Advice: s("ask for fewer GPUs, but keep those with %d %% of their memory in use, or find what they "+
				"wait for", findGPUHeldPct),
		},
		gpuStarvedRule(),
		{
			ID: findOneThread, Severity: SeverityWarning, judge: judgeOneThread,
			When: s("the job kept %v to %v CPUs busy on average and may use 2 or more; info where the CPUs are the "+
				"node's and no request for them is known; not where tasks waited for a CPU in %d %% of the "+
				"time (`%s`, where there is none `%s`), unless the job had one thread",
				findThreadMin, findThreadMax, findWaitPct, reporter.MetricJobPSICPU, reporter.MetricPSICPUSome),
			Advice: "let it work in parallel, or ask for 1 CPU",
		},
		{
			ID: findCPUsUnused, Severity: SeverityWarning, judge: judgeCPUsUnused,
			When: s("a quota, cpuset or affinity gives the job its CPUs; it kept less than half of them busy on "+
				"average, and its peak and %.0f %% more, in whole CPUs, leave %.0f %% of them over, at least 1; not "+
				"with one_busy_thread or throttled, nor where tasks waited for a CPU as above",
				100*(findCPURoom-1), 100*findCPUsOver),
			Advice: s("ask for the peak and %.0f %% more, rounded up to whole CPUs", 100*(findCPURoom-1)),
		},
		{
			ID: findThrottled, Severity: SeverityWarning, judge: judgeThrottled,
			When: s("the CPU quota stopped the job in %.0f %% of its periods or more; info where that took less than "+
				"%.0f %% of the job's CPU time; where others are under the same quota, only if the job used %.0f %% of "+
				"it or more", throttledShare, 100*findThrottledLoss, 100*quotaPart),
			Advice: "ask for more CPUs, or run fewer threads",
		},
	}
}

// hostRules returns the rules for what the job shares with others.
func hostRules() []Rule {
	s := fmt.Sprintf
	return []Rule{
		{
			ID: findNeighbour, Severity: SeverityWarning, judge: judgeNeighbour,
			When: s("others kept %d %% of the node's CPUs or more busy on average, and tasks waited for a CPU in %d %% "+
				"of the time or more (as above), or %d %% of the CPU time was stolen by the hypervisor; or others held "+
				"%d %% of the memory or more on average, and tasks waited for memory in %d %% of the time or more "+
				"(`%s`, where there is none `%s`); not where the job's tasks may have waited for each other",
				neighbourShare, findWaitPct, neighbourSteal, neighbourShare, neighbourWait,
				reporter.MetricJobPSIMemory, reporter.MetricPSIMemoryFull),
			Advice: "ask for CPUs or memory of its own, or run it when the node is quieter",
		},
		clockRule(),
		serverRule(),
		{
			ID: findSwapping, Severity: SeverityWarning, judge: judgeSwapping,
			When: s("the node moved %v MiB or more from and to its swap, and %v MiB per second or more on average",
				swapTotal, swapRate),
			Advice: "ask for more memory, or use less",
		},
		{
			ID: findMemoryUnused, Severity: SeverityWarning, judge: judgeMemoryUnused,
			When: s(
				"a control group limits the memory to less than the node has, and %d × the peak (of the job or of "+
					"that group, whichever is greater) is less than half the limit; info where the limit is less than %s, or "+
					"where the peak does not show how much the job needs: memory.high held it down, %.0f %% of the peak or "+
					"more were in swap, %.0f %% or more were read again after the kernel had dropped them, or a program "+
					"decides by an option how much it takes",
				findMemoryRoom,
				text.WholeSize(findSmallLimit), 100*heldSwap, 100*heldRefaults,
			),
			Advice: s("ask for %d × the peak, rounded up to a size of few digits; no amount where the need is not known",
				findMemoryRoom),
		},
	}
}

// partRules returns the rules that compare nodes or ranks, and the remarks.
func partRules() []Rule {
	s := fmt.Sprintf
	return []Rule{
		{
			ID: findImbalance, Severity: SeverityWarning,
			When: s("of several ranks or, where nodes have one each, of several nodes, the one that is farthest from the "+
				"median, if it has less than %.0f %% of it in CPUs (median %v or more), memory (%s or more) or GPU use (%d %% "+
				"or more; of nodes only), or more than %.0f %% of it and as much above it; only if it ran for %.0f %% of the "+
				"longest or more, since the others have not waited for one that ended earlier; info where it is the memory alone",
				100*findImbalanceLess, findImbalanceCPUs, text.WholeSize(findImbalanceMB), findImbalanceGPU,
				100*findImbalanceMore, 100*findImbalanceLength),
			Advice: "give the nodes or ranks equal shares of the work, or use fewer of them",
		},
		{
			ID: findStraggler, Severity: SeverityWarning,
			When: s("of several ranks or, where nodes have one each, of several nodes, the last one ended more than %.0f %% of "+
				"the run after the median; not in a run of less than %d s, or in one that failed",
				100*findStragglerShare, findStragglerLength),
			Advice: "give the last one less to do, or find what it waited for",
		},
		{
			ID: findOddNode, Severity: SeverityWarning,
			When: "of several nodes, only one was throttled, swapping or clocked down (as a warning), as these rules say, " +
				"or had processes of the job killed for lack of memory",
			Advice: "look at what is different on that node, or leave it out",
		},
		{
			ID: findGPUMemoryFull, Severity: SeverityInfo, judge: judgeGPUMemory,
			When:   s("a GPU of the job had %d %% of its memory in use or more", findGPUMemoryPct),
			Advice: "expect larger inputs to fail; some frameworks take all memory beforehand",
		},
		{
			ID: findSamplingGaps, Severity: SeverityInfo, judge: judgeSampling,
			When: s("%d samples or more are missing, and that is %d %% of all, or one gap takes %d %% of the run",
				findMissedTicks, findMissedPct, findMissedPct),
			Advice: "leave perfagent a little CPU, or choose a longer --interval",
		},
	}
}

// findings applies the rules to a node, except those that compare nodes or ranks. The result is never nil.
func findings(n *reporter.Node, run *reporter.Run) []reporter.Finding {
	out := []reporter.Finding{}
	e := newRuleInput(n, run)
	if e == nil {
		return out
	}
	for _, rule := range Rules() {
		if rule.judge == nil {
			continue
		}
		if f := rule.judge(e); f != nil {
			out = append(out, rule.finding(f))
		}
	}

	sortFindings(out)
	return out
}

// finding completes the finding of a rule.
func (r Rule) finding(f *reporter.Finding) reporter.Finding {
	f.ID = r.ID
	if f.Severity == "" {
		f.Severity = r.Severity
	}
	return *f
}

// sortFindings sorts by severity, warnings first, and then in the order of the table.
func sortFindings(list []reporter.Finding) {
	rules := Rules()
	place := func(f reporter.Finding) int {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.ID })
		if i < 0 { // from a newer perfagent
			i = len(rules)
		}
		if f.Severity != SeverityWarning {
			i += len(rules) + 1
		}
		return i
	}
	slices.SortStableFunc(list, func(a, b reporter.Finding) int { return place(a) - place(b) })
}

// evidence returns the evidence of a finding from pairs of names and values. It omits what is not
// known.
func evidence(pairs ...any) map[string]any {
	out := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case float64:
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				out[name] = text.Round(v, 3)
			}
		default:
			out[name] = v
		}
	}
	return out
}
