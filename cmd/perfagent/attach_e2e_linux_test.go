//go:build e2e

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// CPU time used after attaching is counted, including children and later orphans. CPU time used before is not.
func TestE2E_Attach_CountsCPUTimeSinceAttachment(t *testing.T) {
	t.Parallel()
	p := startTold(t, nil)
	p.do("burn(0.5)")
	l, ready := attach(t, "--run-id", "a", p.pid())
	if ready.RunID != "a" || ready.PID != l.Cmd.Process.Pid || ready.Dir != filepath.Join(l.Cmd.Dir, "perfagent-out/a") ||
		ready.Marks != ready.Dir+"/node-0.marks" {
		t.Errorf("ready %+v, want run a of process %d in %s", ready, l.Cmd.Process.Pid, l.Cmd.Dir)
	}

	p.do(fmt.Sprintf("os.chdir(%q)", l.Cmd.Dir)) // for sampled
	p.do("burn(0.2)")
	p.do("child(0.3)")
	p.do("orphan(0.2)")
	untilCounted(t, ready, 0.7)
	p.tell("sys.exit(7)")
	p.End()
	r := attachedReport(t, l)

	n := r.Nodes["0"]
	if exited(r) != 7 || r.Run.Verdict == nil || r.Run.Verdict.Cause != "exited" {
		t.Errorf("run %+v, verdict %+v; want exit code 7, cause exited", r.Run, r.Run.Verdict)
	}
	if pid := p.Cmd.Process.Pid; r.Run.Command[0] != p.Cmd.Args[0] || !slices.Equal(n.Job.PIDs, []int{pid}) || !n.Job.Attached {
		t.Errorf("command %q, job %+v; want the attached process %d, %q", r.Run.Command, n.Job, pid, p.Cmd.Args)
	}
	if start := r.Run.Start; !start.Equal(n.Sampling.Start.Time) || !start.Equal(n.Job.Start.Time) {
		t.Errorf("run starts at %v, samples at %v, job at %v; want the same time", start, n.Sampling.Start, n.Job.Start)
	}
	wantCPU(t, r, 0.7)
	if len(n.Marks) != 1 || n.Marks[0].Text != "begun" {
		t.Errorf("marks %+v, want only \"begun\"", n.Marks)
	}
	if most := n.Metrics["max_t_job_processes"]; most != 3 {
		t.Errorf("max_t_job_processes = %v, want 3", most)
	}
}

// If the attached processes have a control group to themselves, or share it only with perfagent, its counters are used.
func TestE2E_Attach_UsesCountersOfDedicatedGroup(t *testing.T) {
	t.Parallel()
	_, dirs := findingGroups(t, "cpuacct/notify_on_release=0", "memory/notify_on_release=0")
	enter := ""
	for _, dir := range dirs {
		enter += "echo $$ > " + dir + "/cgroup.procs && "
	}
	inside := func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", enter + `exec "$@"`, "sh"}, cmd.Args...)
		cmd.Path, _ = exec.LookPath("sh")
	}
	for name, both := range map[string]bool{"perfagent outside": false, "perfagent inside": true} {
		t.Run(name, func(t *testing.T) {
			p := startTold(t, inside)
			cmd := clitest.Perfagent(t, "attach", "--ready", "--interval", "50ms", "--quiet", p.pid())
			if both {
				inside(cmd)
			}
			p.do("burn(0.4)")
			p.do("m = bytearray(64 << 20)")
			l, _ := readyOf(t, cmd)
			p.do("child(0.3)")
			p.do("time.sleep(0.2)")
			p.tell("sys.exit(0)")
			p.End()
			r := attachedReport(t, l)
			n := r.Nodes["0"]
			if n.Job.Source != "cgroup" || exited(r) != 0 {
				t.Errorf("source %q, run %+v; want source cgroup, exit code 0", n.Job.Source, r.Run)
			}
			wantCPU(t, r, 0.3)
			if mb := n.Metrics["job_peak_memory_mb"]; mb < 60 || mb > 110 {
				t.Errorf("peak memory = %v MiB, want 60 to 110: 64 MiB and Python itself", mb)
			}
		})
	}
}
