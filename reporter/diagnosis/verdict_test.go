package diagnosis

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
)

// verdictCase is a job that ended, with few known facts. Tests add more facts.
type verdictCase struct {
	in   Input
	a    *collector.Account
	job  *reporter.Job
	last collector.Sample // newest
}

// A fact changes a case.
type fact = func(*verdictCase)

// verdictOf applies change to a job of 20 s that ended with the given code or signal, and returns the verdict.
func verdictOf(t *testing.T, code int, signal string, change fact) *reporter.Verdict {
	t.Helper()
	rec := collector.NewRecording(host.Instant{Wall: reportertest.RunStart}, time.Second, 1000)
	rec.End = host.Instant{Wall: at(20), Mono: 20 * time.Second, Boot: 20 * time.Second}
	rec.Account.Source, rec.Account.Group, rec.Account.MemoryPath = host.JobFromTree, "/slurm/job_1", "/slurm/job_1"
	start, end := reporter.Time{Time: at(0)}, reporter.Time{Time: at(20)}
	c := &verdictCase{a: &rec.Account, job: &reporter.Job{PID: 4242, Start: start, End: end, ExitCode: &code, Signal: signal}}
	c.in.Input = reporter.Input{Recording: rec, Job: c.job, Run: reporter.Run{ID: "r", Command: []string{"/opt/bin/python", "train.py"},
		Start: start, End: end, WallSeconds: 20, ExitCode: &code, Signal: signal}}
	for i := range c.last.Values {
		c.last.Values[i] = math.NaN()
	}
	change(c)
	rec.Add(&c.last)
	r := New(c.in)
	v := r.Nodes["0"].Verdict
	if !reflect.DeepEqual(r.Run.Verdict, v) {
		t.Errorf("the run's verdict is %+v, want the node's: %+v", r.Run.Verdict, v)
	}
	if v != nil {
		verdictWhole(t, v)
	}
	return v
}

// verdictWhole checks the invariants of verdicts: JSON preserves a verdict, and its text is one printable line.
func verdictWhole(t *testing.T, v *reporter.Verdict) {
	t.Helper()
	if v.Text == "" || v.Text != text.Printable(v.Text) || v.Evidence == nil || v.Conditions == nil {
		t.Errorf("verdict %+v, want a printable text, evidence and conditions", v)
	}
	data := check.Value(json.Marshal(v))(t)
	var again reporter.Verdict
	if err := json.Unmarshal(data, &again); err != nil || !reflect.DeepEqual(*v, again) {
		t.Errorf("verdict decoded from JSON: %+v, want %+v (error %v)", again, *v, err)
	}
	if !slices.Contains(documentedCauses(t), v.Cause) {
		t.Errorf("cause %q is not in the table of docs/verdict.md", v.Cause)
	}
}

// at returns the time at the given number of seconds after the start.
func at(seconds float64) time.Time {
	return reportertest.RunStart.Add(time.Duration(seconds * float64(time.Second)))
}

// term returns a SIGTERM at the given number of seconds after the start.
func term(seconds float64, pid int, process string) collector.Signal {
	return collector.Signal{Signal: "SIGTERM", Number: 15, At: at(seconds), PID: pid, Process: process}
}

// oomInGroup adds one kill in the job's group, with the given victims in the kernel's log. The group's counters prove
// nothing.
func oomInGroup(victims ...host.Victim) fact {
	return func(c *verdictCase) {
		c.a.OOMKills, c.a.HostOOMKills = 1, 1
		c.a.Limits.MemoryMB, c.a.LimitPeakMB = 2048, 2048
		c.a.OOMAt = at(9)
		c.a.Victims = victims
		c.a.LastOOMKill = &collector.OOMKill{At: c.job.End.Time, AvailableMB: 8000, AvailablePct: 50}
	}
}

// counted sets whether the counters of cgroup v2 attribute the kill to a limit of the group or below it, and to the
// job's limit.
func counted(inGroup, atLimit bool) fact {
	return func(c *verdictCase) {
		c.a.LastOOMKill.LimitEventsCounted, c.a.LastOOMKill.InGroup, c.a.LastOOMKill.AtLimit = true, inGroup, atLimit
		if atLimit {
			c.a.LimitOOMKills = 1
		}
	}
}

// available sets the percentage of the host's memory that was available before the kill.
func available(pct series.Optional) fact {
	return func(c *verdictCase) { c.a.LastOOMKill.AvailablePct, c.a.LastOOMKill.AvailableMB = pct, 160*pct }
}

// largest sets the peak memory of the largest process.
func largest(mb float64) fact { return func(c *verdictCase) { c.job.MaxRSSMB = mb } }

// alone makes the job alone in its group, crowded adds another process.
func alone(c *verdictCase)   { c.a.Neighbours = 0 }
func crowded(c *verdictCase) { c.a.Neighbours = 1 }

// earlier moves the kill to long before the end.
func earlier(c *verdictCase) { c.a.LastOOMKill.At = at(9) }

func victim(name string, pid int, group string, machine bool) host.Victim {
	v := host.Victim{Process: name, PID: pid, At: at(7), Group: group, Host: machine, Constraint: host.OOMOfGroup}
	if machine {
		v.Constraint = host.OOMOfHost
	}
	return v
}

// ofNodes makes v a victim of NUMA nodes that were out of memory.
func ofNodes(constraint, nodes string, v host.Victim) host.Victim {
	v.Constraint, v.Nodes, v.Host = constraint, nodes, true
	return v
}

// hostOOM adds a kill on a host where no group counts the job's kills.
func hostOOM(memory series.Optional, victims ...host.Victim) fact {
	return func(c *verdictCase) {
		c.a.HostOOMKills, c.a.Victims = 1, victims
		c.a.LastOOMKill = &collector.OOMKill{At: c.job.End.Time, AvailableMB: 160 * (100 - memory), AvailablePct: 100 - memory}
	}
}

// ours makes v a process of the job, judged by its parents.
func ours(v host.Victim) host.Victim {
	v.InJob = true
	return v
}

// limitedBy makes v a victim of the limit of a group.
func limitedBy(group string, v host.Victim) host.Victim {
	v.LimitGroup = group
	return v
}

// foreign makes v a process that was seen outside the job.
func foreign(v host.Victim) host.Victim {
	v.Foreign = true
	return v
}

// limitOf sets the group with the limit, and its peak.
func limitOf(group string, peak series.Optional) fact {
	return func(c *verdictCase) { c.a.Limits.MemoryGroup, c.a.LimitPeakMB = group, peak }
}

// inner sets the innermost group with the same limit.
func inner(group string) fact { return func(c *verdictCase) { c.a.InnerMemoryGroup = group } }

// fullAt sets the limit that the group had reached when the kernel killed a process.
func fullAt(mb series.Optional) fact { return func(c *verdictCase) { c.a.FullAtKillMB = mb } }

// timeoutAt adds a timeout(1) around perfagent that ends the job the given number of seconds after the start.
func timeoutAt(seconds float64) fact { return func(c *verdictCase) { c.in.Exit.Timeout = at(seconds) } }

func logPIDs(c *verdictCase) { c.a.SamePIDNamespace = true }

func sentTo(s ...collector.Signal) fact { return func(c *verdictCase) { c.in.Exit.Signals = s } }

func room(path string, freeMB float64, inodes series.Optional) host.FreeSpace {
	return host.FreeSpace{Path: path, FreeMB: freeMB, Inodes: inodes}
}

func roomLeft(rooms ...host.FreeSpace) fact { return func(c *verdictCase) { c.in.Exit.Space = rooms } }

// core returns a core file on the file system of a path.
func core(mb float64, path string) host.CoreFile {
	return host.CoreFile{File: path + "/core", MB: mb, Paths: []string{path}}
}

// dumped makes the main process dump core, into the given files if there are any.
func dumped(cores ...host.CoreFile) fact {
	return func(c *verdictCase) {
		c.in.Exit.CoreDumped, c.in.Exit.CoresWritten, c.in.Exit.Cores = true, true, cores
	}
}

// stopAt makes a rule stop the job the given number of seconds after the start.
func stopAt(seconds float64) fact {
	return func(c *verdictCase) {
		c.a.Stop = &collector.Stop{Rule: "job_memory_mb > 8000", Key: "job_memory_mb", Value: 8123, Signal: "SIGTERM", At: at(seconds)}
	}
}

// stopKilled makes the rule also send SIGKILL.
func stopKilled(c *verdictCase) { c.a.Stop.Killed = true }

func TestNewVerdict_FindsCause(t *testing.T) {
	nothing := func(*verdictCase) {}
	full := host.FreeSpace{Path: "/scratch", FreeMB: 0, Inodes: 100}
	slurm := func(limit float64) fact {
		return func(c *verdictCase) { c.in.Exit.Scheduler, c.in.Exit.TimeLimit = "Slurm", at(limit) }
	}
	old := func(c *verdictCase) { c.in.Exit.Scheduler = "Slurm" } // no end time is known
	usr1 := collector.Signal{Signal: "SIGUSR1", Number: 10, At: at(5), PID: 77, Process: "bash"}
	freed := func(mb float64) fact {
		return func(c *verdictCase) { c.last.Values[collector.DiskFree], c.last.Weights[collector.DiskFree] = mb, 1 }
	}
	own := func(c *verdictCase) { c.a.Source = host.JobFromGroup }
	noLog := all(oomInGroup(), alone)
	main := victim("python", 4242, "/slurm/job_1", false)
	stranger := victim("worker", 4300, "/slurm/job_1/step", false)
	child := ours(stranger)
	inKernel := func(v host.Victim) host.Victim { v.Group, v.Constraint = "", ""; return v } // the log has no group and no constraint
	for _, test := range []struct {
		name   string
		code   int
		signal string
		change fact
		cause  string
		text   string // part of the verdict's text
	}{
		{"success", 0, "", nothing, CauseExited, "exited with code 0"},
		{"failure", 7, "", nothing, CauseExited, "exited with code 7"},
		{"137 from a shell", 137, "", nothing, CauseExited, "SIGKILL ended its command"},
		{"crash", 139, "SIGSEGV", nothing, CauseSignal, "killed by SIGSEGV: "},
		{"kill -9", 137, "SIGKILL", nothing, CauseSignal, "does not say who"},
		{"kill", 143, "SIGTERM", sentTo(term(5, 77, "bash")), CauseSignal, "killed by SIGTERM from bash (process 77) at 12:00:05 UTC"},
		{"kill of the group", 143, "SIGTERM", sentTo(term(20.3, 77, "bash")), CauseSignal, "from bash"},
		{"signal after the end", 1, "", sentTo(term(20.3, 77, "timeout")), CauseExited, "exited with code 1"},
		{"SIGPIPE", 141, "SIGPIPE", nothing, CauseSignal, "killed by SIGPIPE: the reader of its pipe or socket had gone"},
		{"kill of the job alone", 143, "SIGTERM", nothing, CauseSignal, "sent to the job directly"},
		{"kill from another namespace", 143, "SIGTERM", sentTo(term(5, 0, "")), CauseSignal, "outside of this process namespace"},
		{"kill by an unknown process", 143, "SIGTERM", sentTo(term(5, -1, "")), CauseSignal, "from a process at"},
		{"kill by a process that has ended", 143, "SIGTERM", sentTo(term(5, 78, "")), CauseSignal, "from process 78"},
		{"a rule", 143, "SIGTERM", stopAt(9), CauseStopped, "stopped by the rule 'job_memory_mb > 8000': it was 7.9 GiB when perfagent sent SIGTERM at 12:00:09 UTC; the job died of SIGTERM"},
		{"a rule, exited with 0", 0, "", stopAt(9), CauseStopped, "; the job exited with code 0"},
		{"a rule, exited with 128+n", 143, "", stopAt(9), CauseStopped, "; the job exited with code 143"},
		{"a rule, killed", 137, "SIGKILL", all(stopAt(9), stopKilled), CauseStopped, "; SIGTERM did not end the job, SIGKILL did 11.0 s later"},
		{"a rule, remaining processes killed", 0, "", all(stopAt(9), stopKilled), CauseStopped, "; the job exited with code 0, and what it left running was killed"},
		{"a rule, then Ctrl-C", 130, "SIGINT", all(stopAt(9), sentTo(collector.Signal{Signal: "SIGINT", Number: 2, At: at(10), Kernel: true})), CauseStopped, "; the job died of SIGINT"},
		{"a rule, then the time limit", 143, "SIGTERM", all(stopAt(9), sentTo(term(15, 77, "timeout"))), CauseStopped, "stopped by the rule"},
		{"a rule, full disk", 1, "", all(stopAt(9), roomLeft(full)), CauseStopped, "stopped by the rule"},
		{"a rule before the OOM kill", 137, "SIGKILL", all(oomInGroup(main), stopAt(5)), CauseStopped, "; the job died of SIGKILL; its control group had 1 out-of-memory kill"},
		{"a rule after the OOM kill", 143, "SIGTERM", all(oomInGroup(child), counted(true, true), stopAt(9)), CauseOOMCgroup, "died of SIGTERM after the kernel killed a process: worker (process 4300) hit the memory limit of 2.0 GiB of its control group at 12:00:07 UTC; then the rule 'job_memory_mb > 8000' stopped the job at 12:00:09 UTC"},
		{"a rule after the OOM kill, killed", 137, "SIGKILL", all(oomInGroup(child), logPIDs, stopAt(9), stopKilled), CauseOOMCgroup, "died of SIGKILL after the kernel killed a process: worker (process 4300)"},
		{"a rule after a harmless OOM kill", 0, "", all(oomInGroup(child), stopAt(9)), CauseStopped, "; its control group had 1 out-of-memory kill"},
		{"a rule after an OOM kill of a neighbour", 143, "SIGTERM", all(oomInGroup(foreign(stranger)), stopAt(9)), CauseStopped, "stopped by the rule"},
		{"128+n", 143, "", sentTo(term(5, 77, "bash")), CauseSignal, "exited with code 143, as programs do after SIGTERM from bash"},
		{"128+n, then another signal", 143, "", sentTo(term(5, 77, "bash"), usr1), CauseSignal, "exited with code 143, as programs do after SIGTERM from bash"},
		{"128+n of USR1", 138, "", sentTo(usr1), CauseSignal, "exited with code 138, as programs do after SIGUSR1 from bash"},
		{"not found after USR1", 127, "", sentTo(usr1), CauseExited, "exited with code 127"},
		{"128 after a signal without a number", 128, "", sentTo(collector.Signal{Signal: "SIGUSR1", At: reportertest.RunStart}), CauseExited, "exited with code 128"},
		{"signal handled, failure", 3, "", sentTo(term(5, 77, "bash")), CauseExited, "exited with code 3 after SIGTERM from bash"},
		{"signal handled, success", 0, "", sentTo(term(5, 77, "timeout")), CauseExited, "exited with code 0"},
		{"Ctrl-C", 130, "SIGINT", sentTo(collector.Signal{Signal: "SIGINT", Number: 2, At: reportertest.RunStart, Kernel: true, PID: -1}), CauseSignal, "from the terminal (Ctrl-C)"},

		{"OOM of the main process", 137, "SIGKILL", all(oomInGroup(main), counted(true, true)), CauseOOMCgroup,
			"killed by the kernel: python (process 4242) hit the memory limit of 2.0 GiB of its control group at 12:00:07 UTC"},
		{"OOM, counted", 137, "SIGKILL", all(noLog, counted(true, true)), CauseOOMCgroup, "killed by the kernel: python (process 4242) hit the memory limit of 2.0 GiB"},
		{"OOM, largest process near the limit", 137, "SIGKILL", all(noLog, largest(1900)), CauseOOMCgroup, "hit the memory limit of 2.0 GiB"},
		{"OOM, largest process near the limit, host short of memory", 137, "SIGKILL", all(noLog, largest(1900), available(4.9)), CauseOOM, "which is not known"},
		{"OOM, largest process near the limit, no limit counted", 137, "SIGKILL", all(noLog, largest(1900), counted(false, false)), CauseOOM, "which is not known"},
		{"OOM, no proof", 137, "SIGKILL", all(noLog, largest(1700)), CauseOOM,
			"killed by the kernel: python (process 4242) ran out of memory at 12:00:09 UTC; it was a limit of its control group, or of the host: which is not known"},
		{"OOM, no limit", 137, "SIGKILL", all(noLog, func(c *verdictCase) { c.a.Limits.MemoryMB = series.Unknown() }), CauseOOM, "which is not known"},
		{"OOM of the host, no log", 137, "SIGKILL", all(noLog, available(1.9)), CauseOOMHost, "because the host was out of memory at 12:00:09 UTC; 98 % of it was in use in the sample before"},
		{"OOM of a child of the host, no log", 1, "", all(noLog, available(1.9)), CauseOOMHost, "exited with code 1 after the kernel killed a process: a process was killed because the host"},
		{"OOM, counted, and the host was short", 137, "SIGKILL", all(noLog, available(1.9), counted(true, true)), CauseOOMCgroup, "hit the memory limit of 2.0 GiB"},
		{"OOM of a child, counted", 1, "", all(noLog, counted(true, true)), CauseOOMCgroup, "after the kernel killed a process: a process hit the memory limit of 2.0 GiB of its control group at 12:00:09 UTC"},
		{"OOM of a child, no proof", 1, "", noLog, CauseOOM, "exited with code 1 after the kernel killed a process: a process ran out of memory"},
		{"OOM in a shared group, 137 from a shell", 137, "", oomInGroup(), CauseExited, "its control group had 1 out-of-memory kill, not known to be the job's"},
		{"OOM in a shared group, failure", 1, "", all(oomInGroup(), counted(true, true)), CauseExited, "exited with code 1; its control group had 1 out-of-memory kill, not known to be the job's"},
		{"OOM, other processes entered the group", 1, "", all(own, noLog, counted(true, true), crowded), CauseExited, "not known to be the job's"},
		{"OOM in a shared group, SIGKILL", 137, "SIGKILL", all(oomInGroup(), counted(true, true)), CauseOOM,
			"killed by SIGKILL when the kernel had killed a process of its control group, which holds others, too, for lack of memory; it was"},
		{"earlier OOM in a shared group, SIGKILL", 137, "SIGKILL", all(oomInGroup(), counted(true, true), earlier), CauseSignal, "not known to be the job's"},
		{"OOM survived, then kill -9", 137, "SIGKILL", all(noLog, counted(true, true), earlier), CauseSignal, "does not say who sent it; before, its control group had 1 out-of-memory kill of other processes"},
		{"OOM of a cpuset", 137, "SIGKILL", oomInGroup(ofNodes(host.OOMOfCPUSet, "1", main)), CauseOOMCPUSet,
			"killed by the kernel: python (process 4242) was killed because NUMA node 1, all that its cpuset allows, was out of memory at 12:00:07 UTC"},
		{"OOM of a memory policy", 3, "", oomInGroup(ofNodes(host.OOMOfPolicy, "0-1,3", child)), CauseOOMNUMA,
			"exited with code 3 after the kernel killed a process: worker (process 4300) was killed because NUMA nodes 0-1,3, all that its memory policy allows, were out of memory at"},
		{"OOM of a cpuset, without nodes", 137, "SIGKILL", oomInGroup(ofNodes(host.OOMOfCPUSet, "", main)), CauseOOMCPUSet, "because the NUMA nodes, all that its cpuset allows, were out"},
		{"OOM without a constraint in the log", 137, "SIGKILL", oomInGroup(ofNodes("", "", main)), CauseOOM, "which is not known"},
		{"OOM of a stranger", 3, "", oomInGroup(stranger), CauseExited, "exited with code 3; its control group had 1 out-of-memory kill, not known to be the job's"},
		{"OOM of a stranger, crash", 139, "SIGSEGV", all(oomInGroup(stranger), counted(true, true)), CauseSignal, "killed by SIGSEGV"},
		{"OOM of a stranger, 137 from a shell", 137, "", oomInGroup(stranger), CauseExited, "not known to be the job's"},
		{"host OOM of a stranger", 3, "", oomInGroup(victim("worker", 4300, "/slurm/job_1/step", true)), CauseExited, "not known to be the job's"},
		{"OOM of a stranger in the job's own group", 3, "", all(alone, oomInGroup(stranger)), CauseOOMCgroup, "worker (process 4300)"},
		{"OOM, only the second line in the log", 3, "", all(alone, oomInGroup(inKernel(stranger)), counted(true, true)), CauseOOMCgroup, "worker (process 4300) hit the memory limit of 2.0 GiB"},
		{"OOM survived", 0, "", oomInGroup(child), CauseExited, "although its control group had 1 out-of-memory kill"},
		{"OOM of a sibling, kill -9", 137, "SIGKILL", oomInGroup(victim("other", 99, "/slurm/job_1", false)), CauseSignal, "does not say who"},
		{"OOM of the whole group", 137, "SIGKILL", all(own, oomInGroup(stranger)), CauseOOMCgroup, "worker"},
		{"OOM of a child, then TERM", 143, "SIGTERM", all(oomInGroup(child), sentTo(term(5, 77, "bash"))), CauseSignal, "SIGTERM from bash"},
		{"OOM of a child, then abort", 134, "SIGABRT", oomInGroup(child), CauseOOMCgroup, "died of SIGABRT after the kernel killed"},
		{"OOM before TERM then KILL", 137, "SIGKILL", all(oomInGroup(main), sentTo(term(5, 77, "bash"))), CauseOOMCgroup, "python"},
		{"OOM of a neighbour", 4, "", oomInGroup(foreign(stranger)), CauseExited, "exited with code 4; its control group had 1 out-of-memory kill, not of the job's processes"},
		{"OOM of a neighbour, success", 0, "", oomInGroup(foreign(stranger)), CauseExited, "exited with code 0"},
		{"OOM of a neighbour, 137 from a shell", 137, "", oomInGroup(foreign(stranger)), CauseExited, "not of the job's processes"},
		{"OOM of a neighbour and of a child", 4, "", oomInGroup(foreign(victim("other", 99, "/slurm/job_1", false)), child), CauseOOMCgroup, "worker"},
		{"OOM at the limit of a child group", 3, "", all(oomInGroup(limitedBy("/slurm/job_1/inner", child)), limitOf("/slurm/job_1", 52)), CauseOOMCgroup,
			"worker (process 4300) hit the memory limit of the control group /slurm/job_1/inner at 12:00:07 UTC"},
		{"OOM at the limit", 3, "", all(oomInGroup(limitedBy("/slurm/job_1", child)), limitOf("/slurm/job_1", 52)), CauseOOMCgroup, "hit the memory limit of 2.0 GiB of its control group"},
		{"OOM at the same limit of a parent group", 3, "", all(oomInGroup(limitedBy("/slurm/job_1", child)), limitOf("/slurm", 52), inner("/slurm/job_1/step")), CauseOOMCgroup, "hit the memory limit of 2.0 GiB of its control group"},
		{"OOM at a parent's limit, job's group nearly full", 3, "", all(oomInGroup(limitedBy("/slurm", child)), limitOf("/slurm/job_1", 2047)), CauseOOMCgroup, "hit the memory limit of the control group /slurm at"},
		{"OOM at a limit that was raised later", 3, "", all(oomInGroup(limitedBy("/slurm", child)), limitOf("/slurm", 300), fullAt(200)), CauseOOMCgroup, "hit the memory limit of 200 MiB of its control group at 12:00:07 UTC"},
		{"OOM of a child, then kill -9, own group", 137, "SIGKILL", all(own, logPIDs, oomInGroup(child)), CauseSignal,
			"killed by SIGKILL; the kernel does not say who sent it; before, its control group had 1 out-of-memory kill of other processes"},
		{"OOM of a child, then TERM, exited with 143", 143, "", all(oomInGroup(child), sentTo(term(15, 77, "bash"))), CauseSignal, "as programs do after SIGTERM"},
		{"OOM of a child, then command not found", 127, "", oomInGroup(child), CauseExited, "exited with code 127"},
		{"OOM in a child group, then OOM without a group", 3, "", all(oomInGroup(limitedBy("/slurm/job_1/inner", child), inKernel(victim("other", 4301, "", false))), limitOf("/slurm/job_1", 2048)), CauseOOMCgroup, "the control group /slurm/job_1/inner"},
		{"OOM at a higher limit of a parent group", 3, "", all(oomInGroup(limitedBy("/slurm", child)), limitOf("/slurm/job_1", 52)), CauseOOMCgroup, "hit the memory limit of the control group /slurm at"},
		{"OOM at the limit of a child group, counted", 3, "", all(noLog, counted(true, false)), CauseOOMCgroup, "a process hit the memory limit of a control group within or around its own at 12:00:09 UTC"},
		{"log names another group", 1, "", hostOOM(50, victim("hog", 99, "/other", false)), CauseExited, "exited with code 1"},

		{"host OOM by the log", 137, "SIGKILL", hostOOM(97, victim("python", 4242, "/slurm/job_1", true)), CauseOOMHost,
			"killed by the kernel: python (process 4242) was killed because the host was out of memory at 12:00:07 UTC; 97 % of it was in use in the sample before"},
		{"host OOM by the log, sampled long before", 137, "SIGKILL", hostOOM(12, victim("python", 4242, "/slurm/job_1", true)), CauseOOMHost, "12 % of it was in use in the sample before"},
		{"host OOM, also counted in the group", 137, "SIGKILL", all(hostOOM(97, victim("python", 4242, "/slurm/job_1", true)),
			func(c *verdictCase) { c.a.OOMKills = 1 }), CauseOOMHost, "host was out of memory"},
		{"host OOM, no log", 137, "SIGKILL", hostOOM(98.1), CauseOOMHost, "host was out of memory"},
		{"host OOM, no log, the group counted none", 137, "SIGKILL", all(hostOOM(98.1), func(c *verdictCase) { c.a.OOMKills = 0 }), CauseSignal, "not known to be the job's"},
		{"host OOM of a child in the root group", 137, "", all(hostOOM(97, ours(victim("worker", 99, "/", true))),
			func(c *verdictCase) { c.a.MemoryPath = "/" }), CauseOOMHost, "worker"},
		{"host OOM of others, kill -9", 137, "SIGKILL", hostOOM(99, victim("hog", 99, "/other", true)), CauseSignal, "not known to be the job's"},
		{"others' OOM, kill -9, free memory", 137, "SIGKILL", hostOOM(97.9), CauseSignal, "does not say who"},
		{"others' OOM, failure", 1, "", hostOOM(99), CauseExited, "exited with code 1"},

		{"TERM, then KILL", 137, "SIGKILL", all(old, sentTo(term(15, 77, "slurmstepd"))), CauseTimeLimit,
			"ended at a time limit of Slurm: SIGTERM from slurmstepd (process 77) at 12:00:15 UTC, SIGKILL 5.0 s later"},
		{"TERM from another namespace, then KILL", 137, "SIGKILL", all(old, sentTo(term(15, 0, ""))), CauseTimeLimit, "outside of this process namespace"},
		{"TERM from an unknown process, then KILL", 137, "SIGKILL", all(old, sentTo(term(15, -1, ""))), CauseTimeLimit, "a process at"},
		{"TERM from bash, TERM from the scheduler, then KILL", 137, "SIGKILL", all(old, sentTo(term(5, 77, "bash"), term(15, 78, "flux-shell-3"))), CauseTimeLimit, "flux-shell-3"},
		{"timeout, at its end time", 143, "SIGTERM", all(timeoutAt(15), sentTo(term(15, 77, "timeout"))), CauseTimeLimit, "ended at a time limit: SIGTERM from timeout"},
		{"timeout, before its end time", 143, "SIGTERM", all(timeoutAt(1000), sentTo(term(15, 77, "timeout"))), CauseSignal, "killed by SIGTERM from timeout"},
		{"TERM from a shell, then KILL", 137, "SIGKILL", sentTo(term(15, 77, "bash")), CauseSignal,
			"killed by SIGKILL; the kernel does not say who sent it; SIGTERM from bash (process 77) at 12:00:15 UTC had come before"},
		{"TERM from a shell under a scheduler, then KILL", 137, "SIGKILL", all(old, sentTo(term(15, 77, "bash"))), CauseSignal, "killed by SIGKILL"},
		{"TERM from a process that has ended, then KILL", 137, "SIGKILL", all(old, sentTo(term(15, 77, ""))), CauseSignal, "killed by SIGKILL"},
		{"TERM, then KILL, without a scheduler", 137, "SIGKILL", sentTo(term(15, 0, "")), CauseSignal, "killed by SIGKILL"},
		{"TERM, then KILL much later", 137, "SIGKILL", all(old, func(c *verdictCase) {
			c.in.Exit.Signals, c.job.End = []collector.Signal{term(15, 77, "slurmstepd")}, reporter.Time{Time: reportertest.RunStart.Add(15*time.Second + killGrace + 1)}
		}), CauseSignal, "killed by SIGKILL"},
		{"TERM from timeout, then KILL much later", 137, "SIGKILL", func(c *verdictCase) {
			c.in.Exit.Signals, c.job.End = []collector.Signal{term(15, 77, "timeout")}, reporter.Time{Time: reportertest.RunStart.Add(time.Hour)}
		}, CauseTimeLimit, "SIGTERM from timeout"},
		{"timeout", 143, "SIGTERM", sentTo(term(20, 77, "timeout")), CauseTimeLimit, "SIGTERM from timeout (process 77)"},
		{"timeout, handled", 1, "", sentTo(term(19, 77, "timeout")), CauseTimeLimit, "the job exited with code 1"},
		{"end time reached", 143, "SIGTERM", all(slurm(18), sentTo(term(19, 77, "slurmstepd"))), CauseTimeLimit, "time limit of Slurm"},
		{"shortly before the end time", 143, "SIGTERM", all(slurm(19+limitSlack.Seconds()), sentTo(term(19, 77, "slurmstepd"))), CauseTimeLimit, "time limit of Slurm"},
		{"cancelled", 143, "SIGTERM", all(slurm(3600), sentTo(term(19, 77, "slurmstepd"))), CauseSignal, "killed by SIGTERM from slurmstepd"},
		{"cancelled and killed", 137, "SIGKILL", all(slurm(3600), sentTo(term(15, 77, "slurmstepd"))), CauseSignal, "killed by SIGKILL"},
		{"timeout as the command", 124, "", func(c *verdictCase) { c.in.Run.Command = []string{"timeout", "20", "x"} }, CauseTimeLimit, "124"},
		{"timeout -k as the command", 137, "", func(c *verdictCase) { c.in.Run.Command = []string{"timeout", "-k1", "20", "x"} }, CauseTimeLimit, "SIGKILL"},
		{"124 of another command", 124, "", nothing, CauseExited, "exited with code 124"},

		{"disk full", 1, "", roomLeft(room("/", 9000, 9000), full), CauseDiskFull, "exited with code 1, and no room was left on the file system of /scratch when it ended"},
		{"disk full before the start", 1, "", all(roomLeft(full), fullBefore("/scratch")), CauseExited, "exited with code 1; the file system of /scratch was full before it began, and is"},
		{"another disk full before the start", 1, "", all(roomLeft(full), fullBefore("/tmp")), CauseDiskFull, "of /scratch when it ended"},
		{"one disk full before the start, another at the end", 1, "", all(roomLeft(full, room("/tmp", 0, 7)), fullBefore("/scratch")), CauseDiskFull, "of /tmp when it ended"},
		{"disk full before the start, success", 0, "", all(roomLeft(full), fullBefore("/scratch")), CauseExited, "exited with code 0"},
		{"disk full all the time", 1, "", all(freed(0.5), fullBefore("/scratch"), func(c *verdictCase) { c.in.Exit.DiskPaths = []string{"/scratch"} }), CauseExited, ""},
		{"no inodes", 1, "", roomLeft(room("/tmp", 9000, 0)), CauseDiskFull, "no inodes left"},
		{"inodes unlimited", 1, "", roomLeft(room("/tmp", 9000, series.Unknown())), CauseExited, ""},
		{"bus error on a full disk", 135, "SIGBUS", roomLeft(full), CauseDiskFull, "died of SIGBUS"},
		{"full disk, success", 0, "", roomLeft(full), CauseExited, ""},
		{"full disk, killed", 137, "SIGKILL", roomLeft(full), CauseSignal, ""},
		{"full disk, SIGTERM", 143, "", all(roomLeft(full), sentTo(term(5, 77, "bash"))), CauseSignal, ""},
		{"full disk, checkpoint, failure", 1, "", all(roomLeft(full), sentTo(usr1)), CauseDiskFull, ""},
		{"full disk, OOM", 1, "", all(roomLeft(full), oomInGroup(child)), CauseOOMCgroup, ""},
		{"enough room", 1, "", roomLeft(room("/", 1, 1)), CauseExited, ""},
		{"disk filled by a core", 134, "SIGABRT", all(roomLeft(full), dumped(core(24, "/scratch"))), CauseSignal,
			"killed by SIGABRT: it aborted itself, or the signal was sent to it; a core file of 24 MiB filled the file system of /scratch"},
		{"disk filled by a core, segmentation fault", 139, "SIGSEGV", all(roomLeft(full), dumped(core(24, "/scratch"))), CauseSignal, "; a core file of 24 MiB filled the file system of /scratch"},
		{"disk filled by a child's core", 134, "", all(roomLeft(full), func(c *verdictCase) { c.in.Exit.Cores = []host.CoreFile{core(24, "/scratch")} }), CauseExited,
			"exited with code 134, as a shell does when SIGABRT ended its command; a core file of 24 MiB filled the file system of /scratch"},
		{"full disk, no room for a core", 134, "SIGABRT", all(roomLeft(full), dumped(core(0, "/scratch"))), CauseDiskFull, "died of SIGABRT, and no room"},
		{"full disk, core on another disk", 134, "SIGABRT", all(roomLeft(full), dumped(core(24, "/tmp"))), CauseDiskFull, "died of SIGABRT, and no room"},
		{"disk filled by a core, another disk full", 134, "SIGABRT", all(roomLeft(full, room("/tmp", 0, 9)), dumped(core(24, "/scratch"))), CauseDiskFull, "of /tmp when it ended"},
		{"full disk, core not found", 134, "SIGABRT", all(roomLeft(full), dumped()), CauseSignal, "; its core was dumped, and no room was left on the file system of /scratch"},
		{"full disk, core piped to a program", 134, "SIGABRT", all(roomLeft(full), dumped(), func(c *verdictCase) { c.in.Exit.CoresWritten = false }), CauseDiskFull, "no room"},
		{"disk full before the start, core", 134, "SIGABRT", all(roomLeft(full), fullBefore("/scratch"), dumped(core(0.5, "/scratch"))), CauseSignal, "killed by SIGABRT: it aborted itself, or the signal was sent to it"},
		{"disk filled by a core in the last samples", 134, "SIGABRT", all(freed(0), dumped(core(24, "/scratch")), func(c *verdictCase) { c.in.Exit.DiskPaths = []string{"/scratch"} }), CauseSignal, "killed by SIGABRT"},

		{"disk full in the last samples", 1, "", all(freed(0.5), func(c *verdictCase) { c.in.Exit.DiskPaths = []string{"/scratch"} }), CauseDiskFull, "of /scratch in the last samples"},
		{"disk not full in the last samples", 1, "", all(freed(1), func(c *verdictCase) { c.in.Exit.DiskPaths = []string{"/scratch"} }), CauseExited, ""},

		{"status lost", 255, "", func(c *verdictCase) { c.in.Exit.UnknownReason = "wait for process 4242: no child" }, CauseUnknown, "no child"},
		{"journal", 0, "", func(c *verdictCase) { c.in.Job, c.in.Run.Incomplete = nil, "from the journal" }, CauseUnknown, "not known: from the journal"},
		{"hostile names", 137, "SIGKILL", oomInGroup(victim(reportertest.Hostile, 4242, "/slurm/job_1", false)), CauseOOMCgroup, ""},
		{"hostile sender", 143, "SIGTERM", sentTo(term(5, 77, reportertest.Hostile)), CauseSignal, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verdictOf(t, test.code, test.signal, test.change)
			if v.Cause != test.cause || !strings.Contains(v.Text, test.text) {
				t.Errorf("verdict %s: %q\nwant %s with %q", v.Cause, v.Text, test.cause, test.text)
			}
		})
	}
}

// fullBefore makes the file system of path full before the job starts.
func fullBefore(path string) fact {
	return func(c *verdictCase) {
		c.in.Exit.SpaceBefore = []host.FreeSpace{room("/else", 9000, 9000), room(path, 0, 9000)}
	}
}

func TestNewVerdict_RecordsEvidence(t *testing.T) {
	for _, test := range []struct {
		code   int
		signal string
		change fact
		want   string
	}{
		{7, "", func(*verdictCase) {}, `{"exit_code":7}`},
		{0, "", sentTo(term(5, 77, "bash")),
			`{"exit_code":0,"sender":"bash","sender_pid":77,"sent_signal":"SIGTERM","signal_time":"2024-05-01T12:00:05Z"}`},
		{143, "SIGTERM", sentTo(term(5, 77, "bash")),
			`{"exit_code":143,"sender":"bash","sender_pid":77,"sent_signal":"SIGTERM","signal":"SIGTERM","signal_time":"2024-05-01T12:00:05Z"}`},
		{137, "SIGKILL", all(oomInGroup(victim("python", 4242, "/slurm/job_1", false)), counted(true, true)),
			`{"command":"/opt/bin/python train.py","exit_code":137,"limit_kills":1,"limit_mb":2048,"oom_kills":1,"peak_mb":2048,"pid":4242,"process":"python","signal":"SIGKILL","time":"2024-05-01T12:00:07Z"}`},
		{1, "", all(oomInGroup(), alone, counted(true, true)),
			`{"exit_code":1,"limit_kills":1,"limit_mb":2048,"oom_kills":1,"peak_mb":2048,"time":"2024-05-01T12:00:09Z"}`},
		{3, "", all(oomInGroup(limitedBy("/slurm/job_1/inner", ours(victim("worker", 4300, "/slurm/job_1/inner", false)))), limitOf("/slurm/job_1", 52)),
			`{"command":"worker","exit_code":3,"group":"/slurm/job_1/inner","limit_group":"/slurm/job_1/inner","limit_kills":0,"oom_kills":1,"pid":4300,"process":"worker","time":"2024-05-01T12:00:07Z"}`},
		{3, "", all(oomInGroup(limitedBy("/slurm", ours(victim("worker", 4300, "/slurm/job_1/inner", false)))), limitOf("/slurm", 2048)),
			`{"command":"worker","exit_code":3,"group":"/slurm","limit_group":"/slurm","limit_kills":1,"limit_mb":2048,"oom_kills":1,"peak_mb":2048,"pid":4300,"process":"worker","time":"2024-05-01T12:00:07Z"}`},
		{3, "", all(oomInGroup(), alone), `{"exit_code":3,"limit_kills":0,"oom_kills":1,"time":"2024-05-01T12:00:09Z"}`},
		{137, "SIGKILL", oomInGroup(), `{"exit_code":137,"limit_kills":0,"oom_kills":1,"signal":"SIGKILL","time":"2024-05-01T12:00:20Z"}`},
		{137, "SIGKILL", all(oomInGroup(), alone, available(1)),
			`{"available_mb":160,"command":"/opt/bin/python train.py","exit_code":137,"host_memory_pct":99,"host_oom_kills":1,"limit_kills":0,"oom_kills":1,"pid":4242,"process":"python","signal":"SIGKILL","time":"2024-05-01T12:00:09Z"}`},
		{3, "", oomInGroup(ofNodes(host.OOMOfCPUSet, "0-1", ours(victim("worker", 4300, "/slurm/job_1", false)))),
			`{"command":"worker","exit_code":3,"limit_kills":0,"nodes":"0-1","oom_kills":1,"pid":4300,"process":"worker","time":"2024-05-01T12:00:07Z"}`},
		{0, "", oomInGroup(foreign(victim("other", 99, "/slurm/job_1", false))), `{"exit_code":0}`},
		{139, "SIGSEGV", dumped(core(24, "/scratch"), core(3, "/tmp")),
			`{"core_dumped":true,"core_mb":24,"exit_code":139,"signal":"SIGSEGV"}`},
		{1, "", roomLeft(room("/scratch/", 0.25, 7)),
			`{"available_inodes":7,"available_mb":0.25,"exit_code":1,"path":"/scratch","time":"2024-05-01T12:00:20Z"}`},
	} {
		v := verdictOf(t, test.code, test.signal, test.change)
		if got := check.Value(json.Marshal(v.Evidence))(t); string(got) != test.want {
			t.Errorf("evidence of %s:\ngot  %s\nwant %s", v.Cause, got, test.want)
		}
	}
}

// Only kills at the limit imposed on the job count for that limit.
func TestLimitKills_CountsOnlyKillsAtJobsLimit(t *testing.T) {
	child := victim("worker", 4300, "/slurm/job_1/inner", false)
	elsewhere := victim("hog", 99, "/other", false)
	for _, test := range []struct {
		name    string
		kills   series.Optional
		group   string // that sets the limit
		peak    series.Optional
		victims []host.Victim
		want    float64
	}{
		{"no kills", 0, "/slurm", 2048, nil, 0},
		{"kills unknown", series.Unknown(), "/slurm", 2048, nil, 0},
		{"no counter of the limit", 2, "/slurm", 2048, nil, 0},
		{"one counted", 2, "/slurm", 2048, nil, 1},
		{"the newest counted", 2, "/slurm", 2048, nil, 2},
		{"victim outside the job", 1, "/slurm", 2048, []host.Victim{foreign(limitedBy("/slurm", child))}, 0},
		{"at the limit", 1, "/slurm", 52, []host.Victim{limitedBy("/slurm", child)}, 1},
		{"at a limit below", 1, "/slurm", 2048, []host.Victim{limitedBy("/slurm/job_1/inner", child)}, 0},
		{"at the limit and below", 3, "/slurm", 2048, []host.Victim{limitedBy("/slurm/job_1/inner", child), limitedBy("/slurm", child)}, 1},
		{"victim in another group", 1, "/slurm", 2048, []host.Victim{limitedBy("/other", elsewhere)}, 0},
		{"host out of memory", 1, "/slurm", 52, []host.Victim{victim("worker", 4300, "/slurm/job_1/inner", true)}, 0},
		{"perhaps at a hidden limit", 1, "", series.Unknown(), []host.Victim{limitedBy("/slurm", child)}, 0},
		{"below a hidden limit", 1, "", series.Unknown(), []host.Victim{limitedBy("/slurm/job_1/inner", child)}, 0},
		{"group with another name in the log", 1, "/", series.Unknown(), []host.Victim{limitedBy("/pods/a", victim("worker", 4300, "/pods/a", false))}, 0},
	} {
		a := collector.NoAccount()
		a.OOMKills, a.MemoryPath, a.Victims = test.kills, "/slurm/job_1", test.victims
		a.Limits.MemoryMB, a.Limits.MemoryGroup, a.LimitPeakMB = 2048, test.group, test.peak
		switch test.name {
		case "one counted":
			a.LimitOOMKills, a.LastOOMKill = 1, &collector.OOMKill{LimitEventsCounted: true}
		case "the newest counted":
			a.LimitOOMKills, a.LastOOMKill = 1, &collector.OOMKill{LimitEventsCounted: true, AtLimit: true}
		}
		if got := reporter.LimitKills(&a, nil); got != test.want {
			t.Errorf("%s: LimitKills = %v, want %v", test.name, got, test.want)
		}
	}
}

// A sidecar gets no verdict.
func TestNewVerdict_SidecarHasNone(t *testing.T) {
	if v := verdictOf(t, 0, "", func(c *verdictCase) { c.in.Job, c.in.Run.Command = nil, nil }); v != nil {
		t.Errorf("verdict on a sidecar %+v, want none", v)
	}
}

func TestNewVerdict_FindsConditions(t *testing.T) {
	sample := func(c collector.Column, v float64) fact {
		return func(k *verdictCase) { k.last.Values[c], k.last.Weights[c] = v, 20 }
	}
	gpus := func(seconds, utilization float64, ofJob bool) fact {
		return func(c *verdictCase) {
			c.in.Run.WallSeconds = seconds
			c.in.Recording.GPUs = []collector.GPU{{OfJob: ofJob}}
			c.in.Recording.EnsureGPUColumns(1)
			sample(collector.GPUColumn(0, collector.GPUUtilization), utilization)(c)
		}
	}
	gpuFor := func(seconds float64) fact {
		return func(c *verdictCase) { c.last.Weights[collector.GPUColumn(0, collector.GPUUtilization)] = seconds }
	}
	throttled := func(periods, throttled series.Optional) fact {
		return func(c *verdictCase) { c.a.Periods, c.a.ThrottledPeriods = periods, throttled }
	}
	stall := func(into func(*collector.Account) *series.Optional, v series.Optional) fact {
		return func(c *verdictCase) { *into(c.a) = v }
	}
	moved := func(mb float64) fact {
		return func(c *verdictCase) {
			c.in.Job = &reporter.Job{ExitCode: new(0)}
			sample(collector.JobRead, mb)(c)
			sample(collector.JobWrite, 0)(c)
		}
	}
	shared := func(share float64) fact { // of a quota of 2 CPUs
		return func(c *verdictCase) {
			c.a.Source, c.a.Limits.CPUQuota = host.JobFromTree, 2
			c.a.CPUSeconds = series.Optional(share * 2 * c.in.Run.WallSeconds)
		}
	}
	memory := func(share float64) fact {
		return func(c *verdictCase) {
			c.in.Recording.Host.MemoryMB = 1000
			c.in.Job = &reporter.Job{ExitCode: new(0), MaxRSSMB: share * 1000}
		}
	}
	jobIO := func(a *collector.Account) *series.Optional { return &a.JobStall.IOFull }
	hostIO := func(a *collector.Account) *series.Optional { return &a.HostStall.IOFull }
	jobFull := func(a *collector.Account) *series.Optional { return &a.JobStall.MemoryFull }
	jobSome := func(a *collector.Account) *series.Optional { return &a.JobStall.MemorySome }
	hostFull := func(a *collector.Account) *series.Optional { return &a.HostStall.MemoryFull }
	short := func(c *verdictCase) { c.in.Run.WallSeconds = 0.5 }
	for _, test := range []struct {
		name   string
		change fact
		want   string // "" = none
		key    string // key of its evidence
		value  float64
	}{
		{"throttled", throttled(200, 20), ConditionThrottled, "job_throttled_periods_pct", 10},
		{"throttled with others", all(throttled(200, 20), shared(0.1)), ConditionThrottled, "job_throttled_periods_pct", 10},
		{"others were throttled", all(throttled(200, 20), shared(0.09)), "", "", 0},
		{"throttled a little", throttled(200, 19), "", "", 0},
		{"throttled in a short run", all(throttled(5, 5), short), "", "", 0},
		{"memory", stall(jobFull, 2), ConditionMemoryStarved, "job_psi_memory_full_avg_pct", 10},
		{"memory of the host", all(stall(hostFull, 2), memory(0.1)), ConditionMemoryStarved, "psi_memory_full_avg_pct", 10},
		{"memory of the host, a small job", all(stall(hostFull, 20), memory(0.09)), "", "", 0},
		{"memory of others", all(stall(hostFull, 20), stall(jobFull, 1)), "", "", 0},
		{"limit with stalls", all(sample(collector.LimitMemoryPercent, 95), stall(jobSome, 0.5)), ConditionMemoryStarved, "max_t_limit_memory_pct", 95},
		{"limit without stalls", sample(collector.LimitMemoryPercent, 99), "", "", 0},
		{"limit not reached", all(sample(collector.LimitMemoryPercent, 94), stall(jobSome, 0.5)), "", "", 0},
		{"storage", stall(jobIO, 4), ConditionIOWait, "job_psi_io_full_avg_pct", 20},
		{"storage of the host", all(stall(hostIO, 4), moved(1.25)), ConditionIOWait, "psi_io_full_avg_pct", 20},
		{"storage of the host, by others", all(stall(hostIO, 20), moved(1.24)), "", "", 0},
		{"storage of the host, job's traffic unknown", stall(hostIO, 20), "", "", 0},
		{"storage of others", all(stall(hostIO, 20), stall(jobIO, 1), sample(collector.CPUIowait, 90)), "", "", 0},
		{"iowait", all(sample(collector.CPUIowait, 20), moved(100)), ConditionIOWait, "cpu_avg_iowait_pct", 20},
		{"less iowait", all(sample(collector.CPUIowait, 19), moved(100)), "", "", 0},
		{"swap", all(sample(collector.SwapIn, 30), sample(collector.SwapOut, 34)), ConditionSwapping, "total_swap_out_mb", 34},
		{"less swap", all(sample(collector.SwapIn, 30), sample(collector.SwapOut, 33)), "", "", 0},
		{"swap in a long run", all(sample(collector.SwapIn, 64), func(c *verdictCase) { c.in.Run.WallSeconds = 65 }), "", "", 0},
		{"GPU idle", gpus(30, 9.9, true), ConditionGPUIdle, "gpu_avg_utilization_pct", 9.9},
		{"GPU busy", gpus(30, 10, true), "", "", 0},
		{"GPU of others", gpus(30, 0, false), "", "", 0},
		{"GPU measured for half of the run", all(gpus(30, 0, true), gpuFor(15)), ConditionGPUIdle, "gpu_avg_utilization_pct", 0},
		{"GPU measured for less than half", all(gpus(30, 0, true), gpuFor(14.9)), "", "", 0},
		{"GPU, short", gpus(29, 0, true), "", "", 0},
		{"no condition", func(*verdictCase) {}, "", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := verdictOf(t, 0, "", test.change)
			if got := strings.Join(v.Conditions, " "); got != test.want {
				t.Fatalf("conditions %q, want %q; evidence %v", got, test.want, v.Evidence)
			}
			if got, _ := v.Evidence[test.key].(float64); test.key != "" && math.Abs(got-test.value) > 1e-9 {
				t.Errorf("evidence %s = %v, want %v", test.key, v.Evidence[test.key], test.value)
			}
			if test.key == "" && len(v.Evidence) != 1 {
				t.Errorf("evidence %v, want only the exit code", v.Evidence)
			}
		})
	}
}

// The verdict of the run is from the node that explains the end best, in any order of merging.
func TestMerge_TakesVerdictThatBestExplainsTheEnd(t *testing.T) {
	node := func(number, code int, signal string, change fact) reporter.SourceReport {
		var in Input
		verdictOf(t, code, signal, func(c *verdictCase) { change(c); in = c.in })
		in.Node = number
		return reporter.SourceReport{Path: "x", Report: New(in)}
	}
	nothing := func(*verdictCase) {}
	inputs := []reporter.SourceReport{
		node(0, 143, "SIGTERM", sentTo(term(5, 77, "srun"))),
		node(1, 0, "", nothing),
		node(2, 137, "SIGKILL", oomInGroup(victim("python", 4242, "/slurm/job_1", false))),
		node(3, 1, "", nothing),
	}
	for range inputs {
		inputs = append(inputs[1:], inputs[0])
		r := check.Value(Merge(inputs))(t)
		if v := r.Run.Verdict; v == nil || v.Cause != CauseOOMCgroup || !strings.HasPrefix(v.Text, "node 2: killed by the kernel: python") {
			t.Errorf("verdict %+v, want the verdict on node 2, which ran out of memory", v)
		}
	}
	r := check.Value(Merge(slices.DeleteFunc(inputs, func(s reporter.SourceReport) bool { return s.Report.Nodes["2"] != nil })))(t)
	if v := r.Run.Verdict; v == nil || !strings.HasPrefix(v.Text, "node 3: exited with code 1") {
		t.Errorf("verdict %+v, want the verdict on node 3, which exited with code 1", v)
	}
}

func TestTimeoutLimit_ParsesDuration(t *testing.T) {
	for text, want := range map[string]float64{"timeout 30 foo": 30, "timeout -k 5 1.5m foo 9": 90, "timeout --signal=INT -s KILL 2h x": 7200,
		"timeout 0 x": -1, "timeout foo": -1, "timeout": -1, "timeout -k 5": -1, "timeout --foreground 1d x": 86400} {
		got, ok := TimeoutLimit(strings.Fields(text))
		if ok != (want > 0) || ok && got != want {
			t.Errorf("TimeoutLimit(%q) = %v, %v, want %v (-1 = none)", text, got, ok, want)
		}
	}
}

// A job that reached its limit has that limit as its peak, even if it survived the kill of a child. In a group shared
// with other processes, only a peak above the limit is corrected.
func TestNewVerdict_PeakIsLimitThatCausedKill(t *testing.T) {
	for _, test := range []struct {
		name               string
		code               int
		signal             string
		neighbours         float64
		measured, wantPeak float64
	}{
		{"killed", 137, "SIGKILL", 0, 1900, 2048},
		{"killed, shared group", 137, "SIGKILL", 1, 1900, 1900},
		{"killed, shared group, peak above the limit", 137, "SIGKILL", 1, 2100, 2048},
		{"survived", 0, "", 0, 2100, 2048},
	} {
		var in Input
		verdictOf(t, test.code, test.signal, func(c *verdictCase) {
			all(oomInGroup(victim("python", 4242, "/slurm/job_1", false)), counted(true, true))(c)
			c.a.Neighbours = series.Optional(test.neighbours)
			c.last.Values[collector.JobMemory] = test.measured
			in = c.in
		})
		n := New(in).Nodes["0"]
		if n.Job.PeakMemoryMB != test.wantPeak {
			t.Errorf("%s: cause %s, peak %v MiB; want %v", test.name, n.Verdict.Cause, n.Job.PeakMemoryMB, test.wantPeak)
		}
	}
}

// Any journal, kernel log and sender's name lead to a verdict that can be encoded and shown.
func FuzzVerdict(f *testing.F) {
	f.Add([]byte(`{"oom_kills":1,"host_oom_kills":1e300,"memory_home":"/a","victims":[{"process":"x\u001b[31m","pid":4242,"group":"/a/b"}]}`), 137, "SIGKILL", "timeout", 7, 3.0, 0.0)
	f.Add([]byte(`{"signals":[{"signal":"SIGTERM","pid":-1,"process":"\n"}],"job_stall":{"memory_some":1e308}}`), -1, "", "", 0, -1.0, 1e300)
	f.Add([]byte(`{"stop":{"rule":"a\u001b > 1","key":"no_key","value":1e308,"for_seconds":-1,"signal":"\n","at":"2026-11-20T12:00:00Z","killed":true},"oom_kills":1}`), 1, "SIGKILL", "", 0, 1.0, 1.0)
	f.Fuzz(func(t *testing.T, account []byte, code int, signal, process string, pid int, seconds, free float64) {
		for _, known := range []bool{true, false} {
			rec := collector.NewRecording(host.Instant{Wall: reportertest.RunStart}, time.Second, 10)
			_ = json.Unmarshal(account, &rec.Account)
			_ = json.Unmarshal(account, &rec.GPUs)
			run := reporter.Run{Command: []string{process}, WallSeconds: seconds, Incomplete: "cut off"}
			in := Input{Input: reporter.Input{Run: run, Recording: rec}, Exit: ExitContext{
				Signals: []collector.Signal{{Signal: "SIGTERM", At: reportertest.RunStart, PID: pid, Process: process}},
				Space:   []host.FreeSpace{{Path: process, FreeMB: free, Inodes: series.Optional(seconds)}}}}
			if known {
				in.Job = &reporter.Job{PID: pid, ExitCode: &code, Signal: signal}
			}
			r := New(in)
			verdictWhole(t, r.Nodes["0"].Verdict)
			if _, err := reporter.Encode(r); err != nil {
				t.Fatal(err)
			}
		}
	})
}
