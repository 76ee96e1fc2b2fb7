package summary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perfagent/perfagent/collector/series"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/diagnosis"
)

// endedReport returns the report of a job of 5.9 s with a verdict.
func endedReport(code int, signal, cause, words string, evidence map[string]any) *reporter.Report {
	n := &reporter.Node{
		Job:     &reporter.Job{ExitCode: &code, Signal: signal},
		Limits:  &reporter.Limits{MemoryMB: 256},
		Metrics: reporter.Values{reporter.MetricJobOOMKills: 0, reporter.MetricLimitMemory: 18},
		Verdict: &reporter.Verdict{Cause: cause, Text: words, Evidence: evidence},
	}
	return &reporter.Report{Nodes: map[string]*reporter.Node{"0": n}, Run: reporter.Run{
		ID: "r", Command: []string{"train"}, WallSeconds: 5.9, ExitCode: &code, Signal: signal, Verdict: n.Verdict}}
}

// with applies change to the node and the run of r, and returns r.
func with(r *reporter.Report, change func(n *reporter.Node, run *reporter.Run)) *reporter.Report {
	change(r.Nodes["0"], &r.Run)
	return r
}

// kill returns the evidence for a kill for lack of memory, with the given additional keys and values.
func kill(more ...any) map[string]any {
	out := map[string]any{"process": "python3", "pid": 42.0, "time": "2026-11-26T01:45:06.5Z"}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

func TestConclude_SingleJob(t *testing.T) {
	t.Parallel()
	const killer = "The kernel killed python3 (process 42) at 01:45:06 UTC"
	finding := func(id, words string, evidence map[string]any) reporter.Finding {
		return reporter.Finding{ID: id, Severity: diagnosis.SeverityWarning, Text: words, Evidence: evidence}
	}
	for name, c := range map[string]struct {
		report *reporter.Report
		want   Conclusion
	}{
		"killed while memory was growing": {with(endedReport(137, "SIGKILL", diagnosis.CauseOOMCgroup, "killed by the kernel: …; peak 260 MiB",
			kill("limit_mb", 256.0, "limit_kills", 1.0, "mb_per_second", 32.2,
				"limit_group", "/slurm/uid_0/job_4711/step_batch")),
			func(_ *reporter.Node, run *reporter.Run) { run.Platform = reporter.PlatformSlurm }),
			Conclusion{Failed, "Out of memory: killed at the limit of 256 MiB after 5.9 s.",
				"Ask for 512 MiB or more: it was still growing, by 32 MiB/s.", "#SBATCH --mem=512M",
				killer + "; control group step_batch of Slurm job 4711 sets the limit.",
				[]string{"At this rate 512 MiB would last about 8 s longer. If memory should not grow, look for a leak."}, nil, "memory"}},
		"killed without known growth": {endedReport(137, "SIGKILL", diagnosis.CauseOOMCgroup, "",
			kill("limit_mb", 256.0, "limit_group", "/x", "heaviest", "tail", "heaviest_pid", 43.0)),
			Conclusion{Failed, "Out of memory: killed at the limit of 256 MiB after 5.9 s.",
				"Set the limit to 384 MiB or more: the job needed more.", "",
				killer + "; the heaviest was tail (process 43); control group /x sets the limit.", nil, nil, "memory"}},
		"process of the job killed": {endedReport(3, "", diagnosis.CauseOOMCgroup, "", kill("limit_mb", 256.0)),
			Conclusion{Failed, "Out of memory: a process was killed at the limit of 256 MiB, and the job failed (exit 3) after 5.9 s.",
				"Set the limit to 384 MiB or more: the job needed more.", "", killer + ".", nil, nil, "memory"}},
		"limit of another group": {endedReport(137, "SIGKILL", diagnosis.CauseOOMCgroup, "", kill("limit_group", "/x/inner")),
			Conclusion{Failed, "Out of memory: killed at a memory limit of a control group after 5.9 s.",
				"Ask for more memory, or use less: how much it needs is not known.", "",
				killer + "; control group /x/inner sets the limit.", nil, nil, "memory"}},
		"node out of memory": {endedReport(137, "SIGKILL", diagnosis.CauseOOMHost, "killed …; 99 % of it was in use in the sample before", kill()),
			Conclusion{Failed, "Out of memory: killed after 5.9 s, because the node had no memory left.",
				"Ask for more memory, or use less: how much it needs is not known.", "",
				killer + ". 99 % of it was in use in the sample before.", nil, nil, "memory"}},
		"NUMA node out of memory": {endedReport(137, "SIGKILL", diagnosis.CauseOOMCPUSet, "", kill("nodes", "1")),
			Conclusion{Failed, "Out of memory: killed after 5.9 s, because NUMA node 1, all that it may use, had no memory left.",
				"Ask for more memory, or use less: how much it needs is not known.", "", killer + ".", nil, nil, "memory"}},
		"unknown limit": {endedReport(137, "SIGKILL", diagnosis.CauseOOM, "", kill()),
			Conclusion{Failed, "Out of memory: killed after 5.9 s; whether for a limit of its control group or for the node's memory is not known.",
				"Ask for more memory, or use less: how much it needs is not known.", "", killer + ".", nil, nil, "memory"}},
		"shared control group": {endedReport(137, "SIGKILL", diagnosis.CauseOOM, "", nil),
			Conclusion{Failed, "Out of memory: killed after 5.9 s, when the kernel had killed a process of its control group, which others share.",
				"Ask for more memory, or use less: how much it needs is not known.", "", "", nil, nil, "memory"}},
		"stop rule": {endedReport(143, "SIGTERM", diagnosis.CauseStopped,
			"stopped by the rule 'job_memory_mb > 200': it was 238 MiB when perfagent sent SIGTERM at 01:40:02 UTC; the job died of SIGTERM",
			map[string]any{"rule": "job_memory_mb > 200", "key": "job_memory_mb", "mb_per_second": 45.0}),
			Conclusion{Stopped, "Stopped by your rule 'job_memory_mb > 200' after 5.9 s.",
				"Allow more, or find what it keeps: it was still growing, by 45 MiB/s.", "",
				"It was 238 MiB when perfagent sent SIGTERM at 01:40:02 UTC. The job died of SIGTERM.", nil, nil, "memory"}},
		"time limit": {with(endedReport(143, "SIGTERM", diagnosis.CauseTimeLimit, "",
			map[string]any{"sender": "slurmstepd", "sender_pid": 7.0, "sent_signal": "SIGTERM", "signal_time": "2026-11-26T01:40:02Z"}),
			func(n *reporter.Node, _ *reporter.Run) { n.Identity = &reporter.Identity{Scheduler: "Slurm"} }),
			Conclusion{Stopped, "Time limit: ended by Slurm after 5.9 s.", "Give it more time: it was not done.", "",
				"SIGTERM came from slurmstepd (process 7) at 01:40:02 UTC.", nil, nil, ""}},
		"timeout(1)": {endedReport(124, "", diagnosis.CauseTimeLimit, "", nil),
			Conclusion{Stopped, "Time limit: ended by timeout after 5.9 s.", "Give it more time: it was not done.", "", "", nil, nil, ""}},
		"full disk": {endedReport(1, "", diagnosis.CauseDiskFull, "", map[string]any{"path": "/scratch", "available_mb": 0.0}),
			Conclusion{Failed, "Disk full: no room was left on /scratch when the job failed (exit 1) after 5.9 s.",
				"Make room on /scratch, or write elsewhere: its own output shows whether that was the reason.", "", "", nil, nil, "disk_space"}},
		"SIGTERM": {endedReport(143, "SIGTERM", diagnosis.CauseSignal, "",
			map[string]any{"sender": "bash", "sender_pid": 7.0, "sent_signal": "SIGTERM"}),
			Conclusion{Stopped, "Stopped by SIGTERM from bash after 5.9 s.", "", "", "SIGTERM came from bash (process 7).", nil, nil, ""}},
		"exited on SIGTERM": {endedReport(143, "", diagnosis.CauseSignal, "",
			map[string]any{"sender": "bash", "sent_signal": "SIGTERM", "signal": "SIGTERM"}),
			Conclusion{Stopped, "Stopped by SIGTERM from bash (exit 143) after 5.9 s.", "", "", "SIGTERM came from bash.", nil, nil, ""}},
		"SIGKILL": {endedReport(137, "SIGKILL", diagnosis.CauseSignal, "killed by SIGKILL; the kernel does not say who sent it", nil),
			Conclusion{Failed, "Killed by SIGKILL after 5.9 s.", "Find out who ran kill, or look in the scheduler's log: " +
				"the sender is not known, perfagent saw no limit reached, and no out-of-memory kill was recorded.", "", "", nil, nil, ""}},
		"crash": {endedReport(139, "SIGSEGV", diagnosis.CauseSignal, "killed by SIGSEGV: …; a core file of 8.0 MiB filled the file system of /s", nil),
			Conclusion{Failed, "Killed by SIGSEGV after 5.9 s: it accessed memory that is not its own (segmentation fault).",
				"Read its own output, or run it in a debugger.", "", "A core file of 8.0 MiB filled the file system of /s.", nil, nil, ""}},
		"exit 3": {endedReport(3, "", diagnosis.CauseExited, "exited with code 3", nil),
			Conclusion{Failed, "Failed (exit 3) after 5.9 s.", "Read its own output: it exited by itself, perfagent saw no limit reached, " +
				"and no out-of-memory kill was recorded.", "", "", nil, nil, ""}},
		"exit 3 near its limit": {with(endedReport(3, "", diagnosis.CauseExited, "", nil),
			func(n *reporter.Node, _ *reporter.Run) { n.Metrics[reporter.MetricLimitMemory] = 97 }),
			Conclusion{Failed, "Failed (exit 3) after 5.9 s.", "Read its own output: it exited by itself, memory came to 97 % of its limit, " +
				"and no out-of-memory kill was recorded.", "", "", nil, nil, ""}},
		"exit 3 without metrics": {with(endedReport(3, "", diagnosis.CauseExited, "", nil),
			func(n *reporter.Node, _ *reporter.Run) { n.Metrics = nil }),
			Conclusion{Failed, "Failed (exit 3) after 5.9 s.", "Read its own output: it exited by itself.", "", "", nil, nil, ""}},
		"exit 3 without a limit": {with(endedReport(3, "", diagnosis.CauseExited, "", nil),
			func(n *reporter.Node, _ *reporter.Run) {
				n.Limits.MemoryMB = series.Unknown()
				delete(n.Metrics, reporter.MetricLimitMemory)
			}),
			Conclusion{Failed, "Failed (exit 3) after 5.9 s.", "Read its own output: it exited by itself, perfagent saw no limit reached, " +
				"and no out-of-memory kill was recorded.", "", "", nil, nil, ""}},
		"exit 0": {endedReport(0, "", diagnosis.CauseExited, "exited with code 0", nil),
			Conclusion{Outcome: Succeeded, Cause: "Succeeded after 5.9 s."}},
		"exit 0 after SIGTERM": {endedReport(0, "", diagnosis.CauseExited, "exited with code 0", map[string]any{
			"sender": "timeout", "sender_pid": 77.0, "sent_signal": "SIGTERM", "signal_time": "2026-11-27T12:00:05Z"}),
			Conclusion{Outcome: Succeeded, Cause: "Succeeded after 5.9 s.",
				How: "SIGTERM came from timeout (process 77) at 12:00:05 UTC, and the job exited with 0."}},
		"exit 0 with findings": {with(endedReport(0, "", diagnosis.CauseExited, "", nil), func(n *reporter.Node, _ *reporter.Run) {
			n.Findings = []reporter.Finding{
				finding("cpus_unused", "Ask for 1 CPU instead of 4: …", map[string]any{"ask_cpus": 1.0}),
				finding("neighbour", "Idle job.", map[string]any{"job_cpus": 0.03}),
				finding("memory_unused", "Ask for less.", map[string]any{"ask_mb": 1.0}), finding("clocked_down", "Hot.", nil),
			}
			n.Verdict.Conditions = []string{"io_wait", "cpus_unused"}
		}), Conclusion{Outcome: Succeeded, Cause: "Succeeded after 5.9 s.", Action: "Ask for 1 CPU instead of 4: …",
			Notes: []string{"Ask for less."}, Other: []string{"Idle job.", "Hot.", "Before the end: waiting for storage."}, Subject: "cpu"}},
		"exit 0 on a busy node": {with(endedReport(0, "", diagnosis.CauseExited, "", nil), func(n *reporter.Node, _ *reporter.Run) {
			n.Findings = []reporter.Finding{finding("neighbour", "Busy.", map[string]any{"job_cpus": 1.2})}
		}), Conclusion{Outcome: Succeeded, Cause: "Succeeded after 5.9 s.", Notes: []string{"Busy."}}},
		"exit 3 with findings": {with(endedReport(3, "", diagnosis.CauseExited, "", nil), func(n *reporter.Node, _ *reporter.Run) {
			n.Metrics, n.Findings = nil, []reporter.Finding{finding("cpus_unused", "Fewer.", nil), finding("disk_nearly_full", "Room.", nil)}
		}), Conclusion{Outcome: Failed, Cause: "Failed (exit 3) after 5.9 s.", Action: "Read its own output: it exited by itself.",
			Notes: []string{"Room."}, Other: []string{"Fewer."}}},
		"survived kill": {endedReport(0, "", diagnosis.CauseExited, "exited with code 0, although …", map[string]any{"oom_kills": 2.0}),
			Conclusion{Outcome: Odd, Cause: "Succeeded after 5.9 s, although the kernel killed 2 processes of it for lack of memory.", Subject: "memory"}},
		"still running": {with(endedReport(0, "", diagnosis.CauseUnknown, "how … is not known; SIGTERM from bash had come before", nil),
			func(n *reporter.Node, run *reporter.Run) { n.Job, run.ExitCode, run.Incomplete = nil, nil, "cut off" }),
			Conclusion{Outcome: Running, Cause: "Still running or lost; the last sample is from 5.9 s after the start.",
				How: "Cut off. SIGTERM from bash had come before."}},
		"attached job": {with(endedReport(0, "", diagnosis.CauseUnknown, "how the job ended is not known: no right", nil),
			func(n *reporter.Node, run *reporter.Run) {
				n.Job.ExitCode, n.Job.Attached, run.ExitCode = nil, true, nil
			}),
			Conclusion{Outcome: Ended, Cause: "Ended after 5.9 s; how is not known.", How: "How the job ended is not known: no right."}},
		"failed wait": {endedReport(255, "", diagnosis.CauseUnknown, "how the job ended is not known: no space", nil),
			Conclusion{Outcome: Odd, Cause: "Ended after 5.9 s; how is not known.", How: "How the job ended is not known: no space."}},
		"cause from a later version": {endedReport(135, "SIGBUS", "shm_full", "killed by SIGBUS: /dev/shm was full", nil),
			Conclusion{Outcome: Failed, Cause: "Killed by SIGBUS after 5.9 s.", How: "Killed by SIGBUS: /dev/shm was full."}},
		"no job": {&reporter.Report{Run: reporter.Run{WallSeconds: 5.9}}, Conclusion{Cause: "Sampled for 5.9 s."}},
	} {
		got := Conclude(c.report)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Conclusion.Cause names the late rank of a successful run. All text is printable, even for hostile reports.
func TestConclude_ReportsLateRankAndEscapesHostileTexts(t *testing.T) {
	t.Parallel()
	c := Conclude(withVerdict(t, reportertest.LateRank()))
	if c.Outcome != Odd || !strings.Contains(c.Cause, ", but rank ") || !strings.Contains(c.Cause, " was last, ") ||
		!strings.Contains(c.Action, "the others") && !strings.Contains(c.Action, "the other ") {
		t.Errorf("conclusion %+v, want an odd outcome, and the last rank in the cause", c)
	}
	for _, words := range reportertest.HostileTexts {
		for name, r := range reportertest.HostileReports(words) {
			c := Conclude(r)
			for _, got := range append([]string{c.Cause, c.Action, c.Paste, c.How}, append(c.Notes, c.Other...)...) {
				if got != text.Printable(got) {
					t.Errorf("%s: text %q is not printable", name, got)
				}
			}
		}
	}
}
