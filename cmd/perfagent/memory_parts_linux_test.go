package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector"
	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/reporter"
)

// kindsJob is a program that holds 120 MiB of anonymous memory, 100 MiB of /dev/shm, and a mapped file of 80 MiB. It
// prints its process ID, and runs until its input ends.
const kindsJob = `
import mmap, os, sys
held = [bytearray(120 << 20)]
for i in range(0, 120 << 20, 4096): held[0][i] = 1
for where, size in (("/dev/shm", 100), (".", 80)):
    with open(f"{where}/perfagent-test-{os.getpid()}", "w+b") as f:
        os.unlink(f.name)
        for _ in range(size): f.write(b"x" * (1 << 20))
        f.flush()
        held.append(mmap.mmap(f.fileno(), size << 20))
    sum(held[-1][i] for i in range(0, size << 20, 4096))
print("pid", os.getpid(), flush=True)
sys.stdin.read()
`

// kindsSum returns the memory in MiB that the kernel counts now: the usage of the group, or the PSS of process pid if
// group is "".
func kindsSum(t *testing.T, group string, pid int) float64 {
	t.Helper()
	path := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	if group != "" {
		path = "/sys/fs/cgroup/memory" + group + "/memory.usage_in_bytes"
		bytes, err := strconv.ParseFloat(strings.TrimSpace(clitest.Read(t, path)), 64)
		check.Must(t, err)
		return bytes / (1 << 20)
	}
	_, rest, _ := strings.Cut(clitest.Read(t, path), "\nPss:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	check.Must(t, err)
	return kb / 1024
}

// kindsParts waits until the journal of the run in dir has the memory of kindsJob, and returns its parts at the peak. The
// memory of a tree is not measured again if it changes by less than 1 %.
func kindsParts(t *testing.T, dir string) *reporter.MemoryParts {
	t.Helper()
	path := filepath.Join(dir, "perfagent-out/r/node-0.jsonl")
	var parts *reporter.MemoryParts
	clitest.WaitUntil(t, path+" has the memory of the job", func() bool {
		if data, err := os.ReadFile(path); err == nil && bytes.Count(data, []byte("\n")) > 1 {
			parts = readAny(t, path).Nodes["0"].PeakParts()
		}
		return parts != nil && parts.ShmemMB > 95 && parts.FileMB > 75 && parts.AnonMB > 115
	})
	return parts
}

// The parts of a job's memory add up to what the kernel counts, for a process tree and for a control group. They are in
// the report and, if perfagent and the job are killed, in the journal.
func TestMemory_IsDividedIntoKinds(t *testing.T) {
	t.Parallel()
	python := clitest.Python(t, "pass")[0]
	for _, test := range []struct {
		source, flag string
		killed       bool
	}{{"tree", "off", false}, {"tree", "off", true}, {"created", "create", false}, {"created", "create", true}} {
		t.Run(fmt.Sprint(test.source, ", killed ", test.killed), func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "100ms", "--cgroup", test.flag, "--", python, "-c", kindsJob)
			in, goOn := clitest.Pipe(t)
			cmd.Stdin = in
			l := clitest.StartProcess(t, cmd)
			pid, group := l.PID("pid"), ""
			if test.source == "created" {
				_, rest, _ := strings.Cut(clitest.Read(t, fmt.Sprintf("/proc/%d/cgroup", pid)), ":memory:")
				group, _, _ = strings.Cut(rest, "\n")
				if !strings.Contains(group, "/perfagent-r.") {
					goOn.Close()
					l.End()
					t.Skip("needs root and the memory controller of cgroup v1")
				}
			}
			kindsParts(t, cmd.Dir)
			counted := kindsSum(t, group, pid)
			if test.killed {
				check.Must(t, unix.Kill(-cmd.Process.Pid, unix.SIGKILL))
			}
			goOn.Close()
			l.End()
			if group != "" {
				_ = syscall.Rmdir("/sys/fs/cgroup/memory" + group)
			}

			paths, _ := filepath.Glob(filepath.Join(cmd.Dir, "perfagent-out/r/node-0.json*"))
			r := readAny(t, paths[0])
			p := r.Nodes["0"].PeakParts()
			slack := 0.05 * counted
			for what, v := range map[string][2]float64{"sum": {p.SumMB(), counted}, "anonymous": {p.AnonMB, 120}, "shared": {p.ShmemMB, 100}, "files": {p.FileMB, 80}} {
				check.True(t, math.Abs(v[0]-v[1]) <= slack, "%s = %.1f MiB, want %.1f within 5 %% of the sum; %+v", what, v[0], v[1], p)
			}
			check.True(t, p.Source == test.source && (p.KernelMB > 0) == (group != ""), "parts = %+v, want the source %s", p, test.source)
			check.True(t, (r.Nodes["0"].Job == nil) == test.killed, "job = %+v, want none if perfagent was killed", r.Nodes["0"].Job)
			for _, column := range []collector.Column{collector.JobMemoryAnon, collector.JobMemoryFile, collector.JobMemoryShmem, collector.JobMemorySwap} {
				check.True(t, len(r.Nodes["0"].Samples.Column(column.Key())) > 0, "no sample has %s", column.Key())
			}
			kernel := len(r.Nodes["0"].Samples.Column(collector.JobMemoryKernel.Key())) > 0
			check.True(t, kernel == (group != ""), "samples have %s: %v", collector.JobMemoryKernel.Key(), kernel)
			out := wantCall(t, 0, "show", paths[0]).Out
			check.True(t, regexp.MustCompile(`memory was +1\d\d MiB +anonymous, \d+ MiB /dev/shm and tmpfs, \d+ MiB (files|cache)`).MatchString(out),
				"show lacks the parts of the memory:\n%s", out)
		})
	}
}

// The report on a killed job has the kinds of its memory before the kill, and the largest processes.
func TestMemory_IsDividedIntoKindsAtKill(t *testing.T) {
	t.Parallel()
	needsKernelLog(t)
	python := clitest.Python(t, "pass")[0]
	const job = `
import mmap, os, subprocess, sys
held = mmap.mmap(-1, 32 << 20)
for i in range(0, 32 << 20, 4096): held[i] = 1
print("held", os.getpid(), flush=True)
sys.stdin.read()
hog = subprocess.Popen(["sh", "-c", "echo 1000 >/proc/self/oom_score_adj; exec tail /dev/zero"])
print("hog", hog.pid, flush=True)
hog.wait()
sys.exit(3)
`
	cmd := clitest.Perfagent(t, "run", "--run-id", "r", "--interval", "100ms", "--", python, "-c", job)
	in, goOn := clitest.Pipe(t)
	cmd.Stdin = in
	l := clitest.StartProcess(t, verdictInside(cmd, verdictGroup(t, 96)))
	holder := l.PID("held")
	path := filepath.Join(cmd.Dir, "perfagent-out/r/node-0.jsonl")
	clitest.WaitUntil(t, path+" has the memory of the job", func() bool {
		data, err := os.ReadFile(path)
		if err != nil || bytes.Count(data, []byte("\n")) < 2 {
			return false
		}
		p := readAny(t, path).Nodes["0"].PeakParts()
		return p != nil && p.ShmemMB > 31
	})
	goOn.Close()
	hog := l.PID("hog")
	o := mustEnd(l, 3)
	r := wantCause(t, o, "oom_cgroup", map[string]any{"process": "tail", "pid": hog})
	p := r.Nodes["0"].Job.MemoryAtKill
	if p == nil || p.ShmemMB < 31 || p.ShmemMB > 34 || p.SumMB() > 97 {
		t.Fatalf("memory at the kill = %+v, want 32 MiB of shared memory, and at most 96 MiB", p)
	}
	if !verdictLogged(t, fmt.Sprintf("task=tail,pid=%d,", hog)) {
		t.Skip("the kernel wrote no report, as after ten kills within 5 s")
	}
	ids := map[int]float64{}
	for _, task := range p.Largest {
		ids[task.PID] = task.RSSMB
	}
	if len(p.Largest) != 2 || p.Largest[0].PID != hog || ids[holder] < 32 || ids[hog] < 32 {
		t.Errorf("largest processes = %+v, want %d (tail) and %d (python)", p.Largest, hog, holder)
	}
}
