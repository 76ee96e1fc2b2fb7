package main

import (
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
)

// Of a moment at which the job has ended it is not said that it had no processes.
func TestAccountOfOneInterval(t *testing.T) {
	for range 4 {
		n := inside(t, "run", "--interval", "100ms", "--cgroup", "off", "--", "sleep", "0.1").Report(t).Nodes["0"]
		for _, metric := range []string{"max_t_job_processes", "max_t_job_threads"} {
			if v, there := n.Metrics[metric]; there && v < 1 {
				t.Errorf("%s is %v", metric, v)
			}
		}
	}
}

// What the ticks of many processes cut off is not told as used in the last window.
func TestAccountOfManyAtTheEnd(t *testing.T) {
	t.Parallel()
	const many = `
import os, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
for i in range(90):
    if os.fork() == 0:
        burn(0.0085)
        time.sleep(60)
        os._exit(0)
time.sleep(4)
os.killpg(0, 9)
`
	n := clitest.Run(t, "run", "--interval", "500ms", "--cgroup", "off", "--", "setsid", "-w", "python3", "-c", many).Report(t).Nodes["0"]
	cores, times := n.Envelope["job_cpu_cores"].Mean, n.Envelope["timestamp"].Mean
	last := len(cores) - 1
	if last < 5 {
		t.Fatalf("%d windows", len(cores))
	}
	// 0.76 s are cut off. To end so many processes costs, too. NaN: the window was too short.
	if spent := cores[last] * (times[last] - times[last-1]); spent > 0.4 {
		t.Errorf("a job that sleeps at its end used %.2f s there; CPUs %v", spent, cores)
	}
}
