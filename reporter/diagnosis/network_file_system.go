package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// The thresholds for waiting on a network file system.
const (
	serverWait    = 20  // percent of the run that calls took
	serverStorage = 5   // percent of the time in which tasks waited for storage: then reads and writes held them up
	serverBusy    = 0.9 // of the CPUs that its threads can use: a job that used more did not wait
)

// judgeServer fires if the job waited for a network file system.
func judgeServer(e *ruleInput) *reporter.Finding {
	var all, worst mountWait
	for i := range e.Mounts {
		w := e.mountWait(&e.Mounts[i])
		all.seconds, all.calls = all.seconds+w.seconds, all.calls+w.calls
		if w.seconds > worst.seconds {
			worst = w
		}
	}
	pct := min(100, 100*all.seconds/e.wall)
	if worst.mount == nil || !(pct >= serverWait) || e.isCPUBound() {
		return nil
	}

	words := fmt.Sprintf("%s: calls to network file systems took %s, %s of the run if they came one after the other, ",
		worst.remedy(), text.Seconds(all.seconds), text.WholePercent(pct))
	if len(e.Mounts) > 1 {
		words += text.Seconds(worst.seconds) + " "
	}
	return &reporter.Finding{
		Text: words + worst.text() + ".",
		Evidence: evidence("wait_seconds", all.seconds, "wait_pct", pct, "calls", all.calls, "source", worst.mount.Source,
			"source_seconds", worst.seconds, "operation", worst.operation, "storage_wait_pct", e.storageWaitPct()),
	}
}

// mountWait sums up the calls to a mount that held tasks up: their time, their number, and the operation that took the
// longest.
type mountWait struct {
	mount          *reporter.Mount
	seconds, calls float64
	operation      string
}

// mountWait sums up the calls to m that held tasks up, as far as they are known. Reads and writes of NFS count only if
// tasks waited for storage.
func (e *ruleInput) mountWait(m *reporter.Mount) mountWait {
	w := mountWait{mount: m, seconds: finiteOrZero(m.ExecuteSeconds), calls: finiteOrZero(m.Calls)}
	behind := strings.HasPrefix(m.Type, "nfs") && !(e.storageWaitPct() >= serverStorage)
	for _, op := range m.Operations {
		switch {
		case behind && movesData(op.Name):
			w.seconds, w.calls = w.seconds-finiteOrZero(op.ExecuteSeconds), w.calls-finiteOrZero(op.Calls)
		case w.operation == "":
			w.operation = text.Clip(text.Printable(op.Name), 20)
		}
	}
	return w
}

// text names the mount and its calls.
func (w *mountWait) text() string {
	words := "for " + text.Clip(text.Printable(w.mount.Source), 40)
	if on := w.mount.MountedOn; len(on) > 0 {
		words += " on " + text.Clip(text.Printable(on[0]), 40)
	}
	if each := 1000 * w.seconds / w.calls; positive(w.calls) && positive(each) {
		words += fmt.Sprintf(", %s of %s each", text.Count(w.calls, "call", "calls"), text.Milliseconds(each))
	}
	if w.operation != "" {
		words += ", most of the time for " + w.operation
	}
	return words
}

// remedy returns what to change.
func (w *mountWait) remedy() string {
	if w.operation == "" || movesData(w.operation) {
		return "Copy what is used often to a local disk, or read and write in larger pieces"
	}
	return "Open and look up fewer files, keep many small ones in one, or copy them to a local disk"
}

// movesData reports whether the named operation reads or writes the data of files.
func movesData(operation string) bool {
	return slices.Contains([]string{"READ", "WRITE", "COMMIT", "READ_PLUS", "read", "write", "fsync"}, operation)
}

// storageWaitPct returns the share of the time in which a task of the job waited for storage, in percent. If that is
// unknown, it returns the share of any task of the node, then the CPUs' I/O wait, then NaN.
func (e *ruleInput) storageWaitPct() float64 {
	return firstKnown(e.mean(collector.JobPSIIOSome), e.mean(collector.PSIIOSome), e.Metric(reporter.MetricIOWait))
}

// isCPUBound reports whether the job kept busy nearly all CPUs that it may use and has threads for.
func (e *ruleInput) isCPUBound() bool {
	most := e.cpuLimit()
	if threads := e.Metric(reporter.MetricJobThreads); threads < most || math.IsNaN(most) {
		most = threads
	}
	return e.Metric(reporter.MetricJobCores) >= serverBusy*most
}
