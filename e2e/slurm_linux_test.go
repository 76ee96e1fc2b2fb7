//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/slurmtest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
	"github.com/perfagent/perfagent/reporter/reportfile"
)

// slurm is a cluster with one node in a folder of the test: Debian's munged, slurmctld and slurmd, with control groups
// v1.
type slurm struct {
	dir      string
	programs slurmtest.Programs
	node     string // name of the node; its control groups are /slurm_NODE
	env      []string
	t        *testing.T

	daemons []*exec.Cmd
}

// In steps and batch jobs of a real Slurm, the report's numbers for the job equal the numbers of the kernel and Slurm.
// To Slurm, the job behaves in the same way as without perfagent.
func TestSlurm_Jobs(t *testing.T) {
	t.Parallel()
	s := newSlurm(t, 120)
	for _, c := range []struct {
		name string
		test func(*testing.T, *slurm)
	}{
		{"CPU", slurmCPU}, {"memory", slurmMemory}, {"separate group", slurmCreate},
		{"out of memory", slurmOOM}, {"child out of memory", slurmOOMChild}, {"another task out of memory", slurmOOMBeside},
		{"batch script", slurmBatch}, {"signals", slurmSignals}, {"TERM", slurmTerm}, {"exit codes", slurmExits},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.test(t, s) })
	}
}

// If a job ignores SIGTERM, Slurm kills all processes after a while, including perfagent. This test has a separate
// cluster, because a node does not start jobs while it is ending another.
func TestSlurm_KillKeepsJournal(t *testing.T) {
	t.Parallel()
	slurmKilled(t, newSlurm(t, 15))
}

// newSlurm starts a cluster that ends with the test. killWait is the time from SIGTERM to SIGKILL in seconds.
func newSlurm(t *testing.T, killWait int) *slurm {
	t.Helper()
	slurmtest.NeedGroups(t)
	s := &slurm{t: t}
	var err error
	if s.dir, err = os.MkdirTemp("", "perfagent-slurm-"); err != nil { // short, because socket paths are limited
		t.Fatal(err)
	}
	s.node = "node-" + strings.TrimPrefix(filepath.Base(s.dir), "perfagent-slurm-") // names control groups
	t.Cleanup(func() { os.RemoveAll(s.dir) })
	t.Cleanup(s.stop)
	s.configure(killWait)
	munged, socket := s.programs.Munged(s.dir)
	s.start("munged", munged...)
	clitest.WaitUntil(t, "munged answers", func() bool { return clitest.Exists(socket) })
	s.start("slurmctld", "-D", "-c")
	s.start("slurmd", append([]string{"-D", "-N", s.node}, s.programs.Stepd()...)...)
	for begin := time.Now(); s.state() != "idle"; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > clitest.Longest {
			t.Fatalf("node is not idle after %v: %q", clitest.Longest, s.state())
		}
	}
	return s
}

// configure writes the configuration. It declares more CPUs than the machine has, so that all jobs can run
// concurrently.
func (s *slurm) configure(killWait int) {
	s.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range []string{"bin", "munge", "state", "spool." + s.node, "log"} {
		if err := os.Mkdir(filepath.Join(s.dir, dir), 0o711); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.Chmod(s.dir, 0o711); err != nil {
		s.t.Fatal(err)
	}
	s.programs = slurmtest.FindPrograms(s.t, s.dir+"/bin")
	conf := strings.NewReplacer("HOST", host, "DIR", s.dir, "NODE", s.node, "WAIT", strconv.Itoa(killWait),
		"PORT1", strconv.Itoa(testenv.FreePort(s.t)), "PORT2", strconv.Itoa(testenv.FreePort(s.t))).Replace(slurmConf)
	s.env = clitest.Env(s.programs.Configure(s.t, s.dir, conf)...)
}

const slurmConf = `SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=PORT1
AuthInfo=socket=DIR/munge/socket
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
MessageTimeout=90
SlurmdTimeout=300
InactiveLimit=0
KillWait=WAIT
NodeName=NODE NodeHostname=HOST NodeAddr=127.0.0.1 Port=PORT2 CPUs=64 Boards=1 SocketsPerBoard=1 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=NODE Default=YES MaxTime=INFINITE State=UP
`

// start starts a daemon in the foreground. timeout(1) ends it if nothing else does.
func (s *slurm) start(name string, args ...string) {
	s.t.Helper()
	cmd := clitest.Command(s.t, "timeout", append([]string{"-k", "5", "2400", s.programs.Path(name)}, args...)...)
	cmd.Env = s.env
	said, err := os.Create(filepath.Join(s.dir, "log", name+".out"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.daemons = append(s.daemons, cmd)
}

// state returns the state of the node in Slurm.
func (s *slurm) state() string {
	s.t.Helper()
	o := clitest.RunCommand(s.t, s.command(s.t, "sinfo", "-h", "-o", "%T"))
	return strings.TrimSpace(o.Out + o.Err)
}

// stop ends the jobs and the cluster, and removes the control groups. It does so even if the test has failed.
func (s *slurm) stop() {
	t := s.t
	s.killJobs()
	for _, cmd := range s.daemons {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, cmd := range s.daemons {
		clitest.Wait(t, cmd)
	}
	s.killJobs() // again, because a slurmstepd may just have started a job
	for _, dir := range slices.Backward(s.groups()) {
		if !slurmWithin(func() bool { return os.Remove(dir) == nil || !clitest.Exists(dir) }) {
			t.Errorf("control group %s cannot be removed", dir)
		}
	}
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(s.dir + "/log/*")
	for _, path := range logs {
		data, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", filepath.Base(path), data[max(0, len(data)-8000):])
	}
}

// slurmWithin waits until ok returns true, and reports whether it did so in time.
func slurmWithin(ok func() bool) bool {
	for begin := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > clitest.Longest {
			return false
		}
	}
	return true
}

// groups returns the control groups of the node, parents first.
func (s *slurm) groups() []string {
	var dirs []string
	tops, _ := filepath.Glob("/sys/fs/cgroup/*/slurm_" + s.node)
	for _, top := range tops {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // the group has just been removed
			}
			dirs = append(dirs, path)
			return nil
		})
	}
	return dirs
}

// killJobs kills the processes in the node's groups: the jobs and their slurmstepds, which are not children of this
// process.
func (s *slurm) killJobs() {
	gone := slurmWithin(func() bool {
		var pids []int
		for _, dir := range s.groups() {
			data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for text := range bytes.FieldsSeq(data) {
				if pid, err := strconv.Atoi(string(text)); err == nil && pid > 1 {
					pids = append(pids, pid)
				}
			}
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return len(pids) == 0
	})
	if !gone {
		s.t.Errorf("processes of Slurm's jobs still run in %q", s.groups())
	}
}

// command prepares one of Slurm's commands.
func (s *slurm) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := clitest.Command(t, s.programs.Path(name), args...)
	cmd.Env = s.env
	return cmd
}

// slurmStep describes a job with one step.
type slurmStep struct {
	memory int // MiB
	flags  []string
	agent  []string // further options of perfagent; nil means without perfagent
	job    []string
}

var slurmPlain = []string{} // perfagent without further options

// step prepares srun for a step that writes its reports to out.
func (s *slurm) step(t *testing.T, r slurmStep) (cmd *exec.Cmd, out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	args := append([]string{"--quiet", "--mem=" + strconv.Itoa(r.memory), "--job-name=" + slurmName(t)}, r.flags...)
	if r.agent != nil {
		args = append(append(args, clitest.Binary(t), "run", "--out", out), append(r.agent, "--")...)
	}
	return s.command(t, "srun", append(args, r.job...)...), out
}

// slurmName returns the name of the test in a form that is valid for a job.
func slurmName(t *testing.T) string { return strings.ReplaceAll(t.Name(), "/", ".") }

// run runs a step to its end and reads the report.
func (s *slurm) run(t *testing.T, r slurmStep, code int) (clitest.Outcome, *reporter.Report) {
	t.Helper()
	var o clitest.Outcome
	var out string
	for try := 1; ; try++ {
		var cmd *exec.Cmd
		cmd, out = s.step(t, r)
		o = clitest.RunCommand(t, cmd)
		if try == 5 || !leftJournal(t, out) { // on a busy machine, the kernel may kill perfagent, too
			break
		}
	}
	o.Want(t, code)
	report, path := reportertest.ReadSingle(t, out)
	t.Cleanup(func() {
		if t.Failed() {
			data, _ := os.ReadFile(path)
			t.Logf("stdout: %s\nstderr: %s\nreport: %s", o.Out, o.Err, data)
		}
	})
	return o, report
}

// slurmLimiting matches the group with the tighter limit. The step and the job have the same limit, and the usage of
// the job's group includes the usage of the step and more.
var slurmLimiting = regexp.MustCompile(`/job_\d+$`)

// slurmInStep checks the source of the job's numbers and the memory limit. It applies to every step.
func slurmInStep(t *testing.T, n *reporter.Node, source string, limit float64) {
	t.Helper()
	guestSource(t, n, source)
	if n.Limits == nil || float64(n.Limits.MemoryMB) != limit || !slurmLimiting.MatchString(n.Limits.MemoryGroup) {
		t.Errorf("limits %+v, want a limit of %v MiB, set by the job's group", n.Limits, limit)
	}
	for _, m := range n.Missing {
		if reportertest.WentWrong(m) {
			t.Errorf("missing because of a failure: %+v", m)
		}
	}
}

// slurmCPU checks that the total CPU time is within 1 % of the kernel's.
func slurmCPU(t *testing.T, s *slurm) {
	o, r := s.run(t, slurmStep{memory: 200, agent: []string{"--interval", "20ms"},
		job: append([]string{guest(t)}, strings.Fields("truth children 4 0.3")...)}, 0)
	n := r.Nodes["0"]
	slurmInStep(t, n, "cgroup", 200)
	before, after := guestTruth(t, o.Out)
	truth := after.CPU - before.CPU - (after.Agent - before.Agent) + before.Own
	guestCPU(t, n.Job.CPUSeconds, truth)
	if truth < 1.2 {
		t.Errorf("CPU time counted by the kernel = %v s, want at least 1.2 s from the job", truth)
	}
	t.Logf("CPU: the report %.4f s, the kernel %.4f s", n.Job.CPUSeconds, truth)
	if !strings.HasSuffix(n.Job.Cgroup, "/step_0/task_0") {
		t.Errorf("control group = %q, want one that ends with /step_0/task_0", n.Job.Cgroup)
	}
	reportertest.WantVerdict(t, r, "exited", "exited with code 0")
}

// slurmMemory checks the combined peak of the job's two processes, and the peak of the group, which includes perfagent.
func slurmMemory(t *testing.T, s *slurm) {
	o, r := s.run(t, slurmStep{memory: 300, agent: []string{"--interval", "20ms"},
		job: []string{"sh", "-c", `"$0" hog 50 0.5 "$1" 2 & "$0" truth hog 50 0.5 "$1" 2; wait`, guest(t), t.TempDir()}}, 0)
	n := r.Nodes["0"]
	slurmInStep(t, n, "cgroup", 300)
	_, after := guestTruth(t, o.Out)
	most := after.Peak / guestMiB
	if peak := n.Job.PeakMemoryMB; peak < 100 || peak > most {
		t.Errorf("peak of a job of 100 MiB = %v MiB, want 100 to %v MiB, the peak of its group", peak, most)
	}
	guestNear(t, "cgroup_peak_mb", n.Job.CgroupPeakMB, most, 0.01)
	// slurmstepd uses a part of the step's limit.
	if tight := clitest.Metric(t, n, "max_t_limit_memory_pct"); tight < 100*100.0/300 || tight > 100*(most+30)/300 {
		t.Errorf("max_t_limit_memory_pct = %v, want %v to %v of 300 MiB", tight, 100*100.0/300, 100*(most+30)/300)
	}
}

// slurmCreate checks that perfagent, as root, can make a group inside the step's group, and that Slurm can remove its
// group afterwards.
func slurmCreate(t *testing.T, s *slurm) {
	o, r := s.run(t, slurmStep{memory: 200, agent: []string{"--interval", "20ms", "--cgroup", "create"},
		job: append([]string{guest(t)}, strings.Fields("truth children 4 0.3")...)}, 0)
	n := r.Nodes["0"]
	slurmInStep(t, n, "created", 200)
	_, after := guestTruth(t, o.Out) // counters of the group made for the job
	guestCPU(t, n.Job.CPUSeconds, after.CPU)
	if n.Job.CgroupStays {
		t.Error("cgroup_stays is true, want the control group removed")
	}
	for _, controller := range []string{"memory", "cpuacct"} {
		clitest.WaitUntil(t, "Slurm removes the step's group", func() bool { return !clitest.Exists("/sys/fs/cgroup/" + controller + n.Limits.MemoryGroup) })
	}
}

// slurmOOM checks an out-of-memory kill of the job itself.
func slurmOOM(t *testing.T, s *slurm) { slurmOverLimit(t, s, "hog 400 0", 137) }

// slurmOOMChild checks an out-of-memory kill of a child, which makes the job fail.
func slurmOOMChild(t *testing.T, s *slurm) { slurmOverLimit(t, s, "parent 3 hog 400 0", 3) }

// slurmOverLimit checks a job that exceeds the step's memory limit. srun's exit code must be the same as without
// perfagent.
func slurmOverLimit(t *testing.T, s *slurm, args string, code int) {
	t.Helper()
	guestKillsAlone(t)
	job := append([]string{guest(t)}, strings.Fields(args)...)
	cmd, _ := s.step(t, slurmStep{memory: 100, job: job})
	o := clitest.RunCommand(t, cmd)
	_, r := s.run(t, slurmStep{memory: 100, agent: slurmPlain, job: job}, o.Code)
	slurmKilledByKernel(t, r, code)
	slurmInStep(t, r.Nodes["0"], "cgroup", 100)
}

// slurmKilledByKernel checks the verdict on a kill at a group's limit of 100 MiB.
func slurmKilledByKernel(t *testing.T, r *reporter.Report, code int) {
	t.Helper()
	n := r.Nodes["0"]
	guestKilled(t, n, r.Run, 100)
	reportertest.WantEvidence(t, n.Verdict, map[string]any{"exit_code": code, "process": "guest"})
	if group, _ := n.Verdict.Evidence["limit_group"].(string); !slurmLimiting.MatchString(group) {
		t.Errorf("limit_group = %q, want the job's group", group)
	}
	t.Log(n.Verdict.Text)
}

// slurmOOMBeside checks two tasks that share the limit of their step and one report. The kernel kills a process of one
// task. The kill must not be attributed to the other task, which fails for another reason.
func slurmOOMBeside(t *testing.T, s *slurm) {
	guestKillsAlone(t)
	out := filepath.Join(t.TempDir(), "out")
	cmd, _ := s.step(t, slurmStep{memory: 100, flags: []string{"-n2"}, agent: []string{"--out", out}, job: []string{"sh", "-c",
		`if [ $SLURM_PROCID = 1 ]; then exec "$0" hog 400 0; fi; read line; exit 5`, guest(t)}})
	r, w := clitest.Pipe(t)
	cmd.Stdin = r
	l := clitest.StartProcess(t, cmd)
	clitest.WaitUntil(t, "the first task's report", func() bool {
		return slices.ContainsFunc(reportertest.InDir(t, out), func(path string) bool { return filepath.Ext(path) == ".json" })
	})
	w.Close()
	l.End()
	report, path := reportertest.ReadSingle(t, out)
	ranks := report.Nodes["0"].Ranks
	if len(ranks) != 2 || ranks["0"].Verdict == nil || ranks["1"].Verdict == nil {
		t.Fatalf("%s has the ranks %v, want 0 and 1, each with a verdict", path, ranks)
	}
	killed, other := ranks["1"].Verdict, ranks["0"].Verdict
	if killed.Cause != "oom_cgroup" || other.Cause != "exited" {
		t.Errorf("verdicts: rank 1: %s, rank 0: %s; want oom_cgroup and exited", killed.Text, other.Text)
	}
	reportertest.WantEvidence(t, killed, map[string]any{"limit_mb": 100, "oom_kills": 1, "exit_code": 137})
	reportertest.WantEvidence(t, other, map[string]any{"exit_code": 5})
}

// slurmBatch checks a batch script, in which the shell and perfagent share a group. The group's limits apply to the
// job.
func slurmBatch(t *testing.T, s *slurm) {
	guestKillsAlone(t)
	out, said := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "said")
	o := clitest.RunCommand(t, s.command(t, "sbatch", "--mem=100", "--output="+said, "--job-name="+slurmName(t),
		"--wrap", fmt.Sprintf("%s run --out %s -- %s parent 3 hog 400 0; echo code $?", clitest.Binary(t), out, guest(t))))
	o.Want(t, 0)
	clitest.WaitUntil(t, "the end of the batch job", func() bool {
		data, _ := os.ReadFile(said)
		return strings.Contains(string(data), "code 3\n")
	})
	r, _ := reportertest.ReadSingle(t, out)
	n := r.Nodes["0"]
	guestSource(t, n, "tree")
	slurmKilledByKernel(t, r, 3)
}

// cancel runs scancel for a test's job.
func (s *slurm) cancel(t *testing.T, name string, flags ...string) {
	t.Helper()
	clitest.RunCommand(t, s.command(t, "scancel", append(flags, "--name="+name)...)).Want(t, 0)
}

// slurmSignals checks that the job receives each signal once, as without perfagent.
func slurmSignals(t *testing.T, s *slurm) {
	for _, agent := range [][]string{nil, slurmPlain} {
		cmd, out := s.step(t, slurmStep{memory: 200, agent: agent})
		l := clitest.StartProcess(t, clitest.AsHelper(cmd, "counter"))
		l.PID("ready")
		for _, sig := range []string{"USR1", "USR2", "HUP", "INT", "CONT", "ALRM", "QUIT"} {
			s.cancel(t, slurmName(t), "--signal="+sig)
			l.Expect("SIG" + sig)
		}
		s.cancel(t, slurmName(t))
		o, rest := l.End()
		o.Want(t, 9)
		// Slurm sends SIGCONT together with SIGTERM. Pending signals are delivered in the order of their numbers, and
		// SIGTERM ends the job.
		if slices.Sort(rest); !slices.Equal(rest, []string{"SIGCONT", "SIGTERM"}) && !slices.Equal(rest, []string{"SIGTERM"}) {
			t.Errorf("signals at the end = %q, want SIGTERM once, and SIGCONT at most once", rest)
		}
		if agent == nil {
			continue
		}
		r, _ := reportertest.ReadSingle(t, out)
		v := reportertest.WantVerdict(t, r, "exited", "exited with code 9 after SIGTERM from slurmstepd (process ")
		reportertest.WantEvidence(t, v, map[string]any{"exit_code": 9, "sent_signal": "SIGTERM", "sender": "slurmstepd"})
	}
}

// slurmTerm checks a job that SIGTERM ends. Slurm gives no reason for the signal.
func slurmTerm(t *testing.T, s *slurm) {
	var codes []int
	for _, agent := range [][]string{nil, slurmPlain} {
		cmd, out := s.step(t, slurmStep{memory: 100, agent: agent, job: []string{"sh", "-c", "echo ready; exec sleep 600"}})
		l := clitest.StartProcess(t, cmd)
		l.Expect("ready")
		s.cancel(t, slurmName(t))
		o, _ := l.End()
		codes = append(codes, o.Code)
		if agent == nil {
			continue
		}
		r, _ := reportertest.ReadSingle(t, out)
		v := reportertest.WantVerdict(t, r, "signal", "killed by SIGTERM from slurmstepd (process ")
		reportertest.WantEvidence(t, v, map[string]any{"signal": "SIGTERM", "sent_signal": "SIGTERM", "sender": "slurmstepd", "exit_code": 143})
	}
	if codes[0] != codes[1] {
		t.Errorf("exit codes of srun without and with perfagent = %v, want equal codes", codes)
	}
}

// slurmKilled checks that the journal is kept, and contains the SIGTERM.
func slurmKilled(t *testing.T, s *slurm) {
	cmd, out := s.step(t, slurmStep{memory: 100, agent: []string{"--interval", "100ms"},
		job: []string{"sh", "-c", "trap 'echo caught' TERM; echo pid $$; while :; do sleep 0.05; done"}})
	l := clitest.StartProcess(t, cmd)
	pid := l.PID("pid")
	us := clitest.ParentOf(t, pid)
	s.cancel(t, slurmName(t))
	l.Expect("caught")
	l.End() // ignore the exit code, because srun gives up if Slurm is busy
	for _, id := range []int{pid, us} {
		clitest.WaitUntil(t, "the end of the job and of perfagent", func() bool { return strings.Trim(clitest.ProcessState(id), "ZX") == "" })
	}
	paths := reportertest.InDir(t, out)
	if len(paths) != 1 || filepath.Ext(paths[0]) != ".jsonl" {
		t.Fatalf("files %q, want one journal", paths)
	}
	r, err := reportfile.Read(filepath.Join(out, paths[0]), 0)
	if err != nil {
		t.Fatal(err)
	}
	v := reportertest.WantVerdict(t, r, "unknown", "how the command ended is not known", "SIGTERM from slurmstepd (process ", "had come before")
	reportertest.WantEvidence(t, v, map[string]any{"sender": "slurmstepd", "sent_signal": "SIGTERM"})
	reportertest.WantTimeInRun(t, r, "signal_time")
	text, _ := v.Evidence["signal_time"].(string)
	at, _ := time.Parse(time.RFC3339, text)
	if since := r.Run.End.Sub(at); since < time.Second {
		t.Errorf("journal ends %v after SIGTERM, want at least 1s: SIGKILL comes after 15 s", since)
	}
	if n := r.Nodes["0"]; n.Limits == nil || n.Limits.MemoryMB != 100 {
		t.Errorf("limits %+v, want 100 MiB of memory", n.Limits)
	}
}

// slurmExits checks that srun has the same exit code as without perfagent.
func slurmExits(t *testing.T, s *slurm) {
	for _, job := range []string{"exit 7", "kill -9 $$", "kill -SEGV $$", "exit 200"} {
		var codes []int
		for _, agent := range [][]string{nil, slurmPlain} {
			cmd, _ := s.step(t, slurmStep{memory: 100, agent: agent, job: []string{"sh", "-c", "cat; echo out; echo err >&2; " + job}})
			cmd.Stdin = strings.NewReader("in\n")
			o := clitest.RunCommand(t, cmd)
			codes = append(codes, o.Code)
			// srun may lose the last output of a task that a signal killed.
			if strings.HasPrefix(job, "exit") && (o.Out != "in\nout\n" || !strings.Contains(o.Err, "err\n")) {
				t.Errorf("%s: stdout %q, want \"in\\nout\\n\"; stderr %q, want one containing \"err\\n\"", job, o.Out, o.Err)
			}
		}
		if codes[0] != codes[1] || codes[0] == 0 {
			t.Errorf("%s: exit codes of srun without and with perfagent = %v, want equal codes other than 0", job, codes)
		}
	}
}
