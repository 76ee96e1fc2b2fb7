package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// beside starts a sidecar and waits until its report can be read.
func beside(t *testing.T, env []string, flags ...string) (l *clitest.Process, path string) {
	t.Helper()
	cmd := clitest.Perfagent(t, append([]string{"sidecar", "--interval", "20ms", "--run-id", "s"}, flags...)...)
	cmd.Env = append(cmd.Env, env...)
	l = clitest.StartProcess(t, cmd)
	path = filepath.Join(cmd.Dir, "perfagent-out/s/node-0.json")
	untilExists(t, path)
	return l, path
}

func TestSidecar_WritesReportAtSignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			l, path := beside(t, nil, "--tag", "a=b")
			early := reportertest.ReadFile(t, path)
			if early.Run.Incomplete == "" || early.Nodes["0"].Sampling.Samples == 0 {
				t.Errorf("report of a running sidecar: %+v, %d samples; want incomplete, with samples",
					early.Run, early.Nodes["0"].Sampling.Samples)
			}
			untilHas(t, strings.TrimSuffix(path, ".json")+".jsonl", "\n", 6)
			l.Signal(sig)
			wantSilence(t, mustEnd(l, 0))
			wantSidecarReport(t, filepath.Join(l.Cmd.Dir, "perfagent-out"))
		})
	}
}

func wantSidecarReport(t *testing.T, out string) {
	t.Helper()
	r, path := reportertest.ReadSingle(t, out)
	n := r.Nodes["0"]
	if r.Run.Command != nil || r.Run.ExitCode != nil || r.Run.Signal != "" || r.Run.Incomplete != "" || n.Job != nil || r.Run.Tags["a"] != "b" {
		t.Errorf("run %+v, job %+v; want the tag a=b, and neither a job nor its end", r.Run, n.Job)
	}
	text := clitest.Read(t, path)
	for _, key := range []string{`"command"`, `"exit_code"`, `"job"`, `"job_cpu_seconds":`, `"wall_seconds": 0,`} {
		if strings.Contains(text, key) {
			t.Errorf("the report of a sidecar has the key %s, want nothing about a job", key)
		}
	}
	for name, there := range map[string]bool{"node_cpu_hours": true, "cpu_avg_utilization_pct": true, "job_cpu_seconds": false,
		"job_max_rss_mb": false, "wall_seconds": false} {
		if _, is := n.Metrics[name]; is != there {
			t.Errorf("%s: present: %v, want %v; missing %v", name, is, there, n.Missing)
		}
	}
	if n.Sampling.Samples < 5 || r.Run.WallSeconds < 0.08 {
		t.Errorf("run %+v, sampling %+v; want at least 5 samples in 0.08 s", r.Run, n.Sampling)
	}
}

// A second signal does no harm, and a run with the same ID does not replace the report of the sidecar.
func TestSidecar_ReportIsNotReplacedByRun(t *testing.T) {
	t.Parallel()
	l, path := beside(t, nil)
	first := reportertest.ReadFile(t, path)
	mustRun(t, 0, "run", "--out", filepath.Join(l.Cmd.Dir, "perfagent-out"), "--run-id", "s", "--", "true")
	l.Signal(syscall.SIGTERM)
	_ = unix.Kill(l.Cmd.Process.Pid, syscall.SIGTERM) // the sidecar may have ended
	mustEnd(l, 0)
	if r := reportertest.ReadFile(t, path); r.Run.Command != nil || !r.Run.Start.Equal(first.Run.Start.Time) {
		t.Errorf("%s has the run %+v, want the first, %+v", path, r.Run, first.Run)
	}
	if r := reportertest.ReadFile(t, strings.TrimSuffix(path, ".json")+".2.json"); r.Run.Command == nil {
		t.Errorf("the second report has the run %+v, want one with a command", r.Run)
	}
}

func TestSidecar_PrintsSummaryIfRequested(t *testing.T) {
	t.Parallel()
	l, _ := beside(t, nil, "--summary", "always")
	l.Signal(syscall.SIGTERM)
	o := mustEnd(l, 0)
	if o.Out != "" || !strings.Contains(o.Err, "Sampled for") {
		t.Errorf("stdout %q, want none; stderr %q, want \"Sampled for\"", o.Out, o.Err)
	}
}

// A killed sidecar leaves its report and its journal.
func TestSidecar_LeavesReportAndJournalWhenKilled(t *testing.T) {
	t.Parallel()
	l, path := beside(t, nil)
	l.Signal(syscall.SIGKILL)
	l.End()
	for _, p := range []string{path, strings.TrimSuffix(path, ".json") + ".jsonl"} {
		wantContains(t, wantCall(t, 0, "show", p).Out, "Still running or lost")
	}
}
