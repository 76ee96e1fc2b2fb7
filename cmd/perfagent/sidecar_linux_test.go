package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// beside starts a sidecar and waits until its report can be read.
func beside(t *testing.T, env []string, flags ...string) (l *clitest.Process, path string) {
	t.Helper()
	cmd := clitest.Perfagent(t, append([]string{"sidecar", "--interval", "20ms", "--run-id", "s"}, flags...)...)
	cmd.Env = append(cmd.Env, env...)
	l = clitest.Launch(t, cmd)
	path = filepath.Join(cmd.Dir, "perfagent-out/s/node-0.json")
	clitest.Until(t, "there is a report while the sidecar runs", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
	return l, path
}

func TestSidecarReportsAtASignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			l, path := beside(t, nil, "--tag", "a=b")
			early := reportertest.ReadFile(t, path)
			if early.Run.Incomplete == "" || early.Nodes["0"].Sampling.Samples == 0 {
				t.Errorf("while it runs: %+v", early.Run)
			}
			journal := strings.TrimSuffix(path, ".json") + ".jsonl"
			clitest.Until(t, "samples are in the journal", func() bool {
				text, _ := os.ReadFile(journal)
				return strings.Count(string(text), "\n") > 5
			})
			l.Signal(sig)
			o, _ := l.End()
			o.Want(t, 0)
			if o.Out != "" || o.Err != "" {
				t.Errorf("stdout %q, stderr %q", o.Out, o.Err)
			}
			wantSidecarReport(t, filepath.Join(l.Cmd.Dir, "perfagent-out"))
		})
	}
}

func wantSidecarReport(t *testing.T, out string) {
	t.Helper()
	r, path := reportertest.Only(t, out)
	n := r.Nodes["0"]
	if r.Run.Command != nil || r.Run.ExitCode != nil || r.Run.Signal != "" || r.Run.Incomplete != "" || n.Job != nil || r.Run.Tags["a"] != "b" {
		t.Errorf("run %+v, job %+v", r.Run, n.Job)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"command"`, `"exit_code"`, `"job"`, `"job_cpu_seconds":`, `"wall_seconds": 0,`} {
		if strings.Contains(string(text), key) {
			t.Errorf("a sidecar's report has %s", key)
		}
	}
	for name, there := range map[string]bool{"node_cpu_hours": true, "cpu_avg_utilization_pct": true, "job_cpu_seconds": false,
		"job_max_rss_mb": false, "wall_seconds": false} {
		if _, is := n.Metrics[name]; is != there {
			t.Errorf("%s: there %v, want %v; %v", name, is, there, n.Missing)
		}
	}
	if n.Sampling.Samples < 5 || r.Run.WallSeconds < 0.08 {
		t.Errorf("run %+v, sampling %+v", r.Run, n.Sampling)
	}
}

// A second signal does no harm, and a report that was there stays.
func TestSidecarKeepsOtherReports(t *testing.T) {
	t.Parallel()
	l, path := beside(t, nil)
	first := reportertest.ReadFile(t, path)
	cmd := clitest.Perfagent(t, "run", "--out", filepath.Join(l.Cmd.Dir, "perfagent-out"), "--run-id", "s", "--", "true")
	clitest.Perform(t, cmd).Want(t, 0)
	l.Signal(syscall.SIGTERM)
	_ = unix.Kill(l.Cmd.Process.Pid, syscall.SIGTERM) // it may be gone already
	o, _ := l.End()
	o.Want(t, 0)
	if r := reportertest.ReadFile(t, path); r.Run.Command != nil || !r.Run.Start.Equal(first.Run.Start.Time) {
		t.Errorf("run %+v, at first %+v", r.Run, first.Run)
	}
	if r := reportertest.ReadFile(t, strings.TrimSuffix(path, ".json")+".2.json"); r.Run.Command == nil {
		t.Errorf("run %+v", r.Run)
	}
}

func TestSidecarShowsASummaryWhenAsked(t *testing.T) {
	t.Parallel()
	l, _ := beside(t, nil, "--summary", "always")
	l.Signal(syscall.SIGTERM)
	o, _ := l.End()
	o.Want(t, 0)
	if o.Out != "" || !strings.Contains(o.Err, "sampled for") {
		t.Errorf("stdout %q, stderr %q", o.Out, o.Err)
	}
}

// kill -9 leaves what was known.
func TestSidecarKilledLeavesItsJournal(t *testing.T) {
	t.Parallel()
	l, path := beside(t, nil)
	l.Signal(syscall.SIGKILL)
	l.End()
	for _, p := range []string{path, strings.TrimSuffix(path, ".json") + ".jsonl"} {
		o := clitest.Run(t, "show", p)
		o.Want(t, 0)
		if !strings.Contains(o.Out, "incomplete") {
			t.Errorf("%s: %q", p, o.Out)
		}
	}
}

// HOST_PROC and HOST_SYS are another host's tree: every source is read from there.
func TestHostTreeIsRead(t *testing.T) {
	t.Parallel()
	at, err := filepath.Abs("testdata/host")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HOST_PROC=" + at + "/proc", "HOST_SYS=" + at + "/sys"}
	check := func(t *testing.T, r *reporter.Report) {
		t.Helper()
		n := r.Nodes["0"]
		if n.Host.Hostname != "fixture-host" || n.Host.CPUs != 4 || n.Host.MemoryMB != 8192 || n.Host.CPUModel != "Fixture CPU" ||
			n.Host.Kernel != "6.1.0-fixture" || n.Host.BootID != "11111111-2222-3333-4444-555555555555" {
			t.Errorf("host %+v", n.Host)
		}
		if !slices.Equal(n.Sampling.Disks, []string{"sda"}) || !slices.Equal(n.Sampling.NICs, []string{"lo", "eth0"}) {
			t.Errorf("disks %q, interfaces %q: a byte must be counted once", n.Sampling.Disks, n.Sampling.NICs)
		}
		for name, want := range map[string]float64{"max_t_mem_percent": 25, "boot_total_disk_io_read_mb": 1024, "boot_total_disk_io_write_mb": 2048,
			"boot_total_net_io_lo_sent_mb": 1, "boot_total_net_io_ext_sent_mb": 2, "boot_total_net_io_lo_recv_mb": 1, "boot_total_net_io_ext_recv_mb": 3,
			"total_disk_io_read_mb": 0, "total_net_io_ext_recv_mb": 0} {
			if got, there := n.Metrics[name]; !there || got != want {
				t.Errorf("%s is %v (%v), want %v", name, got, there, want)
			}
		}
		if got, want := n.Metrics["node_cpu_hours"], r.Run.WallSeconds*4/3600; math.Abs(got-want) > 1e-9 {
			t.Errorf("node_cpu_hours is %v, want %v", got, want)
		}
		// Its clock stands still: nobody measured 0 %.
		if got, there := n.Metrics["cpu_avg_utilization_pct"]; there {
			t.Errorf("cpu_avg_utilization_pct is %v of a CPU whose time does not pass", got)
		}
	}
	l, _ := beside(t, env)
	l.Signal(syscall.SIGTERM)
	o, _ := l.End()
	o.Want(t, 0)
	check(t, o.Report(t))
	for reader, c := range map[string]struct{ flags, env []string }{
		"auto": {}, "gopsutil": {flags: []string{"--reader", "gopsutil"}, env: []string{"PERFAGENT_READER=auto"}},
	} {
		cmd := clitest.Perfagent(t, slices.Concat([]string{"run", "--interval", "20ms"}, c.flags, []string{"--", "sleep", "0.1"})...)
		cmd.Env = slices.Concat(cmd.Env, env, c.env)
		o = clitest.Perform(t, cmd)
		o.Want(t, 0)
		check(t, o.Report(t))
		if got := o.Report(t).Nodes["0"].Sampling.Reader; got != reader {
			t.Errorf("read through %q, want %q", got, reader)
		}
	}
}

// show without a name picks what was changed last, a journal too.
func TestShowPicksTheNewest(t *testing.T) {
	dir := t.TempDir()
	insideIn(t, dir, "run", "--run-id", "b", "--", "true").Want(t, 0)
	insideIn(t, dir, "run", "--run-id", "a", "--node", "3", "--", "true").Want(t, 0)
	b := filepath.Join(dir, "perfagent-out/b/node-0.json")
	touch := func(path string, at time.Time) {
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	touch(b, time.Now().Add(-time.Hour))
	clitest.Write(t, filepath.Join(dir, "perfagent-out/a/other.json"), "", 0o644)
	clitest.Write(t, filepath.Join(dir, "perfagent-out/a/node-x.json"), "", 0o644)

	shows := func(run string, l *insideLine) {
		t.Helper()
		l.Dir = dir
		o := l.perform(t)
		o.Want(t, 0)
		if got := regexp.MustCompile(`(?m)^run +([^\s,]+)`).FindStringSubmatch(o.Out); got == nil || got[1] != run {
			t.Errorf("%q: run %q, want %q:\n%s", l.Args, got, run, o.Out)
		}
	}
	shows("a", insideCommand(t, "show"))
	touch(b, time.Now().Add(time.Second))
	shows("b", insideCommand(t, "show"))
	shows("a", insideCommand(t, "show", "--out", "perfagent-out/a"))
	shows("a", insideCommand(t, "show", "perfagent-out/a"))
	byVariable := insideCommand(t, "show")
	byVariable.Env = []string{"PERFAGENT_OUT=perfagent-out/a"}
	shows("a", byVariable)
}

func TestMergeOfTwoNodes(t *testing.T) {
	out := t.TempDir()
	for _, args := range [][]string{{"0", "sleep 0.06; exit 0"}, {"1", "exit 4"}, {"1", "exit 0"}} {
		call("run", "--out", out, "--run-id", "r", "--node", args[0], "--", "sh", "-c", args[1])
	}
	dir := filepath.Join(out, "r")
	for _, c := range []struct {
		args  string
		code  int
		words []string
	}{
		{"node-0.json node-1.json -o both.json", 0, nil},
		{"node-0.json node-1.json -o both.json", 1, []string{"both.json", "--force"}},
		{"--force node-1.json node-0.json node-1.json -o both.json", 0, nil},
		{"node-1.json node-1.2.json -o bad.json", 1, []string{"node-1.json", "node-1.2.json"}},
		{"both.json node-0.json -o again.json", 0, nil},
	} {
		o := insideIn(t, dir, append([]string{"merge"}, strings.Fields(c.args)...)...)
		if o.Want(t, c.code); c.code == 0 {
			continue
		}
		o.WantLine(t, c.words...)
	}
	text := call("show", "--json", filepath.Join(dir, "both.json")).Out
	if _, err := os.Stat(filepath.Join(dir, "bad.json")); err == nil {
		t.Error("bad.json was written")
	}
	r := reportertest.ReadFile(t, filepath.Join(dir, "both.json"))
	zero, one := reportertest.ReadFile(t, filepath.Join(dir, "node-0.json")), reportertest.ReadFile(t, filepath.Join(dir, "node-1.json"))
	if len(r.Nodes) != 2 || *r.Run.ExitCode != 4 || !r.Run.Start.Equal(zero.Run.Start.Time) || !r.Run.End.Equal(one.Run.End.Time) {
		t.Errorf("run %+v", r.Run)
	}
	again, _ := os.ReadFile(filepath.Join(dir, "again.json"))
	both, _ := os.ReadFile(filepath.Join(dir, "both.json"))
	if string(again) != string(both) {
		t.Error("merging a node again makes a difference")
	}
	var nodes map[string]map[string]float64
	if err := json.Unmarshal([]byte(text), &nodes); err != nil || len(nodes) != 2 ||
		nodes["1"]["wall_seconds"] != one.Run.WallSeconds || nodes["0"]["wall_seconds"] != zero.Run.WallSeconds {
		t.Errorf("show --json: %v: %s; want %v and %v s", err, text, zero.Run.WallSeconds, one.Run.WallSeconds)
	}
	if shown := call("show", filepath.Join(dir, "both.json")).Out; !strings.Contains(shown, "2 nodes") {
		t.Errorf("show: %s", shown)
	}
}
