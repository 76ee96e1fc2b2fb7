//go:build e2e

package peers

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/agent"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// Each tool runs in a separate control group, and the job enters a group below it. So the kernel counts the usage of
// the job and of the tool in the same run, independent of other load on the machine.

// peerEnter is a script that makes a job enter the group "job" below its group, in the given hierarchies, before the
// job begins. Descriptor 9 is a FIFO: a waiting job ends when a byte arrives.
const peerEnter = `while IFS=: read -r _ c p; do
  case ,$c, in
  *,cpuacct,*) d=/sys/fs/cgroup/cpuacct$p/job;;
  *,memory,*) d=/sys/fs/cgroup/memory$p/job;;
  *) continue;;
  esac
  [ -d $d ] || mkdir $d
  echo $$ > $d/cgroup.procs
done < /proc/self/cgroup
exec 9<>"$PEER_DIR/fifo"
exec "$PEER_PYTHON" "$PEER_DIR/job.py"
`

// peerLongest is the time limit of a run with thousands of processes.
const peerLongest = 2 * time.Minute

// peerTool is a tool that measures jobs.
type peerTool struct {
	name string
	args func(r *peerRun) []string // returns the command line that runs r.job
	says func(r *peerRun) (cpu, memory float64)
}

// peerTools returns the compared tools, perfagent first. If a tool does not report totals, they are computed from its
// series.
func peerTools(t testing.TB) []peerTool {
	t.Helper()
	venv := peerVenv(t)
	ours := func(mode string) peerTool {
		return peerTool{"perfagent `--cgroup " + mode + "`", func(r *peerRun) []string {
			return append([]string{clitest.Binary(t), "run", "--cgroup", mode, "--no-page", "--"}, r.job...)
		}, (*peerRun).ourSays}
	}
	script := testenv.Repository(t, "scripts/peer_resource_tracker.py")
	return []peerTool{
		ours(agent.Off), ours(agent.Create),
		{"GNU time", func(r *peerRun) []string {
			return append([]string{"/usr/bin/time", "-f", "%U %S %M", "-o", "time.txt"}, r.job...)
		}, (*peerRun).timeSays},
		{"con-duct 0.23.0", func(r *peerRun) []string {
			return append([]string{venv + "/bin/con-duct", "run", "-l", "NONE", "-c", "none", "--fail-time", "0", "-p", "duct_", "--"}, r.job...)
		}, (*peerRun).ductSays},
		{"resource-tracker 0.5.0", func(r *peerRun) []string {
			return append([]string{venv + "/bin/python", script, "tracker.json"}, r.job...)
		}, (*peerRun).trackerSays},
		{"psrecord 1.4", func(r *peerRun) []string {
			return []string{venv + "/bin/psrecord", "exec " + strings.Join(r.job, " "), "--include-children", "--interval", "1",
				"--log", "psrecord.csv", "--log-format", "csv"}
		}, (*peerRun).psrecordSays},
	}
}

// peerVenv returns the directory with the other tools.
func peerVenv(t testing.TB) string {
	t.Helper()
	venv := testenv.Repository(t, ".tools/peers")
	if !clitest.Exists(venv + "/installed") {
		t.Skip("no con-duct, resource-tracker and psrecord to compare with: run make bench or make peers, which install them")
	}
	return venv
}

// peerRun is a run of a tool around a job.
type peerRun struct {
	t     testing.TB
	dir   string
	job   []string
	cmd   *exec.Cmd
	name  string // name of the group around the tool
	made  bool   // whether perfagent makes a group for the job
	begin time.Time
	wall  time.Duration
}

// peerStart starts a job, a Python program, under a tool.
func peerStart(t testing.TB, tool peerTool, job string) *peerRun {
	t.Helper()
	r := &peerRun{t: t, dir: t.TempDir()}
	r.name = fmt.Sprintf("perfagent-peer-%d-%s", os.Getpid(), strings.ReplaceAll(filepath.Base(filepath.Dir(r.dir)), "/", "-")+filepath.Base(r.dir))
	for name, text := range map[string]string{"job.sh": peerEnter, "job.py": job} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(r.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, controller := range []string{"cpuacct", "memory"} {
		if err := os.MkdirAll(filepath.Join("/sys/fs/cgroup", controller, r.name, "job"), 0o755); err != nil {
			t.Skipf("control groups v1 cannot be created (run as root on a system that has them): %v", err)
		}
	}
	t.Cleanup(r.remove)
	r.job = []string{"/bin/sh", filepath.Join(r.dir, "job.sh")}
	args := tool.args(r)
	r.made = slices.Contains(args, agent.Create)
	enter := `for c in cpuacct memory; do echo $$ > /sys/fs/cgroup/$c/` + r.name + `/cgroup.procs; done; exec "$@"`
	r.cmd = clitest.Command(t, "/bin/sh", append([]string{"-c", enter, "sh"}, args...)...)
	r.cmd.Dir = r.dir
	r.cmd.Env = append(r.cmd.Env, "PEER_DIR="+r.dir, "PEER_PYTHON="+testenv.Python(t))
	out, err := os.Create(filepath.Join(r.dir, "out.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.cmd.Stdout, r.cmd.Stderr = out, out
	r.begin = time.Now()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// end waits for the tool, which must exit with code 0.
func (r *peerRun) end() {
	r.t.Helper()
	timer := time.AfterFunc(peerLongest, func() { _ = unix.Kill(-r.cmd.Process.Pid, unix.SIGKILL) })
	defer timer.Stop()
	err := r.cmd.Wait()
	r.wall = time.Since(r.begin)
	if err != nil {
		out, _ := os.ReadFile(filepath.Join(r.dir, "out.txt"))
		r.t.Fatalf("%v: %v\n%s", r.cmd.Args, err, out)
	}
}

// release ends a job, or the daemon of a job, that waits for a byte.
func (r *peerRun) release() {
	fd, err := unix.Open(filepath.Join(r.dir, "fifo"), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return // the FIFO has no reader
	}
	defer unix.Close(fd)
	_, _ = unix.Write(fd, []byte("x"))
}

// remove removes the groups once they are empty.
func (r *peerRun) remove() {
	r.release()
	deadline := time.Now().Add(clitest.Longest)
	patterns := []string{r.name + "/*/job", r.name + "/job", r.name + "/*", r.name}
	if r.made && r.cmd.ProcessState != nil && r.cmd.ProcessState.Success() { // elsewhere the group of the job is a sibling
		if name := filepath.Base(r.node().Job.Cgroup); strings.HasPrefix(name, "perfagent-") {
			patterns = append(patterns, name)
		}
	}
	for {
		var left []string
		for _, pattern := range patterns {
			dirs, _ := filepath.Glob("/sys/fs/cgroup/*/" + pattern)
			for _, dir := range dirs {
				if info, err := os.Stat(dir); err == nil && info.IsDir() && unix.Rmdir(dir) != nil {
					left = append(left, dir)
				}
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Errorf("control groups left because they are not empty: %q", left)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// counter reads a number from the group of the job, or from the group around the job and the tool.
func (r *peerRun) counter(controller, file string, ofJob bool) float64 {
	r.t.Helper()
	dirs := []string{filepath.Join("/sys/fs/cgroup", controller, r.name)}
	if ofJob { // if perfagent made a group for the job, it is one more level down
		dirs, _ = filepath.Glob(filepath.Join(dirs[0], "*", "job"))
		dirs = append(dirs, filepath.Join("/sys/fs/cgroup", controller, r.name, "job"))
	}
	data, err := os.ReadFile(filepath.Join(dirs[0], file))
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(data)), 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// cpu returns the CPU time of the job and of the tool in seconds, as counted by the kernel.
func (r *peerRun) cpu() (job, tool float64) {
	r.t.Helper()
	all := r.counter("cpuacct", "cpuacct.usage", false) / 1e9
	if r.goneWithJob() {
		tool = r.node().Agent.CPUSeconds
		return all - tool, tool
	}
	job = r.counter("cpuacct", "cpuacct.usage", true) / 1e9
	return job, all - job
}

// peak returns the peak memory of the job in MiB, as recorded by the kernel.
func (r *peerRun) peak() float64 {
	r.t.Helper()
	if r.goneWithJob() {
		return r.node().Job.CgroupPeakMB
	}
	return r.counter("memory", "memory.max_usage_in_bytes", true) / (1 << 20)
}

// goneWithJob reports whether the job's group was in a group that perfagent made, and removed when it was empty. In
// this case, the reference for CPU time is the group around both, minus perfagent's CPU time. The reference for memory
// is the peak that perfagent recorded.
func (r *peerRun) goneWithJob() bool {
	if !r.made || r.cmd.ProcessState == nil {
		return false
	}
	dirs, _ := filepath.Glob("/sys/fs/cgroup/cpuacct/" + r.name + "/*/job")
	return len(dirs) == 0
}

// node returns the node in perfagent's report.
func (r *peerRun) node() *reporter.Node {
	r.t.Helper()
	report, _ := reportertest.ReadSingle(r.t, filepath.Join(r.dir, "perfagent-out"))
	return report.Nodes["0"]
}

func (r *peerRun) ourSays() (cpu, memory float64) {
	n := r.node()
	return n.Job.CPUSeconds, n.Job.PeakMemoryMB
}

func (r *peerRun) timeSays() (cpu, memory float64) {
	var user, system, kb float64
	if _, err := fmt.Sscan(clitest.Read(r.t, filepath.Join(r.dir, "time.txt")), &user, &system, &kb); err != nil {
		r.t.Fatal(err)
	}
	return user + system, kb / 1024
}

func (r *peerRun) ductSays() (cpu, memory float64) {
	var info struct {
		Summary struct {
			Wall    float64  `json:"wall_clock_time"`
			Average *float64 `json:"average_pcpu"`
			Peak    *float64 `json:"peak_rss"`
		} `json:"execution_summary"`
	}
	r.decode("duct_info.json", &info)
	s := info.Summary
	return peerTimes(s.Average, s.Wall/100), peerTimes(s.Peak, 1.0/(1<<20))
}

func (r *peerRun) trackerSays() (cpu, memory float64) {
	var says struct {
		CPU    *float64 `json:"cpu_seconds"`
		Memory *float64 `json:"memory_mib"`
	}
	r.decode("tracker.json", &says)
	return peerTimes(says.CPU, 1), peerTimes(says.Memory, 1)
}

// psrecordSays returns the CPU time and the peak memory that psrecord reports. The CPU time is the sum of percent ×
// seconds since the previous line.
func (r *peerRun) psrecordSays() (cpu, memory float64) {
	last := 0.0
	for i, line := range strings.Split(strings.TrimSpace(clitest.Read(r.t, filepath.Join(r.dir, "psrecord.csv"))), "\n") {
		if i == 0 {
			continue // skip the heading
		}
		var v [5]float64 // elapsed_time, nproc, cpu, mem_real, mem_virtual
		for i, field := range strings.Split(line, ",") {
			v[i], _ = strconv.ParseFloat(field, 64)
		}
		cpu += v[2] / 100 * (v[0] - last)
		memory, last = max(memory, v[3]), v[0]
	}
	return cpu, memory
}

// decode parses a JSON file that a tool wrote.
func (r *peerRun) decode(name string, into any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(clitest.Read(r.t, filepath.Join(r.dir, name))), into); err != nil {
		r.t.Fatal(err)
	}
}

// peerTimes returns *v times factor, or NaN if v is nil.
func peerTimes(v *float64, factor float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v * factor
}
