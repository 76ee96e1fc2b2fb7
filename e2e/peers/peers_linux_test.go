//go:build e2e

package peers

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// peersFlag makes the test measure, and write the table in docs/job.md that compares perfagent with other tools and
// with the kernel. make peers sets it.
var peersFlag = flag.Bool("peers", false, "measure beside other tools, and write the table of docs/job.md")

// peerJobs returns the jobs of the table.
func peerJobs() []struct{ name, program string } {
	return []struct{ name, program string }{
		{"200 children × 10 ms", clitest.ManyChildren}, {"double-forked daemon", clitest.DaemonBurns},
		{"a thread forks", clitest.ThreadForks}, {"4 processes share 300 MiB", clitest.Sharing},
	}
}

// peerFound holds the figures of a tool and of the kernel for a job.
type peerFound struct{ cpu, kernelCPU, memory, kernelMemory, own float64 }

// TestPeers_Table runs the same jobs under perfagent and other tools. It compares each tool with the kernel's counters
// of a control group that contains only the job.
func TestPeers_Table(t *testing.T) {
	if !*peersFlag {
		t.Skip("needs two minutes and other tools: make peers")
	}
	var names []string
	found := make(map[string][]peerFound)
	for _, tool := range peerTools(t) {
		names = append(names, tool.name)
		for _, job := range peerJobs() {
			found[tool.name] = append(found[tool.name], peerMeasure(t, tool, job.program))
		}
	}
	for i, job := range peerJobs() {
		for _, name := range names[:2] { // the two variants of perfagent
			f := found[name][i]
			if math.Abs(f.cpu-f.kernelCPU) > 0.01*f.kernelCPU+0.01 {
				t.Errorf("%s, %s: CPU time %.3f s, want the kernel's %.3f s", job.name, name, f.cpu, f.kernelCPU)
			}
			if job.program == clitest.Sharing && (f.memory < 300 || f.memory > 345) {
				t.Errorf("%s, %s: memory %.0f MiB, want 300 to 345", job.name, name, f.memory)
			}
		}
	}
	peerWrite(t, "docs/job.md", "peers", peerRows(names, found))
}

func peerMeasure(t *testing.T, tool peerTool, program string) (f peerFound) {
	r := peerStart(t, tool, program)
	r.end()
	f.kernelCPU, f.own = r.cpu()
	f.kernelMemory = r.peak()
	f.cpu, f.memory = tool.says(r)
	r.remove()
	t.Logf("%s: %+v", tool.name, f)
	return f
}

func peerRows(names []string, found map[string][]peerFound) string {
	var out strings.Builder
	cell := func(format string, says, kernel float64) string {
		if math.IsNaN(says) {
			return fmt.Sprintf("nothing ("+format+")", kernel)
		}
		return fmt.Sprintf(format+" ("+format+")", says, kernel)
	}
	for _, table := range []struct {
		head string
		cell func(f peerFound) string
	}{
		{"CPU, s", func(f peerFound) string { return cell("%.2f", f.cpu, f.kernelCPU) }},
		{"peak memory, MiB", func(f peerFound) string { return cell("%.0f", f.memory, f.kernelMemory) }},
		{"the tool's own CPU, s", func(f peerFound) string { return fmt.Sprintf("%.3f", f.own) }},
	} {
		fmt.Fprintf(&out, "| %s |", table.head)
		for _, job := range peerJobs() {
			fmt.Fprintf(&out, " %s |", job.name)
		}
		out.WriteString("\n|---|---|---|---|---|\n")
		for _, name := range names {
			fmt.Fprintf(&out, "| %s |", name)
			for _, f := range found[name] {
				fmt.Fprintf(&out, " %s |", table.cell(f))
			}
			out.WriteString("\n")
		}
		out.WriteString("\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// peerWrite rewrites a part of a document.
func peerWrite(t *testing.T, file, name, part string) {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	path := testenv.Repository(t, file)
	before, rest, found := strings.Cut(clitest.Read(t, path), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no markers for %q", file, name)
	}

	clitest.Write(t, path, before+begin+part+end+after, 0o644)
	t.Log("\n" + part)
}

// peerStorm forks %d processes, at most 50 at a time. Each ends immediately.
const peerStorm = `import os
for i in range(%d):
    if os.fork() == 0: os._exit(0)
    if i %% 50 == 49:
        for _ in range(50): os.wait()
`

// peerOrphans forks twice the given number of processes. Half of them become orphans.
const peerOrphans = `import os
r, w = os.pipe()
for i in range(%d):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
os.close(w)
os.read(r, 1) # until all have ended
`

// peerAlive starts sleeping processes, and prints a line when all of them run. They end when a byte arrives.
const peerAlive = `import os, select, signal
pids = [os.posix_spawn("/bin/sleep", ["sleep", "150"], {}) for i in range(%d)]
open(os.environ["PEER_DIR"] + "/ready", "w").close()
select.select([9], [], [], 140)
for pid in pids: os.kill(pid, signal.SIGKILL)
for pid in pids: os.waitpid(pid, 0)
`

// peerVanish runs ten processes that start other processes for some seconds, and for at least 20 samples. Each of these
// ends after 0 to 9 ms of CPU time.
const peerVanish = clitest.Burn + `
import glob
end, stop = time.time() + %d, os.environ["PEER_DIR"] + "/stop"
def samples():
    journals = glob.glob(os.environ["PEER_DIR"] + "/perfagent-out/*/node-0.jsonl")
    return sum(open(j).read().count('{"sample"') for j in journals)
for w in range(10):
    if os.fork() == 0:
        n = 0
        while not os.path.exists(stop):
            n += 1
            if os.fork() == 0:
                burn(n %% 10 / 1000)
                os._exit(0)
            os.wait()
        os._exit(0)
while time.time() < end or samples() < 20: time.sleep(0.1)
open(stop, "w").close()
for w in range(10): os.wait()
`

// peerStress is a job that is hard to measure.
type peerStress struct {
	name, program, interval string
	least                   float64 // minimum number of processes in a sample
	orphans                 int
	steady                  bool // whether it waits after it has started its processes
}

// The real binary measures jobs with thousands of processes, and with processes that end while they are measured. With
// -peers, the jobs are larger, and also run in a control group made for them.
func TestPeers_MeasuresManyProcesses(t *testing.T) {
	const alive = 5000
	storm, vanish, tick := 1000, 2, "50ms" // the storm ends within a second
	if *peersFlag {
		storm, vanish, tick = alive, 10, "1s"
	}
	jobs := []peerStress{
		{fmt.Sprintf("fork storm: %d processes that end at once", storm), fmt.Sprintf(peerStorm, storm), tick, 1, 0, false},
		{fmt.Sprintf("fork storm: %d processes, half of them orphans", storm), fmt.Sprintf(peerOrphans, storm/2), tick, 1, storm / 2, false},
		{fmt.Sprintf("vanishing: 10 × processes of 0 to 9 ms, %d s, read each 10 ms", vanish), fmt.Sprintf(peerVanish, vanish), "10ms", 11, 0, false},
		{"301 processes alive, 1 Hz", fmt.Sprintf(peerAlive, 300), "1s", 301, 0, true},
	}
	if *peersFlag {
		for _, n := range []int{1, alive} { // a single process shows the base cost
			jobs = append(jobs, peerStress{fmt.Sprintf("%d processes alive, 1 Hz", n+1), fmt.Sprintf(peerAlive, n), "1s", float64(n) + 1, 0, true})
		}
	}
	for _, job := range jobs {
		for _, mode := range []string{agent.Off, agent.Create} {
			if !*peersFlag && mode == agent.Create {
				continue
			}
			t.Run(job.name+"/"+mode, func(t *testing.T) { peerStressed(t, &job, mode) })
		}
	}
}

// peerWindow is the time for which a steady job is measured, after peerSettle. During peerSettle, perfagent finds out
// whether reading PSS is too expensive; see package process.
const (
	peerWindow = 10 * time.Second
	peerSettle = 12 * time.Second
)

// peerStressed measures a job, checks its numbers, and logs perfagent's own usage.
func peerStressed(t *testing.T, job *peerStress, mode string) {
	tool := peerTool{mode, func(r *peerRun) []string {
		return append([]string{clitest.Binary(t), "run", "--cgroup", mode, "--no-page", "--interval", job.interval, "--"}, r.job...)
	}, (*peerRun).ourSays}
	r := peerStart(t, tool, job.program)
	share := math.NaN()
	if job.steady {
		settle, window := time.Second, time.Second
		if *peersFlag {
			settle, window = peerSettle, peerWindow
		}
		clitest.WaitUntil(t, "all processes run", func() bool { return clitest.Exists(r.dir + "/ready") })
		counted := r.samples() + 2
		share = r.steady(settle, window) / 10 // converts milliseconds per second to percent of a core
		clitest.WaitUntil(t, "a sample of all processes", func() bool { return r.samples() >= counted })
		r.release()
	}
	r.end()
	kernel, own := r.cpu()
	if !job.steady {
		share = own / r.wall.Seconds() * 100
	}
	n := r.node()
	seen, cpu := n.Metrics["max_t_job_processes"], n.Job.CPUSeconds
	if math.Abs(cpu-kernel) > 0.01*kernel+0.02 {
		t.Errorf("CPU time = %.3f s, want the kernel's %.3f s", cpu, kernel)
	}
	if seen < job.least || n.Job.Orphans != job.orphans || *n.Job.ExitCode != 0 {
		t.Errorf("at most %v processes at a time, want at least %v; %d orphans, want %d; exit code %d, want 0; missing %v",
			seen, job.least, n.Job.Orphans, job.orphans, *n.Job.ExitCode, n.Missing)
	}
	t.Logf("perfagent's CPU time %.3f s, %.2f %% of a core; %v processes; %d of %d ticks missed; missing %v", own, share, seen,
		n.Sampling.MissedTicks, n.Sampling.MissedTicks+n.Sampling.Samples, n.Missing)
}

// steady waits until the job has started all its processes, and then for settle. It returns the tool's CPU time during
// the following window, in milliseconds per second.
func (r *peerRun) steady(settle, window time.Duration) float64 {
	r.t.Helper()
	for begin := time.Now(); !clitest.Exists(r.dir + "/ready"); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > peerLongest {
			r.t.Fatalf("job did not start all processes within %v", peerLongest)
		}
	}
	time.Sleep(settle)
	_, before := r.cpu()
	from := time.Now()
	time.Sleep(window)
	_, after := r.cpu()
	return (after - before) * 1000 / time.Since(from).Seconds()
}

// samples returns the number of samples in perfagent's journal.
func (r *peerRun) samples() (n int) {
	journals, _ := filepath.Glob(r.dir + "/perfagent-out/*/node-0.jsonl")
	for _, path := range journals {
		n += strings.Count(clitest.Read(r.t, path), `{"sample"`)
	}
	return n
}

// BenchmarkPeers300 measures the cost of the tools at 1 Hz, one after another, for a job of 300 sleeping processes.
// BenchmarkPeers5000 does the same for a job of 5,000 processes.
func BenchmarkPeers300(b *testing.B) { benchmarkPeers(b, 300) }

func BenchmarkPeers5000(b *testing.B) { benchmarkPeers(b, 5000) }

func benchmarkPeers(b *testing.B, processes int) {
	names := []string{"perfagent", "created", "", "con-duct", "resource-tracker"}
	for b.Loop() {
		var ours float64
		for i, tool := range peerTools(b)[:len(names)] {
			if names[i] == "" {
				continue // GNU time does not sample
			}
			r := peerStart(b, tool, fmt.Sprintf(peerAlive, processes))
			settle := 3 * time.Second
			if i == 0 {
				settle = peerSettle
			}
			cost := r.steady(settle, peerWindow)
			r.release()
			r.end()
			r.remove()
			b.ReportMetric(cost, names[i]+"-ms/s")
			if i == 0 {
				ours = cost
			} else {
				b.ReportMetric(ours/cost, "of-"+names[i])
			}
		}
	}
}
