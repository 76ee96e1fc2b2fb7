//go:build e2e

package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// The reported CPU time agrees with the kernel's counter for a control group that contains perfagent and all its
// children.
func TestE2E_Account_CPUTimeEqualsKernelCounter(t *testing.T) {
	for name, job := range map[string]string{
		"children": clitest.ManyChildren, "daemon": clitest.DaemonBurns, "thread": clitest.ThreadForks, "sharing": clitest.Sharing,
	} {
		for mode, source := range map[string]string{"off": "tree", "create": "created"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				usage := func() float64 { return math.NaN() }
				cmd := runPython(t, []string{"--cgroup", mode, "--interval", "100ms"}, job)
				if mode == "off" { // perfagent's own group is the reference
					usage = accountGroup(t, cmd.Args, &cmd.Path, &cmd.Args)
				}
				r, w := clitest.Pipe(t)
				cmd.ExtraFiles = []*os.File{6: r} // descriptor 9
				o, own := performAlone(t, cmd)
				r.Close()
				n := wantNode(t, o, 0)
				wantSource(t, n, source)
				truth := usage() - own
				if mode == "create" {
					truth = n.Job.UserSeconds + n.Job.SystemSeconds // another kernel counter
					if name == "daemon" {
						told, err := strconv.ParseFloat(strings.TrimSpace(o.Out), 64)
						check.Must(t, err)
						truth += told
						w.Close() // the daemon ends
						stays(t, filepath.Base(n.Job.Cgroup))
					}
				}
				if got := n.Job.CPUSeconds; math.Abs(got-truth) > 0.01*truth+0.02 {
					t.Errorf("CPU time = %.3f s, want %.3f (wait4 reports %.3f)", got, truth, n.Job.UserSeconds+n.Job.SystemSeconds)
				}
				if v := n.Metrics["job_cpu_seconds"]; v != n.Job.CPUSeconds {
					t.Errorf("job_cpu_seconds = %v, want %v, as in job.cpu_seconds", v, n.Job.CPUSeconds)
				}
				if name == "sharing" {
					if n.Job.PeakMemoryMB < 300 || n.Job.PeakMemoryMB > 345 {
						t.Errorf("peak memory of four processes that share 300 MiB = %v MiB (%s), want 300 to 345; missing: %v",
							n.Job.PeakMemoryMB, n.Job.MemoryKind, n.Missing)
					}
					if got := n.Metrics["max_t_job_processes"]; got != 4 {
						t.Errorf("max_t_job_processes = %v, want 4", got)
					}
				}
			})
		}
	}
}

// If perfagent is alone in a control group without limits, it reports the group's counters for the job.
func TestE2E_Account_ReportsCountersOfOwnGroupWithoutLimits(t *testing.T) {
	cmd := runPython(t, nil, clitest.ManyChildren)
	usage := accountGroup(t, cmd.Args, &cmd.Path, &cmd.Args)
	o, own := performAlone(t, cmd)
	n := wantNode(t, o, 0)
	wantSource(t, n, "cgroup")
	truth := usage() - own
	if math.Abs(n.Job.CPUSeconds-truth) > 0.01*truth+0.02 {
		t.Errorf("CPU time = %.3f s, want %.3f s", n.Job.CPUSeconds, truth)
	}
}

// If the final sample hangs in the kernel, perfagent does not remove the control group, which the sample may be
// reading. It prints the name of the group, and the journal of the run remains.
func TestE2E_Account_KeepsJournalAndGroupIfFinalSampleHangs(t *testing.T) {
	t.Parallel()
	o := clitest.RunCommand(t, underHanging(t, "/proc/loadavg", "run", "--run-id", "hangs", "--cgroup", "create", "--",
		"sh", "-c", "cat /proc/self/cgroup; exit 7"))
	o.Want(t, 7)
	found := regexp.MustCompile(`:cpuacct:.*/(perfagent-hangs\.0\.\d+)\n`).FindStringSubmatch(o.Out)
	if found == nil {
		t.Skipf("cannot create a cgroup v1 group here: %s%s", o.Out, o.Err)
	}
	if groups := stays(t, found[1]); len(groups) == 0 {
		t.Errorf("group %q was removed, want it kept: the hanging sample may be reading it", found[1])
	}
	o.WantLine(t, "final sample", "journal", found[1]+" is left", "rmdir")
	if !clitest.Exists(filepath.Join(o.Dir, "perfagent-out/hangs/node-0.jsonl")) {
		t.Error("journal perfagent-out/hangs/node-0.jsonl does not exist, want it kept")
	}
}

// perfagent exits even if the removal of the control group hangs in the kernel.
func TestE2E_Account_HangingGroupRemovalDoesNotDelayExit(t *testing.T) {
	t.Parallel()
	cmd := underHanging(t, "", append([]string{"run", "--interval", "100ms", "--cgroup", "create", "--"}, clitest.Python(t, hangingGroup)...)...)
	n := wantNode(t, clitest.RunCommand(t, cmd), 7)
	if n.Job.Source != "created" {
		t.Skipf("cannot create a control group here: %v", n.Missing)
	}
	if len(stays(t, filepath.Base(n.Job.Cgroup))) == 0 || !n.Job.CgroupStays {
		t.Errorf("group %q: cgroup_stays = %v, want true and the group kept", n.Job.Cgroup, n.Job.CgroupStays)
	}
	wantMissing(t, n, "cgroup", "no response within")
}

// A GPU driver that fails in one of three ways does not affect the job, and the report gives the reason.
func TestE2E_Account_FailingGPUDriverDoesNotAffectJob(t *testing.T) {
	for name, c := range map[string]struct{ program, why string }{
		"no driver":      {"#!/bin/sh\necho \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"\necho $$ > $SMI_PID\nexit 9\n", "driver"},
		"hangs":          {"#!/bin/sh\necho $$ > $SMI_PID\nexec sleep 600\n", ""},
		"no interpreter": {"#!/no/such/interpreter\n", "nvidia-smi"},
	} {
		t.Run(name, func(t *testing.T) {
			env, _ := withGPUs(t, c.program)
			job := `until [ -s "$SMI_PID" ]; do sleep 0.05; done; ` // nvidia-smi has started
			if name == "no interpreter" {
				job = "" // nvidia-smi never starts
			}
			job += untilSampledAgain(5) + "; exit 3"
			o := mustExit(t, 3, with(clitest.Perfagent(t, "run", "--interval", "200ms", "--", "sh", "-c", job), env...))
			r := o.Report(t)
			if r.Run.WallSeconds > 300 || len(r.Nodes["0"].GPUs) != 0 { // a hanging nvidia-smi sleeps for 600 s
				t.Errorf("the job took %v s, want at most 300; GPUs %v, want none", r.Run.WallSeconds, r.Nodes["0"].GPUs)
			}
			if c.why != "" {
				wantMissing(t, r.Nodes["0"], "gpu", c.why)
			}
		})
	}
}

// Children of a job that ignores SIGCHLD are counted, although the kernel discards their resource usage.
func TestE2E_Account_CountsChildrenOfJobIgnoringSIGCHLD(t *testing.T) {
	n := wantNode(t, clitest.RunCommand(t, runPython(t, []string{"--cgroup", "off", "--interval", "100ms"}, clitest.Burn+clitest.Sampled+`
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(2):
    if os.fork() == 0:
        burn(1)
        sampled(2) # CPU time used after the last sample is not counted
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
`)), 0)
	if cpu := n.Job.CPUSeconds; cpu < 1.5 || cpu > 2.3 {
		t.Errorf("CPU time = %v s, want 1.5 to 2.3 (the children used 2 s); wait4 reports %v s",
			cpu, n.Job.UserSeconds+n.Job.SystemSeconds)
	}
}

// If perfagent is alone in its control group, an nvidia-smi that uses a whole CPU and 60 MiB is not counted as part of
// the job, even if a wrapper script started it.
func TestE2E_Account_DoesNotCountNvidiaSMIInOwnGroup(t *testing.T) {
	env, pidFile := withGPUs(t, "#!/bin/sh\n"+`"$0.real" "$@" | cat`+"\n")
	real := strings.Replace(smi, "while :; do\n", "x=$(head -c 60000000 /dev/zero | tr '\\0' x)\nwhile :; do\n", 1)
	real = strings.Replace(real, "sleep 0.2", "for i in {1..20000}; do :; done", 1)
	clitest.Write(t, filepath.Join(filepath.Dir(pidFile), "nvidia-smi.real"), real, 0o755)
	cmd := with(clitest.Perfagent(t, "run", "--interval", "250ms", "--", "cat"), env...)
	accountGroup(t, cmd.Args, &cmd.Path, &cmd.Args)
	n := wantNode(t, besideGPUs(t, cmd, pidFile, 10), 0)
	wantSource(t, n, "cgroup")
	memory, processes := n.Samples.Column("job_memory_mb"), n.Envelope["job_processes"].Max
	if len(memory) < 4 || len(processes) != len(memory) {
		t.Fatalf("%d memory and %d process samples, want at least 4 of each, equally many", len(memory), len(processes))
	}
	half := len(memory) / 2 // in the first half, processes of nvidia-smi end while they are being counted
	low := slices.ContainsFunc(memory[half:len(memory)-1], func(v float64) bool { return v <= 30 })
	if n.Job.CPUSeconds > 0.3 || !low || slices.Max(processes[half:]) > 1 {
		t.Errorf("source %s: CPU time %v s, memory %v MiB, processes %v; want them without nvidia-smi",
			n.Job.Source, n.Job.CPUSeconds, memory, processes)
	}
	if len(n.GPUs) != 2 {
		t.Errorf("%d GPUs, want 2; missing: %v", len(n.GPUs), n.Missing)
	}
}

// Zombies are not included in the job's processes and threads, whatever the source of the numbers.
func TestE2E_Account_ZombiesAreNotProcessesOfJob(t *testing.T) {
	for _, mode := range []string{"off", "create"} {
		n := wantNode(t, clitest.RunCommand(t, runPython(t, []string{"--cgroup", mode, "--interval", "200ms"}, clitest.Sampled+`
for i in range(50):
    if os.fork() == 0: os._exit(0)
sampled(6)
`)), 0)
		for _, key := range []string{"job_processes", "job_threads"} {
			most := n.Envelope[key].Max
			if len(most) < 4 || most[len(most)/2] != 1 { // the zombies may be gone by the last samples
				t.Errorf("--cgroup %s, source %s: %s = %v, want 1 in the middle", mode, n.Job.Source, key, most)
			}
		}
	}
}

// CPU time that many processes lose by rounding to clock ticks does not appear in the last window.
func TestE2E_Account_LastWindowExcludesCPUTimeRoundedOffEarlier(t *testing.T) {
	t.Parallel()
	const many = clitest.Burn + clitest.Sampled + `
for i in range(90):
    if os.fork() == 0:
        burn(0.0085)
        time.sleep(600)
        os._exit(0)
sampled(8)
os.killpg(0, 9)
`
	n := clitest.Run(t, "run", "--interval", "500ms", "--cgroup", "off", "--", "setsid", "-w", testenv.Python(t), "-c", many).Report(t).Nodes["0"]
	cores, times := n.Envelope["job_cpu_cores"].Mean, n.Envelope["timestamp"].Mean
	last := len(cores) - 1
	if last < 5 {
		t.Fatalf("the report has %d windows, want at least 6", len(cores))
	}
	// Rounding hides 0.76 s. Ending many processes takes some CPU time. NaN means that the window was too short.
	if spent := cores[last] * (times[last] - times[last-1]); spent > 0.4 {
		t.Errorf("the last window has %.2f s of CPU time, want at most 0.4: the job slept; CPUs by window %v",
			spent, cores)
	}
}
