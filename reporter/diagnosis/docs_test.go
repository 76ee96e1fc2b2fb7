package diagnosis

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// tableIn returns the cells of the table with the given name on a page of docs.
func tableIn(t *testing.T, page, name string) (rows [][]string) {
	t.Helper()
	data := check.Value(os.ReadFile("../../docs/" + page))(t)
	_, part, _ := strings.Cut(string(data), "<!-- "+name+":begin -->\n")
	part, _, _ = strings.Cut(part, "<!-- "+name+":end -->")
	for line := range strings.Lines(part) {
		rows = append(rows, strings.Split(strings.Trim(line, "| \n"), " | "))
	}
	if len(rows) < 3 {
		t.Fatalf("docs/%s has no table %q of at least 3 rows", page, name)
	}
	return rows[2:]
}

// says checks that text contains the thresholds, in the given order.
func says(t *testing.T, name, text string, thresholds []any) {
	t.Helper()
	rest := text
	for _, v := range thresholds {
		words, ok := v.(string)
		if !ok {
			words = fmt.Sprintf("%v %%", v)
		}
		var found bool
		if _, rest, found = strings.Cut(rest, words); !found {
			t.Errorf("docs on %s: %q is missing, or not after the earlier thresholds, in: %s", name, words, text)
		}
	}
}

// docs/findings.md lists all rules with their thresholds.
func TestRules_MatchDocs(t *testing.T) {
	n := func(v any) string { return fmt.Sprint(v) }
	thresholds := map[string][]any{
		MemoryTight:           {findTightPct, 100 * findTightOwn},
		ruleDiskFull:          {findDiskPct, text.TrimmedSizeText(findDiskFreeMB)},
		ruleGPUIdle:           {gpuIdleShare, 100 * gpuIdleKnown},
		ruleGPUStarved:        {collector.GPUIdleMaxPct, starvedShare, n(collector.GPUGapMinSeconds) + " s", n(starvedCPUs) + " CPUs", starvedWaiting, n(starvedDisk) + " MiB/s"},
		ruleOneThread:         {n(findThreadMin) + " to " + n(findThreadMax), findWaitPct, reporter.MetricJobPSICPU, reporter.MetricPSICPUSome},
		ruleCPUsUnused:        {n(math.Round(100*(findCPURoom-1))) + " %", 100 * findCPUsOver},
		ruleThrottled:         {throttledShare, 100 * findThrottledLoss, 100 * quotaPart},
		ruleNeighbour:         {neighbourShare, findWaitPct, neighbourSteal, neighbourShare, neighbourWait, reporter.MetricJobPSIMemory, reporter.MetricPSIMemoryFull},
		ruleClockedDown:       {clockedShare, clockedMuch, n(clockedEvents) + " times"},
		ruleNetworkFileSystem: {serverWait, serverStorage, 100 * serverBusy},
		ruleSwapping:          {n(swapTotal) + " MiB", n(swapRate) + " MiB per second"},
		ruleMemoryUnused:      {n(findMemoryRoom) + " × the peak", text.TrimmedSizeText(findSmallLimit), 100 * reclaimSwapShare, 100 * reclaimRefaultShare},
		ruleMemoryShared:      {"a third", n(findSharedMB) + " MiB"},
		ruleImbalance: {100 * findImbalanceLess, "median " + n(findImbalanceCPUs), text.TrimmedSizeText(findImbalanceMB), findImbalanceGPU,
			100 * findImbalanceMore, 100 * findImbalanceLength},
		Straggler:         {100 * findStragglerShare, n(findStragglerLength) + " s"},
		ruleOddNode:       {"only one"},
		ruleGPUMemoryFull: {findGPUMemoryPct},
		ruleSamplingGaps:  {n(findMissedTicks) + " samples", findMissedPct, findMissedPct},
		ruleChildrenDied:  {"SIGTERM", "SIGINT", "SIGHUP"},
	}
	var want, got [][]string
	for _, r := range Rules() {
		want = append(want, []string{"`" + r.ID + "`", r.Severity, r.Advice})
	}
	for _, row := range tableIn(t, "findings.md", "rules") {
		got = append(got, []string{row[0], row[1], row[3]})
		id := strings.Trim(row[0], "`")
		if len(thresholds[id]) == 0 {
			t.Errorf("docs/findings.md: rule %s is missing in this test", id)
		}
		says(t, id, row[2], thresholds[id])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules in docs/findings.md (-want +got):\n%s", diff)
	}
}

// documentedCauses returns the causes of docs/verdict.md in order.
func documentedCauses(t *testing.T) (names []string) {
	t.Helper()
	for _, row := range tableIn(t, "verdict.md", "causes") {
		names = append(names, strings.Trim(row[0], "`"))
	}
	return names
}

// docs/verdict.md lists all causes, and all conditions with their thresholds.
func TestCausesAndConditions_MatchDocs(t *testing.T) {
	want := []string{CauseUnknown, CauseOOMCgroup, CauseOOMHost, CauseOOMCPUSet, CauseOOMNUMA, CauseOOM, CauseStopped, CauseTimeLimit,
		CauseDiskFull, CauseSignal, CauseChildDied, CauseExited}
	if got := documentedCauses(t); !slices.Equal(got, want) {
		t.Errorf("causes %q, want %q", got, want)
	}
	thresholds := map[string][]any{
		CauseOOMCgroup: {collector.LimitUnreclaimablePct, collector.HostAvailablePct},
		CauseOOMHost:   {hostShortPct},
		CauseTimeLimit: {fmt.Sprint(killGrace.Minutes()) + " min"},
		CauseChildDied: {fmt.Sprint(crashBeforeEnd.Seconds()) + " s", fmt.Sprint(mercy.Seconds()) + " s"},
		CauseDiskFull:  {fmt.Sprint(fullMB) + " MiB", fmt.Sprint(lastSamples) + " samples"},

		ConditionThrottled: {reporter.MetricThrottled, throttledShare, 100 * quotaPart},
		ConditionMemoryStarved: {reporter.MetricJobPSIMemory, reporter.MetricPSIMemoryFull, 100 * memoryPart, memoryStall, reporter.MetricLimitMemory,
			memoryTightPct, memorySomeStall},
		ConditionIOWait:   {reporter.MetricJobPSIIO, reporter.MetricPSIIOFull, reporter.MetricIOWait, text.SizeText(ioRate) + "/s", ioStall},
		ConditionSwapping: {reporter.MetricSwapIn, reporter.MetricSwapOut, text.SizeText(swapTotal), text.SizeText(swapRate) + "/s"},
		ConditionGPUIdle:  {reporter.MetricGPUUtilization, 100 * gpuIdleKnown, gpuIdleShare, fmt.Sprint(gpuIdleAfter) + " s"},
	}
	for _, row := range tableIn(t, "verdict.md", "causes") {
		says(t, row[0], row[1], thresholds[strings.Trim(row[0], "`")])
	}
	var names []string
	for _, row := range tableIn(t, "verdict.md", "conditions") {
		name := strings.Trim(row[0], "`")
		names = append(names, name)
		says(t, name, row[1], thresholds[name])
	}
	var known []string
	for _, c := range Conditions() {
		known = append(known, c.Name)
	}
	if !slices.Equal(names, known) {
		t.Errorf("conditions in docs/verdict.md: %q, want those in the code: %q", names, known)
	}
}
