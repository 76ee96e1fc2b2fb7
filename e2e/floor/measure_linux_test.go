//go:build e2e

package floor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/procfile"
)

// A cost holds the medians and minima of the times that runs of a command took, in milliseconds.
type cost struct{ wall, cpu, leastWall, leastCPU float64 }

// inTurns runs commands in turn, so that noise on the machine affects all of them alike. The first runs only warm up
// the caches.
func inTurns(t *testing.T, rounds int, commands ...[]string) []cost {
	t.Helper()
	const warm = 2
	walls, cpus := make([][]float64, len(commands)), make([][]float64, len(commands))
	dir := t.TempDir()
	for round := range warm + rounds {
		for i, args := range commands {
			wall, cpu := once(t, dir, args)
			if round >= warm {
				walls[i], cpus[i] = append(walls[i], wall), append(cpus[i], cpu)
			}
		}
		reports, _ := filepath.Glob(dir + "/*") // remove the reports, because a full directory is slower
		for _, path := range reports {
			_ = os.RemoveAll(path)
		}
	}

	costs := make([]cost, len(commands))
	for i := range costs {
		costs[i] = cost{clitest.Median(walls[i]), clitest.Median(cpus[i]), slices.Min(walls[i]), slices.Min(cpus[i])}
	}
	return costs
}

// once runs a command to its end. It returns the wall time, and the CPU time of the command and its reaped children.
func once(t *testing.T, dir string, args []string) (wall, cpu float64) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	wall = time.Since(begin).Seconds()
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return wall * 1e3, used.Seconds() * 1e3
}

// steady runs commands concurrently, and returns the CPU time of each in the steady state, in milliseconds per second.
// It is the CPU time of the command according to the scheduler, plus the CPU time of its reaped children.
func steady(t *testing.T, window time.Duration, commands ...[]string) []float64 {
	t.Helper()
	if len(commands) == 0 {
		return nil
	}
	var running []*exec.Cmd
	for i, args := range commands {
		cmd := clitest.Command(t, args[0], args[1:]...)
		cmd.Dir = t.TempDir()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
		time.Sleep(time.Duration(i+1) * 37 * time.Millisecond) // prevent simultaneous wake-ups
	}
	defer func() {
		for _, cmd := range running {
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
			_ = cmd.Wait()
		}
	}()

	time.Sleep(3 * time.Second) // skip the start
	before, from := make([]time.Duration, len(running)), make([]time.Time, len(running))
	for i, cmd := range running {
		before[i], from[i] = cpuTime(t, cmd.Process.Pid), time.Now()
	}
	time.Sleep(window)
	costs := make([]float64, len(running))
	for i, cmd := range running {
		costs[i] = (cpuTime(t, cmd.Process.Pid) - before[i]).Seconds() * 1e3 / time.Since(from[i]).Seconds()
	}
	return costs
}

// cpuTime returns the CPU time of all threads of a process, according to the scheduler, plus the CPU time of its reaped
// children.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	sum, ok := clitest.ThreadTime(t, pid)
	if !ok {
		t.Fatalf("process %d has no schedstat: it has ended, or the kernel lacks CONFIG_SCHED_INFO", pid)
	}

	var f [procfile.StatStart + 1][]byte
	procfile.SplitStat([]byte(clitest.Read(t, "/proc/"+strconv.Itoa(pid)+"/stat")), f[:])
	for _, field := range []int{procfile.StatCUTime, procfile.StatCSTime} {
		ticks, _ := procfile.ParseCount(f[field])
		sum += time.Duration(ticks) * time.Second / procfile.UserHZ
	}
	return sum
}

// peak returns the peak resident memory of a command in MiB. It uses GNU time, because the peak of a direct child would
// include the memory of the test.
func peak(t *testing.T, args ...string) float64 {
	t.Helper()
	dir := t.TempDir()
	cmd := clitest.Command(t, gnuTime, append([]string{"-f", "%M", "-o", dir + "/time.txt"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	kib, err := strconv.ParseFloat(strings.TrimSpace(clitest.Read(t, dir+"/time.txt")), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
