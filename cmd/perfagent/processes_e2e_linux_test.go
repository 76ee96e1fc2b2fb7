//go:build e2e

package main

import (
	"math"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// The CPU times in the rows of processes sum to the CPU time of the job.
func TestE2E_Processes_RowsSumToCPUTimeOfJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, job string
		orphans   int
	}{
		{"tree of processes", `
def level(n):
    burn(60)
    if n > 0: os.waitpid(child(lambda: level(n - 1)), 0)
    burn(60)
level(9)
`, 0},
		{"concurrent processes", `
for pid in [child(lambda i=i: (burn(100 * i), time.sleep(0.3))) for i in range(1, 7)]: os.waitpid(pid, 0)
`, 0},
		{"a thousand short processes", `
for _ in range(1000): os.waitpid(child(lambda: None), 0)
burn(100)
`, 0},
		{"a daemon that ends", `
def daemon():
    os.setsid()
    say(child(lambda: burn(500)))
os.waitpid(child(daemon), 0)
until_reaped()
`, 1},
		{"300 orphans", `
for _ in range(300): os.waitpid(child(lambda: say(child(lambda: burn(2)))), 0)
until_reaped()
`, 300},
		{"another program", `
burn(400)
os.execv(sys.executable, [sys.executable, "-c", "import time\nwhile time.process_time() < 0.9: pass", "second"])
`, 0},
	} {
		for _, mode := range []string{"off", "create"} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				args := append([]string{"run", "--cgroup", mode, "--interval", "100ms", "--"}, clitest.Python(t, burning, c.job)...)
				o := mustRun(t, 0, args...)
				n := o.Report(t).Nodes["0"]
				if n.Job.Orphans != c.orphans {
					t.Errorf("%d orphans, want %d", n.Job.Orphans, c.orphans)
				}
				wantSum(t, n)
				if main := processRow(t, n, n.Job.PID); !main.End.Equal(n.Job.End.Time) && n.Job.End.Sub(main.End.Time).Abs() > 50e6 {
					t.Errorf("the main process ended at %v, want %v, the end of the job", main.End, n.Job.End)
				}
				if main := processRow(t, n, n.Job.PID); c.name == "another program" && (len(n.Processes) != 1 || !strings.HasSuffix(main.Command, " second")) {
					t.Errorf("processes %+v, want one with the command of the last exec, \"… second\"", n.Processes)
				}
			})
		}
	}
}

// A row has the kernel's high-water mark of memory, and the maximum number of threads.
func TestE2E_Processes_RowHasPeakMemoryAndThreads(t *testing.T) {
	t.Parallel()
	const job = `
import threading
threads = [threading.Thread(target=time.sleep, args=(0.5,)) for _ in range(5)]
for th in threads: th.start()
for th in threads: th.join()
memory = bytearray(200 << 20)
for i in range(0, len(memory), 4096): memory[i] = 1
del memory
time.sleep(4)
`
	args := append([]string{"run", "--cgroup", "off", "--interval", "100ms", "--"}, clitest.Python(t, burning, job)...)
	o := mustRun(t, 0, args...)
	n := o.Report(t).Nodes["0"]
	p := processRow(t, n, n.Job.PID)
	if math.Abs(p.PeakMemoryMB-n.Job.MaxRSSMB) > 1 || p.PeakMemoryMB < 200 || p.Threads != 6 {
		t.Errorf("process %+v, want 6 threads and a peak of wait4's %v MiB, at least 200", p, n.Job.MaxRSSMB)
	}
}
