//go:build e2e

package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/clitest"
)

// vmRun returns the command of a trial: perfagent around a part of the guest.
func vmRun(flags string, part string) []string {
	args := append([]string{"/bin/perfagent", "run"}, strings.Fields(flags)...)
	return append(append(args, "--", "/init"), strings.Fields(part)...)
}

// vmTrials returns the trials. Each has separate groups.
func vmTrials() []vmTrial {
	return []vmTrial{
		{Name: "killed at memory.max", Groups: []vmGroup{{"kill", [][2]string{{"memory.max", "48M"}}}}, In: "kill",
			Args: vmRun("", "hog 100 0"), Watch: []string{"kill/memory.peak", "kill/memory.events"}, check: vmKilled},
		{Name: "a child is killed and the job fails", Groups: []vmGroup{{"child", [][2]string{{"memory.max", "48M"}}}}, In: "child",
			Args: vmRun("", "parent 3 hog 100 0"), Watch: []string{"child/memory.events"}, check: vmKilledChild},
		{Name: "a child is killed and the job succeeds", Groups: []vmGroup{{"spared", [][2]string{{"memory.max", "48M"}}}}, In: "spared",
			Args: vmRun("", "parent 0 hog 100 0"), Watch: []string{"spared/memory.events"}, check: vmSpared},
		{Name: "an old kill is none", Groups: []vmGroup{{"old", [][2]string{{"memory.max", "48M"}}}}, In: "old",
			Args: []string{"/bin/sh", "-c", "/init hog 100 0; exec /bin/perfagent run -- /init parent 7 nothing"}, Watch: []string{"old/memory.events"}, check: vmOldKill},
		{Name: "killed at memory.max, no log", Groups: []vmGroup{{"nolog", [][2]string{{"memory.max", "48M"}}}}, In: "nolog",
			Args: []string{"/bin/sh", "-c", vmNoLog + "/init hog 100 0"}, Watch: []string{"nolog/memory.events"}, check: vmKilledNoLog},
		{Name: "killed for the host", Groups: []vmGroup{{"host", [][2]string{{"memory.max", "48M"}}}}, In: "host",
			Args: []string{"/bin/perfagent", "run", "--", "/bin/sh", "-c", vmHostKill}, Watch: []string{"host/memory.events"}, check: vmHost},
		{Name: "killed for the host, no log", Groups: []vmGroup{{"hostless", [][2]string{{"memory.max", "48M"}}}}, In: "hostless",
			Args: []string{"/bin/sh", "-c", vmNoLog + "/bin/sh -c '" + vmHostKill + "'"}, Watch: []string{"hostless/memory.events"}, check: vmHostNoLog},
		{Name: "killed for a NUMA node", Groups: []vmGroup{{"node", [][2]string{{"cpuset.mems", "1"}}}}, In: "node",
			Args: vmRun("", "hog 200 0"), Watch: []string{"node/memory.events"}, check: vmNode},
		{Name: "memory within the limit", Groups: []vmGroup{{"fit", [][2]string{{"memory.max", "300M"}}}}, In: "fit",
			Args: vmRun("--interval 50ms", "hog 60 0.3"), Watch: []string{"fit/memory.peak"}, check: vmFits},
		{Name: "throttled by cpu.max", Groups: []vmGroup{{"slow", [][2]string{{"cpu.max", "50000 100000"}}}}, In: "slow",
			Args: []string{"/bin/sh", "-c", vmSlow}, Watch: []string{"slow/cpu.stat"}, check: vmThrottled},
		{Name: "nested limits", Groups: []vmGroup{
			{"above", [][2]string{{"cgroup.subtree_control", "+cpu +memory +pids"}, {"memory.max", "64M"}, {"cpu.max", "150000 100000"}}},
			{"above/middle", [][2]string{{"cgroup.subtree_control", "+cpu +memory +pids"}, {"memory.max", "500M"}}},
			{"above/middle/job", nil},
		}, In: "above/middle/job", Args: vmRun("", "hog 100 0"), Watch: []string{"above/memory.events", "above/middle/job/memory.events"}, check: vmNested},
		{Name: "pids.max reached", Groups: []vmGroup{{"full", [][2]string{{"pids.max", "40"}}}}, In: "full",
			Args: []string{"/bin/perfagent", "run", "--interval", "100ms", "--", "/bin/sh", "-c", vmFill}, Watch: []string{"full/pids.*"}, check: vmFull},
		{Name: "bytes written", Groups: []vmGroup{{"io", nil}}, In: "io",
			Args: vmRun("", "write /dev/vda 8"), Watch: []string{"io/io.stat"}, check: vmBytes},
		{Name: "a group made for the job", Groups: []vmGroup{{"make", nil}}, In: "make",
			Args: vmRun("--cgroup create --interval 100ms", "truth children 5 0.4"), Watch: []string{"make/cgroup.*", "make/*/cpu.stat", "make/cpu.stat"}, check: vmCreated},
		{Name: "a made group that is killed in", Groups: []vmGroup{{"makekill", [][2]string{{"memory.max", "48M"}, {"cpu.max", "90000 100000"}}}}, In: "makekill",
			Args: vmRun("--cgroup create", "hog 100 0"), Watch: []string{"makekill/cgroup.*", "makekill/memory.events"}, check: vmCreatedKilled},
		{Name: "a made group that is not empty", Groups: []vmGroup{{"stay", nil}}, In: "stay",
			Args: vmRun("--cgroup create", "daemon 60"), Watch: []string{"stay/cgroup.procs", "stay/*/cgroup.procs"}, check: vmStays},
		{Name: "a group below one with more processes", Groups: []vmGroup{{"shared", nil}}, In: "shared",
			Args: []string{"/bin/sh", "-c", "/bin/perfagent run --cgroup create --interval 100ms -- /init hog 40 0.5; exit $?"}, Watch: []string{"shared/cgroup.*"}, check: vmShared},
		{Name: "a job that divides perfagent's group", Groups: []vmGroup{{"divide", nil}}, In: "divide",
			Args: []string{"/bin/perfagent", "run", "--", "/bin/sh", "-c", vmDivide}, check: vmDivides(1)},
		{Name: "a job that divides its own group", Groups: []vmGroup{{"divideown", nil}}, In: "divideown",
			Args: []string{"/bin/perfagent", "run", "--cgroup", "create", "--", "/bin/sh", "-c", vmDivide}, check: vmDivides(0)},
		{Name: "a shell waits in the group", Groups: []vmGroup{{"shell", [][2]string{{"memory.max", "300M"}, {"cpu.max", "150000 100000"}}}}, In: "shell",
			Args: []string{"/bin/sh", "-c", "/bin/perfagent run -- /init hog 60 0; exit $?"}, check: vmShell},
		{Name: "a namespace", Groups: []vmGroup{{"space", [][2]string{{"memory.max", "48M"}, {"cpu.max", "150000 100000"}}}}, In: "space",
			Args: append([]string{"/init", "namespaced", "new"}, vmRun("", "hog 100 0")...), Watch: []string{"space/memory.events"}, check: vmNamespace},
		{Name: "a namespace with the mount of outside", Groups: []vmGroup{
			{"outer", [][2]string{{"cgroup.subtree_control", "+cpu +memory"}, {"cpu.max", "150000 100000"}}}, {"outer/inner", [][2]string{{"memory.max", "48M"}}}}, In: "outer/inner",
			Args: append([]string{"/init", "namespaced", "old"}, vmRun("", "hog 100 0")...), Watch: []string{"outer/inner/memory.events"}, check: vmNamespace},
		{Name: "a network file system", Groups: []vmGroup{{"nfs", nil}}, In: "nfs",
			Args: append([]string{"/init", "nfs"}, "/bin/perfagent", "run", "--interval", "250ms", "--disk-path", "/", "--disk-path", "/mnt/nfs",
				"--", "/bin/sh", "-c", vmUseNFS), check: vmNFS},
	}
}

// vmSlow is a script in which the group is throttled before the job starts. This must not be counted.
const vmSlow = "/init burn 0.2 2; busybox cat /sys/fs/cgroup/slow/cpu.stat; exec /bin/perfagent run -- /init truth burn 0.4 2 8"

// vmNoLog is the beginning of a script that allows so few descriptors that perfagent does not open the kernel's log.
const vmNoLog = "ulimit -n 60; exec /bin/perfagent run -- "

// vmHostKill is a script that fills its group with page cache, and then makes the kernel kill it as if the host were
// out of memory.
const vmHostKill = `busybox dd if=/dev/vda of=/dev/null bs=1M 2>/dev/null; echo 1000 >/proc/self/oom_score_adj; echo f >/proc/sysrq-trigger; busybox sleep 20`

// vmDivide is a script that moves the job to a group below its group, and then enables a controller for that group; see
// docs/wrapping.md.
const vmDivide = `read -r line </proc/self/cgroup; own=/sys/fs/cgroup${line#0::}
busybox mkdir $own/below && echo $$ >$own/below/cgroup.procs && echo +memory >$own/cgroup.subtree_control`

// vmFill is a script that starts processes until the kernel refuses, and then waits for three samples. It does so in
// the shell itself, which cannot start another process.
const vmFill = `( while :; do /bin/busybox sleep 600 & done ) 2>/dev/null
count() { n=0; for j in "$PERFAGENT_OUT"/*/node-0.jsonl; do while read -r line; do
	case $line in '{"sample"'*) n=$((n+1)) ;; esac; done <"$j"; done; }
count; end=$((n+3)); while count; [ $n -lt $end ]; do :; done; exit 5`

// number reads a number from the content of a file in the machine's output: from the line that begins with word or, if
// word is "", from the line that is only a number.
func (r *vmResult) number(t *testing.T, when map[string]string, file, word string) float64 {
	t.Helper()
	text, found := when[file]
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if word == "" && len(f) == 1 || len(f) == 2 && f[0] == word {
			v, err := strconv.ParseFloat(f[len(f)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("%s has no number %q (file reported: %v): %q", file, word, found, text)
	return 0
}

func vmKilled(t *testing.T, r *vmResult) {
	if r.Code != 137 {
		t.Errorf("exit code %d, want 137", r.Code)
	}
	guestSource(t, r.node, "cgroup")
	guestLimits(t, r.node, 2, 48)
	guestKilled(t, r.node, r.run, 48)
	if got := r.node.Verdict.Evidence["process"]; got != "init" {
		t.Errorf("killed process %v, want init", got)
	}
	if pid := r.node.Verdict.Evidence["pid"]; pid != float64(r.node.Job.PID) {
		t.Errorf("killed process = %v, want the job's process %d", pid, r.node.Job.PID)
	}
	guestNear(t, "peak_mb", r.node.Verdict.Evidence["peak_mb"].(float64), r.number(t, r.After, "kill/memory.peak", "")/guestMiB, 0)
	if n := r.number(t, r.After, "kill/memory.events", "oom_kill"); n != 1 {
		t.Errorf("the kernel's oom_kill = %v, want 1", n)
	}
}

// The counters of control groups v2 prove that the limit was the cause, even without the kernel's log.
func vmKilledNoLog(t *testing.T, r *vmResult) {
	guestKilled(t, r.node, r.run, 48)
	if n := r.number(t, r.After, "nolog/memory.events", "oom"); n < 1 {
		t.Errorf("the kernel's oom = %v, want at least 1", n)
	}
}

// A kill because the host is out of memory is not attributed to the group's limit, although page cache fills the group.
func vmHost(t *testing.T, r *vmResult) {
	v := r.node.Verdict
	if r.Code != 137 || v.Cause != "oom_host" || v.Evidence["limit_mb"] != nil || v.Evidence["limit_kills"] != 0.0 || v.Evidence["pid"] != float64(r.node.Job.PID) {
		t.Errorf("exit code %d, verdict %+v; want 137, oom_host of process %d", r.Code, v, r.node.Job.PID)
	}
	vmNotAtLimit(t, r, "host/memory.events")
}

// If the kernel's log is unreadable and the host had enough memory, only the kill itself is certain.
func vmHostNoLog(t *testing.T, r *vmResult) {
	v := r.node.Verdict
	if r.Code != 137 || v.Cause != "oom" || !strings.Contains(v.Text, "or of the host: which is not known") || v.Evidence["limit_kills"] != 0.0 {
		t.Errorf("exit code %d, verdict %+v; want 137, oom of the group or the host", r.Code, v)
	}
	vmNotAtLimit(t, r, "hostless/memory.events")
}

// vmNotAtLimit checks that the group reached its limit, but that a kill in it had another reason.
func vmNotAtLimit(t *testing.T, r *vmResult, events string) {
	t.Helper()
	full, ooms, kills := r.number(t, r.After, events, "max"), r.number(t, r.After, events, "oom"), r.number(t, r.After, events, "oom_kill")
	if full < 1 || ooms != 0 || kills != 1 {
		t.Errorf("max %v, oom %v, oom_kill %v; want at least 1, 0, 1", full, ooms, kills)
	}
}

// The kernel kills the job because the only NUMA node that the job's cpuset allows is out of memory.
func vmNode(t *testing.T, r *vmResult) {
	v := r.node.Verdict
	if r.Code != 137 || v.Cause != "oom_cpuset" || v.Evidence["nodes"] != "1" || v.Evidence["pid"] != float64(r.node.Job.PID) ||
		!strings.Contains(v.Text, "was killed because NUMA node 1, all that its cpuset allows, was out of memory") {
		t.Errorf("exit code %d, verdict %+v; want 137, oom_cpuset on NUMA node 1", r.Code, v)
	}
}

func vmKilledChild(t *testing.T, r *vmResult) {
	if r.Code != 3 {
		t.Errorf("exit code %d, want 3", r.Code)
	}
	guestSource(t, r.node, "cgroup")
	guestKilled(t, r.node, r.run, 48)
	if got := r.node.Verdict.Evidence["process"]; got != "init" {
		t.Errorf("killed process %v, want init", got)
	}
	if pid, ok := r.node.Verdict.Evidence["pid"].(float64); !ok || pid == float64(r.node.Job.PID) {
		t.Errorf("killed process = %v, want a child of the job's process %d", pid, r.node.Job.PID)
	}
}

func vmSpared(t *testing.T, r *vmResult) {
	if v := r.node.Verdict; r.Code != 0 || v.Cause != "exited" || v.Evidence["exit_code"] != 0.0 {
		t.Errorf("exit code %d, verdict %+v; want 0, cause exited", r.Code, v)
	}
	if n := clitest.Metric(t, r.node, "job_oom_kills"); n != 1 {
		t.Errorf("job_oom_kills = %v, want 1", n)
	}
}

func vmOldKill(t *testing.T, r *vmResult) {
	if v := r.node.Verdict; r.Code != 7 || v.Cause != "exited" || v.Evidence["exit_code"] != 7.0 {
		t.Errorf("exit code %d, verdict %+v; want 7, cause exited", r.Code, v)
	}
	if n := clitest.Metric(t, r.node, "job_oom_kills"); n != 0 {
		t.Errorf("job_oom_kills = %v, want 0", n)
	}
	if n := r.number(t, r.After, "old/memory.events", "oom_kill"); n != 1 {
		t.Errorf("the kernel's oom_kill = %v, want 1 from before the job", n)
	}
}

func vmFits(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "cgroup")
	guestLimits(t, r.node, 2, 300)
	guestNear(t, "cgroup_peak_mb", r.node.Job.CgroupPeakMB, r.number(t, r.After, "fit/memory.peak", "")/guestMiB, 0.01)
	// The job allocates 60 MiB, and its runtime needs up to 8 MiB. The 15 MiB of perfagent do not count.
	guestNear(t, "peak_memory_mb", r.node.Job.PeakMemoryMB, 65, 0.08)
	guestNear(t, "max_t_limit_memory_pct", clitest.Metric(t, r.node, "max_t_limit_memory_pct"), 100*r.node.Job.CgroupPeakMB/300, 0.05)
	if v := r.node.Verdict; v.Cause != "exited" {
		t.Errorf("verdict %+v, want cause exited", v)
	}
	// The kinds of memory of the group add up to its usage, which is highest at the end.
	if p := r.node.Job.MemoryAtPeak; p == nil || p.AnonMB < 60 || !(p.KernelMB > 0) {
		t.Errorf("memory at the peak = %+v, want at least 60 MiB of anonymous memory, and some of the kernel", p)
	} else {
		guestNear(t, "sum of memory_at_peak", p.SumMB(), r.node.Job.CgroupPeakMB, 0.05)
	}
}

func vmThrottled(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "cgroup")
	guestLimits(t, r.node, 0.5, 0)
	before, after := guestTruth(t, r.Out)
	told := map[string]string{"start": r.Out, "end": r.After["slow/cpu.stat"]}
	grown := func(key string) float64 { return r.number(t, told, "end", key) - r.number(t, told, "start", key) }
	if old := r.number(t, told, "start", "nr_throttled"); old < 1 {
		t.Errorf("%v throttled periods before the job, want at least 1", old)
	}
	around := clitest.Counters{Periods: grown("nr_periods"), Throttled: grown("nr_throttled"), ThrottledFor: grown("throttled_usec") / 1e6}
	clitest.WantThrottled(t, r.node, before, after, around)
	if !slices.Contains(r.node.Verdict.Conditions, "throttled") {
		t.Errorf("conditions %v, want throttled", r.node.Verdict.Conditions)
	}
	if v := clitest.Metric(t, r.node, "job_psi_cpu_some_avg_pct"); !(v > 5 && v <= 100) {
		t.Errorf("job_psi_cpu_some_avg_pct = %v, want above 5 and at most 100 for a throttled job", v)
	}
	guestNear(t, "limit_cpu_utilization_pct", clitest.Metric(t, r.node, "limit_cpu_utilization_pct"), 100*r.node.Job.CPUSeconds/(r.run.WallSeconds*0.5), 0.001)
}

func vmNested(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "cgroup")
	guestLimits(t, r.node, 1.5, 64)
	if l := r.node.Limits; l.MemoryGroup != "/above" || l.CPUGroup != "/above" {
		t.Errorf("limits %+v, want /above as the group of both", l)
	}
	guestKilled(t, r.node, r.run, 64)
}

func vmFull(t *testing.T, r *vmResult) {
	if r.Code != 5 {
		t.Errorf("exit code %d, want 5", r.Code)
	}
	if n := r.number(t, r.After, "full/pids.events", "max"); n < 1 {
		t.Errorf("max in pids.events = %v, want at least 1: pids.max was not reached", n)
	}
	guestSource(t, r.node, "cgroup")
	if v := r.node.Verdict; v.Cause != "exited" || v.Evidence["exit_code"] != 5.0 {
		t.Errorf("verdict %+v, want cause exited with code 5", v)
	}
	if s := r.node.Sampling; s.Samples < 3 {
		t.Errorf("%d samples, want at least 3", s.Samples)
	}
	if n := clitest.Metric(t, r.node, "max_t_job_processes"); n < 15 || n > 40 {
		t.Errorf("max_t_job_processes = %v, want 15 to 40", n)
	}
}

func vmBytes(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "cgroup")
	if got := clitest.Metric(t, r.node, "total_job_io_write_mb"); got != 8 {
		t.Errorf("total_job_io_write_mb = %v, want 8; the kernel's io.stat: %s", got, r.After["io/io.stat"])
	}
}

func vmCreated(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "created")
	_, after := guestTruth(t, r.Out)
	// For a job that has waited for all its children, wait4 reports the CPU time of its group, without what the ends of
	// the processes took. That is noticeable if the CPUs are busy. The job itself read the counter of its group
	// shortly before its end.
	rusage := r.node.Job.UserSeconds + r.node.Job.SystemSeconds
	if cpu := r.node.Job.CPUSeconds; cpu < 0.99*rusage || cpu > 1.1*rusage {
		t.Errorf("cpu_seconds = %v, want 0.99 to 1.1 times the %v that wait4 reports", cpu, rusage)
	}
	if after.CPU > r.node.Job.CPUSeconds || after.CPU < 0.9*rusage {
		t.Errorf("cpu_seconds = %v, want at least the group's %v shortly before the end; wait4 reports %v",
			r.node.Job.CPUSeconds, after.CPU, rusage)
	}
	if whole := r.number(t, r.After, "make/cpu.stat", "usage_usec") / 1e6; r.node.Job.CPUSeconds > whole {
		t.Errorf("cpu_seconds = %v, want at most %v, the CPU time of perfagent and the job", r.node.Job.CPUSeconds, whole)
	}
	for file := range r.After {
		if strings.Count(file, "/") > 1 {
			t.Errorf("control group left: %s", file)
		}
	}
	if left := r.After["make/cgroup.subtree_control"]; left != "\n" && left != "" {
		t.Errorf("controllers left enabled: %q, want none", left)
	}
	if r.node.Job.CgroupStays {
		t.Error("cgroup_stays is true, want the control group removed")
	}
}

func vmCreatedKilled(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "created")
	guestLimits(t, r.node, 0.9, 48)
	guestKilled(t, r.node, r.run, 48)
	clitest.Metric(t, r.node, "job_throttled_periods_pct")
}

// vmDivides returns a check of vmDivide that expects the given exit code.
func vmDivides(code int) func(*testing.T, *vmResult) {
	return func(t *testing.T, r *vmResult) {
		if busy := strings.Contains(r.Err, "busy"); r.Code != code || busy != (code != 0) {
			t.Errorf("exit code %d, want %d; stderr %q", r.Code, code, r.Err)
		}
	}
}

func vmStays(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "created")
	if !r.node.Job.CgroupStays {
		t.Errorf("job %+v, want cgroup_stays true", r.node.Job)
	}
	pid, held := strings.TrimSpace(r.Out), false
	for file, text := range r.After {
		held = held || strings.HasSuffix(file, "/cgroup.procs") && strings.Contains("\n"+text, "\n"+pid+"\n")
	}
	if !held {
		t.Errorf("daemon %s is in none of the groups: %v", pid, r.After)
	}
	guestMissing(t, r.node, host.SourceCgroup, "not empty")
}

// vmShared checks a group that also has other processes, and so cannot enable the memory controller for groups below
// it. The CPU time is then from the group made for the job, and the memory from the job's processes.
func vmShared(t *testing.T, r *vmResult) {
	if j := r.node.Job; j.Source != "created" || j.MemoryKind != "pss" && j.MemoryKind != "rss" {
		t.Errorf("source %q, memory kind %q; want created, and pss or rss", j.Source, j.MemoryKind)
	}
	guestNear(t, "peak_memory_mb", r.node.Job.PeakMemoryMB, 43, 0.1)
	guestMissing(t, r.node, host.SourceCgroup, "--cgroup create", "subtree_control", "busy")
}

// vmShell checks that a shell in perfagent's group does not count as a part of the job, but that the group's limits
// apply to the job.
func vmShell(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "tree")
	guestLimits(t, r.node, 1.5, 300)
}

func vmNamespace(t *testing.T, r *vmResult) {
	guestSource(t, r.node, "cgroup")
	guestLimits(t, r.node, 1.5, 48)
	guestKilled(t, r.node, r.run, 48)
}
