package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/reporter"
)

// Where OUT cannot be written, one line says so and where the report is instead.
func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		out  func(t *testing.T, dir string) string
	}{
		{"a file in its place", func(t *testing.T, dir string) string { return write(t, filepath.Join(dir, "file"), "mine", 0o644) }},
		{"a file above it", func(t *testing.T, dir string) string {
			return filepath.Join(write(t, filepath.Join(dir, "file"), "mine", 0o644), "deep/er")
		}},
		{"not even root may", func(*testing.T, string) string { return "/proc/nowhere" }},
		{"a name too long", func(*testing.T, string) string { return strings.Repeat("x", 300) }},
		{"a read-only file system", readOnly},
		{"a loop of links", func(t *testing.T, dir string) string {
			if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
				t.Fatal(err)
			}
			return "loop"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			cmd := perfagent(t, "run", "--out", "", "--", "sh", "-c", "echo job; exit 7")
			cmd.Args[3] = c.out(t, cmd.Dir)
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			o := perform(t, cmd)
			o.want(t, 7)
			if o.out != "job\n" {
				t.Errorf("stdout %q", o.out)
			}
			r, path := onlyReport(t, tmp)
			o.wantLine(t, path)
			if !slices.ContainsFunc(r.Nodes["0"].Missing, func(m reporter.Missing) bool { return m.What == "report" }) {
				t.Errorf("the report does not say why it is not in OUT: %v", r.Nodes["0"].Missing)
			}
			if text, err := os.ReadFile(filepath.Join(cmd.Dir, "file")); err == nil && string(text) != "mine" {
				t.Errorf("the file in the way holds %q", text)
			}
		})
		t.Run(c.name+"/nor the temporary directory", func(t *testing.T) {
			t.Parallel()
			cmd := perfagent(t, "run", "--summary", "never", "--out", "", "--", "sh", "-c", "echo job; exit 7")
			cmd.Args[5] = c.out(t, cmd.Dir)
			cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
			o := perform(t, cmd)
			o.want(t, 7)
			o.wantLine(t, "no report file", "/proc/nowhere")
			if o.out != "job\n" {
				t.Errorf("stdout %q", o.out)
			}
		})
	}
}

// The summary is shown where no report can be written, too.
func TestSummaryWithoutAReport(t *testing.T) {
	t.Parallel()
	cmd := perfagent(t, "run", "--summary", "always", "--out", "/proc/nowhere", "--", "sh", "-c", "exit 7")
	cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
	o := perform(t, cmd)
	o.want(t, 7)
	if !strings.Contains(o.err, "exit 7") || !strings.Contains(o.err, "no report file") {
		t.Errorf("stderr %q", o.err)
	}
}

// A sidecar that cannot keep a report anywhere fails at once.
func TestSidecarWithoutAPlace(t *testing.T) {
	t.Parallel()
	cmd := perfagent(t, "sidecar", "--out", "/proc/nowhere")
	cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
	o := perform(t, cmd)
	o.want(t, 1)
	wantLines(t, o.err, 1, 2)
}

func TestMissingDirectoriesAreMade(t *testing.T) {
	t.Parallel()
	o := run(t, "run", "--out", "a/b/c", "--run-id", "r", "--", "true")
	o.want(t, 0)
	if _, path := onlyReport(t, filepath.Join(o.dir, "a/b/c")); !strings.HasSuffix(path, "a/b/c/r/node-0.json") {
		t.Error(path)
	}
}

// mount makes a small file system in a new directory.
func mount(t *testing.T, options string, flags uintptr) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a full or read-only file system needs root to be mounted: run the tests as root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("a tmpfs cannot be mounted here (%v): run the tests where root may mount", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func readOnly(t *testing.T, _ string) string {
	t.Helper()
	return mount(t, "size=1m", unix.MS_RDONLY)
}

// fill takes all the space of a file system.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !strings.Contains(err.Error(), unix.ENOSPC.Error()) {
		t.Fatal(err)
	}
}

func TestDiskFullAtTheStart(t *testing.T) {
	t.Parallel()
	out, tmp := mount(t, "size=1m", 0), t.TempDir()
	fill(t, out)
	cmd := perfagent(t, "run", "--out", out, "--", "sh", "-c", "exit 7")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	o := perform(t, cmd)
	o.want(t, 7)
	_, path := onlyReport(t, tmp)
	o.wantLine(t, path, "no space")
	if left, _ := os.ReadDir(out); len(left) != 1 {
		t.Errorf("left on the full disk: %v", left)
	}
}

// A disk that fills up in mid-job takes the report to the temporary directory, and
// when that is full, too, leaves the journal.
func TestDiskFullInMidJob(t *testing.T) {
	t.Parallel()
	for _, tmpFull := range []bool{false, true} {
		t.Run(fmt.Sprint("temporary directory full: ", tmpFull), func(t *testing.T) {
			t.Parallel()
			out, tmp := mount(t, "size=1m", 0), t.TempDir()
			if tmpFull {
				tmp = out
			}
			r, w := pipe(t)
			cmd := perfagent(t, "run", "--out", out, "--interval", "10ms", "--", "sh", "-c", "echo ready $$; read x; sleep 2; exit 7")
			cmd.Stdin = r
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			l := launch(t, cmd)
			l.pid("ready")
			var journal string
			until(t, "samples are in the journal", func() bool {
				paths := reportsIn(t, out)
				if len(paths) != 1 {
					return false
				}
				journal = filepath.Join(out, paths[0])
				text, _ := os.ReadFile(journal)
				return strings.Count(string(text), "\n") > 4
			})
			fill(t, out)
			w.Close()
			o, _ := l.end()
			o.want(t, 7)
			if tmpFull {
				o.wantLine(t, "no space", journal)
				o = run(t, "show", journal)
				o.want(t, 0)
				if !strings.Contains(o.out, "incomplete") {
					t.Errorf("show: %q", o.out)
				}
				return
			}
			report, path := onlyReport(t, tmp)
			o.wantLine(t, "no space", path)
			if n := report.Nodes["0"]; n.Sampling.Samples < 10 || n.Sampling.Samples+n.Sampling.MissedTicks < 100 || !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool { return m.What == "journal" }) {
				t.Errorf("sampling %+v, missing %v", n.Sampling, n.Missing)
			}
		})
	}
}

// limits sets limits by bash's ulimit and runs a job under perfagent in them.
func underLimits(t *testing.T, limits, flags, job string) outcome {
	t.Helper()
	cmd := script(t, tool(t, "bash", "apt-get install bash"), limits+"; exec $P run "+flags+" -- "+job)
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	return perform(t, cmd)
}

// With whatever limit the job runs, with its own exit code and its own limits, and
// what could not be done is said in few lines.
func TestTightLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits, show, want string
		most               int // lines on stderr
		reported           bool
	}{
		{"ulimit -n 10", "ulimit -n", "10\n", 0, true},
		{"ulimit -n 9", "ulimit -n", "9\n", 2, false},
		{"ulimit -S -n 10", "ulimit -S -n", "10\n", 0, true},
		{"ulimit -f 0", "ulimit -f", "0\n", 2, false},
		{"ulimit -f 1", "ulimit -f", "2\n", 2, false},    // dash counts halves of bash's unit
		{"ulimit -f 100", "ulimit -f", "200\n", 1, true}, // the page may not fit
		{"ulimit -f 400", "ulimit -f", "800\n", 0, true},
		{"ulimit -v 2097152", "ulimit -v", "2097152\n", 0, true},
		{"ulimit -s 256", "ulimit -s", "256\n", 0, true},
		{"ulimit -c 0; ulimit -l 0; ulimit -m 1000", "echo", "\n", 0, true},
		{"ulimit -n 10; ulimit -f 0; ulimit -v 2097152", "ulimit -n", "10\n", 3, false},
	} {
		t.Run(c.limits, func(t *testing.T) {
			t.Parallel()
			o := underLimits(t, c.limits, "", "sh -c '"+c.show+"; exit 9'")
			o.want(t, 9)
			if o.out != c.want {
				t.Errorf("the job says %q, want %q", o.out, c.want)
			}
			wantLines(t, o.err, 0, c.most)
			if c.reported {
				o.report(t)
			} else if o.err == "" && !anyReport(t, o.dir) {
				t.Error("no report and no word about it")
			}
			wantNoScraps(t, o.dir)
		})
	}
}

func anyReport(t *testing.T, dir string) bool {
	t.Helper()
	return slices.ContainsFunc(reportsIn(t, filepath.Join(dir, "perfagent-out")), func(p string) bool { return filepath.Ext(p) == ".json" })
}

// wantNoScraps checks that no temporary file was left.
func wantNoScraps(t *testing.T, dir string) {
	t.Helper()
	for _, p := range reportsIn(t, filepath.Join(dir, "perfagent-out")) {
		if strings.HasSuffix(p, ".tmp") {
			t.Errorf("left: %s", p)
		}
	}
}

// A limit on files ends writes of the job by SIGXFSZ as it does without us.
func TestFileLimitOfTheJob(t *testing.T) {
	t.Parallel()
	o := underLimits(t, "ulimit -f 1", "--summary never --out /proc/nowhere", "dd if=/dev/zero of=big bs=4096 count=1 status=none")
	o.want(t, 128+int(unix.SIGXFSZ))
}

// nobody is a user without any privilege.
const nobody = 65534

// openTemp is a directory that everybody may use.
func openTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "perfagent-open-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asNobody makes a process run as an ordinary user, in a directory it may write.
func asNobody(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		return cmd
	}
	cmd.Dir = openTemp(t)
	cmd.Env = append(cmd.Env, "TMPDIR="+cmd.Dir, "HOME="+cmd.Dir)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	return cmd
}

// Without room for a process beside it the job runs all the same, unmeasured, and
// one line says so. A Go program needs a few threads itself, so the limit is not 1.
func TestNoRoomForAnotherProcess(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a limit on processes needs a user of its own: run the tests as root")
	}
	cmd := asNobody(t, script(t, tool(t, "bash", "apt-get install bash"), `ulimit -u 10; exec $P run -- sh -c 'echo $0 $PERFAGENT_NODE; exit 9' job`))
	cmd.SysProcAttr.Credential.Uid = uint32(61_000 + os.Getpid()%1000) // nobody has other processes
	o := perform(t, cmd)
	o.want(t, 9)
	o.wantLine(t, "ulimit -u", "without being measured")
	if o.out != "job 0\n" {
		t.Errorf("stdout %q", o.out)
	}
	wantNothing(t, o.dir)
}

// An ordinary user's directory that is not writable is no trouble either.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	cmd := asNobody(t, perfagent(t, "run", "--out", "/", "--", "sh", "-c", "exit 7"))
	tmp := openTemp(t)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	o := perform(t, cmd)
	o.want(t, 7)
	_, path := onlyReport(t, tmp)
	o.wantLine(t, path)
}

// Without /proc everything that is read there is missing, each with its reason.
func TestHostWithoutProc(t *testing.T) {
	t.Parallel()
	cmd := perfagent(t, "run", "--summary", "always", "--interval", "20ms", "--", "sh", "-c", "sleep 0.1; exit 7")
	cmd.Env = append(cmd.Env, "HOST_PROC=/nonexistent", "HOST_SYS=/nonexistent")
	o := perform(t, cmd)
	o.want(t, 7)
	wantPrintable(t, o.err)
	n := o.report(t).Nodes["0"]
	wantEveryMetric(t, n)
	for _, source := range []string{"cpu", "memory", "disk_io", "network"} {
		if why := reasons(n, source); !strings.Contains(why, "/nonexistent/") {
			t.Errorf("%s: why is %q in %v", source, why, n.Missing)
		}
	}
	if _, there := n.Metrics["job_cpu_seconds"]; !there || *n.Job.ExitCode != 7 || n.Metrics["max_t_disk_usage_percent"] == 0 {
		t.Errorf("the rest is not there: %v, job %+v", n.Metrics, n.Job)
	}
	if !strings.Contains(o.err, "missing") || strings.Contains(o.err, "NaN") {
		t.Errorf("summary: %s", o.err)
	}
}

func reasons(n *reporter.Node, what string) string {
	var all []string
	for _, m := range n.Missing {
		if m.What == what {
			all = append(all, m.Why)
		}
	}
	return strings.Join(all, "; ")
}

// What is there of /proc is read, what is damaged or absent is named.
func TestHostWithPartOfProc(t *testing.T) {
	t.Parallel()
	good := "testdata/host/proc"
	for _, c := range []struct {
		name    string
		files   map[string]string // in place of those of the good tree; "" = not there
		missing []string
	}{
		{"no meminfo", map[string]string{"meminfo": ""}, []string{"memory"}},
		{"no stat", map[string]string{"stat": ""}, []string{"cpu"}},
		{"no diskstats", map[string]string{"diskstats": ""}, []string{"disk_io"}},
		{"no net/dev", map[string]string{"net/dev": ""}, []string{"network"}},
		{"an empty stat", map[string]string{"stat": "\n"}, []string{"cpu"}},
		{"a torn stat", map[string]string{"stat": "cpu  1 2\ncpu0 1"}, []string{"cpu"}},
		{"a torn diskstats", map[string]string{"diskstats": "   8       0 sda 1 2"}, []string{"disk_io"}},
		{"a torn net/dev", map[string]string{"net/dev": "x\ny\neth0: 1 2"}, []string{"network"}},
		{"noise", map[string]string{"stat": "\x00\xff\x1b", "meminfo": "\x00\xff\x1b", "diskstats": "\x00\xff\x1b", "net/dev": "\x00\xff\x1b"},
			[]string{"cpu", "memory", "disk_io", "network"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proc := t.TempDir()
			for _, name := range []string{"stat", "meminfo", "diskstats", "net/dev"} {
				text, err := os.ReadFile(filepath.Join(good, name))
				if err != nil {
					t.Fatal(err)
				}
				if other, given := c.files[name]; given {
					if text = []byte(other); other == "" {
						continue
					}
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(proc, name), string(text), 0o644)
			}
			cmd := perfagent(t, "run", "--summary", "always", "--interval", "20ms", "--", "sh", "-c", "sleep 0.1; exit 7")
			cmd.Env = append(cmd.Env, "HOST_PROC="+proc, "HOST_SYS=/nonexistent")
			o := perform(t, cmd)
			o.want(t, 7)
			wantPrintable(t, o.err)
			n := o.report(t).Nodes["0"]
			wantEveryMetric(t, n)
			for _, source := range []string{"cpu", "memory", "disk_io", "network"} {
				if got, want := reasons(n, source) != "", slices.Contains(c.missing, source); got != want {
					t.Errorf("%s: missing %v, want %v: %v", source, got, want, n.Missing)
				}
			}
			for _, m := range n.Missing {
				wantPrintable(t, m.Why)
			}
		})
	}
}
