//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/collector/host"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/reporter"
)

// podmanStore is a store of podman with one image, which contains only perfagent, the guest and busybox. It is separate
// from the machine's store.
type podmanStore struct {
	t    *testing.T
	dir  string
	path string // path of podman
	env  []string
	// parent is the control group of all containers.
	parent string
}

const podmanImage = "localhost/perfagent-test"

// podmanRun describes the run of a container.
type podmanRun struct {
	flags string   // flags of podman run
	args  []string // the command
	code  int      // wanted exit code
}

// podmanResult is the result of a podmanRun.
type podmanResult struct {
	out  string
	node *reporter.Node
	run  reporter.Run
}

// In real containers (podman, runc), with perfagent as process 1, the report's numbers for the job equal the kernel's
// numbers for the container.
func TestPodman_Containers(t *testing.T) {
	t.Parallel()
	store := newPodmanStore(t)
	for _, space := range []string{"host", "private"} {
		flags := "--cgroupns=" + space + " "
		t.Run(space+": CPU", func(t *testing.T) { t.Parallel(); podmanCPU(t, store, flags) })
		t.Run(space+": killed", func(t *testing.T) { t.Parallel(); podmanKilled(t, store, flags) })
		t.Run(space+": child killed", func(t *testing.T) { t.Parallel(); podmanChild(t, store, flags) })
		t.Run(space+": shell", func(t *testing.T) { t.Parallel(); podmanShell(t, store, flags) })
	}
	t.Run("cpuset", func(t *testing.T) { t.Parallel(); podmanCPUSet(t, store) })
	t.Run("read-only cgroupfs", func(t *testing.T) { t.Parallel(); podmanRefused(t, store) })
	t.Run("writable cgroupfs", func(t *testing.T) { t.Parallel(); podmanPermitted(t, store) })
	t.Run("no cgroupfs", func(t *testing.T) { t.Parallel(); podmanHidden(t, store) })
	t.Run("changed limit", func(t *testing.T) { t.Parallel(); podmanChange(t, store) })
}

// newPodmanStore creates the store and the image.
func newPodmanStore(t *testing.T) *podmanStore {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("containers with limits need root: run the tests as root")
	}
	s := &podmanStore{t: t, path: testenv.NeedsTool(t, "podman", "apt-get install podman runc (make e2e does it as root)"),
		parent: fmt.Sprintf("/perfagent-test-%d", os.Getpid())}
	testenv.NeedsTool(t, "runc", "apt-get install runc (make e2e does it as root)")
	var err error
	if s.dir, err = os.MkdirTemp("", "perfagent-podman-"); err != nil { // short, because overlay paths are limited
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	containers := clitest.Write(t, filepath.Join(s.dir, "containers.conf"), fmt.Sprintf(`[containers]
default_ulimits = ["nofile=20000:20000", "nproc=10000:10000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = %q
`, s.dir+"/tmp"), 0o600)
	storage := clitest.Write(t, filepath.Join(s.dir, "storage.conf"), fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n",
		s.dir+"/graph", s.dir+"/run"), 0o600)
	s.env = clitest.Env("CONTAINERS_CONF="+containers, "CONTAINERS_STORAGE_CONF="+storage, "TMPDIR="+s.dir)
	image := clitest.Write(t, filepath.Join(s.dir, "image.tar"), podmanFiles(t), 0o600)
	if o := s.podman(t, "import", "-q", image, podmanImage); o.Code != 0 {
		lackingEngine(t, o.Err)
	}
	if o := s.podman(t, s.command(podmanRun{args: []string{"/bin/busybox", "true"}}, s.dir)...); o.Code != 0 {
		lackingEngine(t, o.Err)
	}
	return s
}

// lackingEngine skips or fails a test, because the machine cannot run containers.
func lackingEngine(t *testing.T, why string) {
	t.Helper()
	testenv.SkipOrFail(t, "no container can be run here, as root on a machine with control groups: "+strings.TrimSpace(why))
}

// podmanFiles returns the files of the image, as a tar archive.
func podmanFiles(t *testing.T) string {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for name, path := range map[string]string{"perfagent": clitest.Binary(t), "guest": guest(t), "bin/busybox": busybox(t)} {
		data, err := os.ReadFile(path)
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))})
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "bin/sh", Linkname: "busybox", Typeflag: tar.TypeSymlink}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// podman runs podman to its end.
func (s *podmanStore) podman(t *testing.T, args ...string) clitest.Outcome {
	t.Helper()
	cmd := clitest.Command(t, s.path, args...)
	cmd.Env = s.env
	return clitest.RunCommand(t, cmd)
}

// remove ends remaining containers, and removes the store and the control groups.
func (s *podmanStore) remove() {
	s.podman(s.t, "rm", "-fa", "-t", "0")
	_ = unix.Unmount(s.dir+"/graph/overlay", unix.MNT_DETACH)
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Error(err)
	}
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		tops, _ := filepath.Glob(pattern + s.parent)
		for _, top := range tops {
			var dirs []string
			_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for i := range dirs {
				dir := dirs[len(dirs)-1-i]
				clitest.WaitUntil(s.t, "removal of "+dir, func() bool { return os.Remove(dir) == nil || !clitest.Exists(dir) })
			}
		}
	}
}

// command returns the arguments of podman for a container that writes its reports to out.
func (s *podmanStore) command(r podmanRun, out string) []string {
	args := []string{"run", "--rm", "--network=none", "--cgroup-parent=" + s.parent, "-v", out + ":/out", "--env=PERFAGENT_OUT=/out"}
	return append(append(append(args, strings.Fields(r.flags)...), podmanImage), r.args...)
}

// run runs a container to its end, and reads the report.
func (s *podmanStore) run(t *testing.T, r podmanRun) podmanResult {
	t.Helper()
	var out string
	var o clitest.Outcome
	for try := 1; ; try++ {
		out = t.TempDir()
		o = s.podman(t, s.command(r, out)...)
		// On a busy machine, the kernel may kill another process before the first has freed its memory. That process is
		// perfagent, which then leaves a journal.
		if o.Code != 137 || try == 5 || !leftJournal(t, out) {
			break
		}
		t.Logf("try %d: perfagent itself was killed", try)
	}
	o.Want(t, r.code)
	report, path := reportertest.ReadSingle(t, out)
	t.Cleanup(func() {
		if t.Failed() {
			data, _ := os.ReadFile(path)
			t.Logf("stdout: %s\nstderr: %s\nreport: %s", o.Out, o.Err, data)
		}
	})
	return podmanResult{out: o.Out, node: report.Nodes["0"], run: report.Run}
}

// leftJournal reports whether a perfagent has ended without a report.
func leftJournal(t *testing.T, out string) bool {
	return slices.ContainsFunc(reportertest.InDir(t, out), func(p string) bool { return filepath.Ext(p) == ".jsonl" })
}

// podmanCPU checks that the total CPU time is within 1 % of the kernel's, and that the share of throttled periods
// equals the kernel's.
func podmanCPU(t *testing.T, s *podmanStore, flags string) {
	r := s.run(t, podmanRun{flags: flags + "--cpus=0.3 --memory=200m --memory-swap=200m",
		args: strings.Fields("/perfagent run --interval 20ms -- /guest truth children 4 0.3")})
	guestSource(t, r.node, "cgroup")
	guestLimits(t, r.node, 0.3, 200)
	before, after := guestTruth(t, r.out)
	agent := after.Agent - before.Agent
	guestCPU(t, r.node.Job.CPUSeconds, after.CPU-before.CPU-agent+before.Own)
	t.Logf("CPU: the report %.4f s, the kernel %.4f s, perfagent's own %.4f s", r.node.Job.CPUSeconds, after.CPU-before.CPU-agent+before.Own, agent)
	around := after
	around.Periods, around.Throttled, around.ThrottledFor = after.Periods+1000, after.Throttled+1000, after.ThrottledFor+100 // until the closing reading
	clitest.WantThrottled(t, r.node, before, after, around)
	guestNear(t, "limit_cpu_utilization_pct", clitest.Metric(t, r.node, "limit_cpu_utilization_pct"), 100*r.node.Job.CPUSeconds/(r.run.WallSeconds*0.3), 0.001)
}

func podmanKilled(t *testing.T, s *podmanStore, flags string) {
	guestKillsAlone(t)
	r := s.run(t, podmanRun{code: 137, flags: flags + "--memory=64m --memory-swap=64m", args: strings.Fields("/perfagent run -- /guest hog 200 0")})
	guestSource(t, r.node, "cgroup")
	if m := r.node.Limits.MemoryMB; m != 64 {
		t.Errorf("memory limit = %v MiB, want 64", m)
	}
	guestKilled(t, r.node, r.run, 64)
	if got := r.node.Verdict.Evidence["process"]; got != "guest" {
		t.Errorf("killed process = %v, want guest", got)
	}
}

func podmanChild(t *testing.T, s *podmanStore, flags string) {
	guestKillsAlone(t)
	r := s.run(t, podmanRun{code: 3, flags: flags + "--memory=64m --memory-swap=64m", args: strings.Fields("/perfagent run -- /guest parent 3 hog 200 0")})
	guestSource(t, r.node, "cgroup")
	guestKilled(t, r.node, r.run, 64)
}

// podmanShell checks that a shell in the container does not count as a part of the job, but that the container's limits
// apply to the job.
func podmanShell(t *testing.T, s *podmanStore, flags string) {
	guestKillsAlone(t)
	r := s.run(t, podmanRun{code: 137, flags: flags + "--cpus=1.5 --memory=64m --memory-swap=64m",
		args: []string{"/bin/sh", "-c", "/perfagent run -- /guest hog 200 0; exit $?"}})
	guestSource(t, r.node, "tree")
	guestLimits(t, r.node, min(1.5, float64(runtime.NumCPU())), 64)
	guestKilled(t, r.node, r.run, 64)
}

func podmanCPUSet(t *testing.T, s *podmanStore) {
	r := s.run(t, podmanRun{flags: "--cpuset-cpus=0", args: strings.Fields("/perfagent run -- /guest burn 0.1 2")})
	guestSource(t, r.node, "cgroup")
	guestLimits(t, r.node, 1, 0)
	if l := r.node.Limits; l.CPUSetCPUs != 1 || l.AffinityCPUs != 1 {
		t.Errorf("limits %+v, want 1 CPU, both by cpuset and by affinity", l)
	}
}

// podmanRefused checks a container in which cgroupfs is read-only.
func podmanRefused(t *testing.T, s *podmanStore) {
	r := s.run(t, podmanRun{code: 5, args: []string{"/perfagent", "run", "--cgroup", "create", "--", "/bin/sh", "-c", "exit 5"}})
	guestSource(t, r.node, "cgroup")
	guestMissing(t, r.node, host.SourceCgroup, "--cgroup create", "read-only file system")
}

// podmanPermitted checks a privileged container, in which cgroupfs is writable.
func podmanPermitted(t *testing.T, s *podmanStore) {
	r := s.run(t, podmanRun{flags: "--privileged --cgroupns=private --memory=200m --memory-swap=200m",
		args: strings.Fields("/perfagent run --cgroup create -- /guest truth children 3 0.4")})
	guestSource(t, r.node, "created")
	if m := r.node.Limits.MemoryMB; m != 200 {
		t.Errorf("memory limit = %v MiB, want 200", m)
	}
	_, after := guestTruth(t, r.out) // counters of the group made for the job, shortly before its end
	guestCPU(t, r.node.Job.CPUSeconds, after.CPU)
	if r.node.Job.CgroupStays {
		t.Error("cgroup_stays is true, want the control group removed")
	}
}

// podmanHidden checks a container in which the control groups are not visible.
func podmanHidden(t *testing.T, s *podmanStore) {
	r := s.run(t, podmanRun{flags: "--privileged --memory=200m --memory-swap=200m",
		args: []string{"/bin/sh", "-c", "busybox umount -l /sys/fs/cgroup && exec /perfagent run -- /guest children 2 0.1"}})
	guestSource(t, r.node, "tree")
	guestMissing(t, r.node, host.SourceCgroup, "no control groups")
	if used := clitest.Metric(t, r.node, "job_cpu_seconds"); used < 0.2 {
		t.Errorf("job_cpu_seconds = %v, want at least 0.2", used)
	}
}

// podmanChange checks that the report has the new value of a limit that is changed while the job runs.
func podmanChange(t *testing.T, s *podmanStore) {
	out := t.TempDir()
	cmd := clitest.Command(t, s.path, s.command(podmanRun{flags: "--name=change --memory=200m --memory-swap=200m",
		args: []string{"/perfagent", "run", "--", "/bin/sh", "-c", "echo ready; while [ ! -e /out/go ]; do busybox sleep 0.1; done"}}, out)...)
	cmd.Env = s.env
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	start := time.Now()
	if o := s.podman(t, "update", "--memory=100m", "--memory-swap=100m", "change"); o.Code != 0 {
		podmanLimit(t, s)
	}
	t.Logf("the limit was changed after %v", time.Since(start))
	clitest.Write(t, filepath.Join(out, "go"), "", 0o644)
	o, _ := l.End()
	o.Want(t, 0)
	report, _ := reportertest.ReadSingle(t, out)
	if m := report.Nodes["0"].Limits.MemoryMB; m != 100 {
		t.Errorf("memory limit = %v MiB, want the changed limit 100", m)
	}
}

// podmanLimit sets the limit of the container "change" directly, because older versions of podman lack "update".
func podmanLimit(t *testing.T, s *podmanStore) {
	t.Helper()
	o := s.podman(t, "inspect", "--format={{.Id}}", "change")
	o.Want(t, 0)
	name := s.parent + "/libpod-" + strings.TrimSpace(o.Out)
	for _, path := range []string{"/sys/fs/cgroup/memory" + name + "/memory.limit_in_bytes", "/sys/fs/cgroup" + name + "/memory.max"} {
		if clitest.Exists(path) {
			clitest.Write(t, path, "104857600", 0)
			return
		}
	}
	t.Fatalf("control group %s does not exist", name)
}
