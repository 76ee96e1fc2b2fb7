package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/need"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/reporter"
)

// Where OUT cannot be written, one line says so and where the report is instead.
func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		out  func(t *testing.T, dir string) string
	}{
		{"a file in its place", func(t *testing.T, dir string) string {
			return clitest.Write(t, filepath.Join(dir, "file"), "mine", 0o644)
		}},
		{"a file above it", func(t *testing.T, dir string) string {
			return filepath.Join(clitest.Write(t, filepath.Join(dir, "file"), "mine", 0o644), "deep/er")
		}},
		{"not even root may", func(*testing.T, string) string { return "/proc/nowhere" }},
		{"a name too long", func(*testing.T, string) string { return strings.Repeat("x", 300) }},
		{"a read-only file system", func(t *testing.T, _ string) string { return clitest.ReadOnly(t) }},
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
			cmd := clitest.Perfagent(t, "run", "--out", "", "--", "sh", "-c", "echo job; exit 7")
			cmd.Args[3] = c.out(t, cmd.Dir)
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			o := clitest.Perform(t, cmd)
			o.Want(t, 7)
			if o.Out != "job\n" {
				t.Errorf("stdout %q", o.Out)
			}
			r, path := reportertest.Only(t, tmp)
			o.WantLine(t, path)
			if !slices.ContainsFunc(r.Nodes["0"].Missing, func(m reporter.Missing) bool { return m.What == "report" }) {
				t.Errorf("the report does not say why it is not in OUT: %v", r.Nodes["0"].Missing)
			}
			if text, err := os.ReadFile(filepath.Join(cmd.Dir, "file")); err == nil && string(text) != "mine" {
				t.Errorf("the file in the way holds %q", text)
			}
		})
		t.Run(c.name+"/nor the temporary directory", func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, "run", "--summary", "never", "--out", "", "--", "sh", "-c", "echo job; exit 7")
			cmd.Args[5] = c.out(t, cmd.Dir)
			cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
			o := clitest.Perform(t, cmd)
			o.Want(t, 7)
			o.WantLine(t, "no report file", "/proc/nowhere")
			if o.Out != "job\n" {
				t.Errorf("stdout %q", o.Out)
			}
		})
	}
}

// The summary is shown where no report can be written, too.
func TestSummaryWithoutAReport(t *testing.T) {
	cmd := insideCommand(t, "run", "--summary", "always", "--out", "/proc/nowhere", "--", "sh", "-c", "exit 7")
	cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
	o := cmd.perform(t)
	o.Want(t, 7)
	if !strings.Contains(o.Err, "exit 7") || !strings.Contains(o.Err, "no report file") {
		t.Errorf("stderr %q", o.Err)
	}
}

// A sidecar that cannot keep a report anywhere fails at once.
func TestSidecarWithoutAPlace(t *testing.T) {
	cmd := insideCommand(t, "sidecar", "--out", "/proc/nowhere")
	cmd.Env = append(cmd.Env, "TMPDIR=/proc/nowhere")
	o := cmd.perform(t)
	o.Want(t, 1)
	clitest.WantLines(t, o.Err, 1, 2)
}

func TestMissingDirectoriesAreMade(t *testing.T) {
	o := inside(t, "run", "--out", "a/b/c", "--run-id", "r", "--", "true")
	o.Want(t, 0)
	if _, path := reportertest.Only(t, filepath.Join(o.Dir, "a/b/c")); !strings.HasSuffix(path, "a/b/c/r/node-0.json") {
		t.Error(path)
	}
}

func TestDiskFullAtTheStart(t *testing.T) {
	t.Parallel()
	out, tmp := clitest.Mount(t, "size=1m", 0), t.TempDir()
	clitest.Fill(t, out)
	cmd := clitest.Perfagent(t, "run", "--out", out, "--", "sh", "-c", "exit 7")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	o := clitest.Perform(t, cmd)
	o.Want(t, 7)
	_, path := reportertest.Only(t, tmp)
	o.WantLine(t, path, "no space")
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
			out, tmp := clitest.Mount(t, "size=1m", 0), t.TempDir()
			if tmpFull {
				tmp = out
			}
			r, w := clitest.Pipe(t)
			cmd := clitest.Perfagent(t, "run", "--out", out, "--interval", "10ms", "--", "sh", "-c", "echo ready $$; read x; sleep 2; exit 7")
			cmd.Stdin = r
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			l := clitest.Launch(t, cmd)
			l.PID("ready")
			var journal string
			clitest.Until(t, "samples are in the journal", func() bool {
				paths := reportertest.InDir(t, out)
				if len(paths) != 1 {
					return false
				}
				journal = filepath.Join(out, paths[0])
				text, _ := os.ReadFile(journal)
				return strings.Count(string(text), "\n") > 4
			})
			clitest.Fill(t, out)
			w.Close()
			o, _ := l.End()
			o.Want(t, 7)
			if tmpFull {
				o.WantLine(t, "no space", journal)
				o = clitest.Run(t, "show", journal)
				o.Want(t, 0)
				if !strings.Contains(o.Out, "incomplete") {
					t.Errorf("show: %q", o.Out)
				}
				return
			}
			report, path := reportertest.Only(t, tmp)
			o.WantLine(t, "no space", path)
			if n := report.Nodes["0"]; n.Sampling.Samples < 10 || n.Sampling.Samples+n.Sampling.MissedTicks < 100 || !slices.ContainsFunc(n.Missing, func(m reporter.Missing) bool { return m.What == "journal" }) {
				t.Errorf("sampling %+v, missing %v", n.Sampling, n.Missing)
			}
		})
	}
}

// limits sets limits by bash's ulimit and runs a job under perfagent in them.
func underLimits(t *testing.T, limits, flags, job string) clitest.Outcome {
	t.Helper()
	cmd := clitest.Script(t, need.Tool(t, "bash", "apt-get install bash"), limits+"; exec $P run "+flags+" -- "+job)
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	return clitest.Perform(t, cmd)
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
			o.Want(t, 9)
			if o.Out != c.want {
				t.Errorf("the job says %q, want %q", o.Out, c.want)
			}
			clitest.WantLines(t, o.Err, 0, c.most)
			if c.reported {
				o.Report(t)
			} else if o.Err == "" && !anyReport(t, o.Dir) {
				t.Error("no report and no word about it")
			}
			wantNoScraps(t, o.Dir)
		})
	}
}

func anyReport(t *testing.T, dir string) bool {
	t.Helper()
	return slices.ContainsFunc(reportertest.InDir(t, filepath.Join(dir, "perfagent-out")), func(p string) bool { return filepath.Ext(p) == ".json" })
}

// wantNoScraps checks that no temporary file was left.
func wantNoScraps(t *testing.T, dir string) {
	t.Helper()
	for _, p := range reportertest.InDir(t, filepath.Join(dir, "perfagent-out")) {
		if strings.HasSuffix(p, ".tmp") {
			t.Errorf("left: %s", p)
		}
	}
}

// A limit on files ends writes of the job by SIGXFSZ as it does without us.
func TestFileLimitOfTheJob(t *testing.T) {
	t.Parallel()
	o := underLimits(t, "ulimit -f 1", "--summary never --out /proc/nowhere", "dd if=/dev/zero of=big bs=4096 count=1 status=none")
	o.Want(t, 128+int(unix.SIGXFSZ))
}

// Without room for a process beside it the job runs all the same, unmeasured, and
// one line says so. A Go program needs a few threads itself, so the limit is not 1.
func TestNoRoomForAnotherProcess(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a limit on processes needs a user of its own: run the tests as root")
	}
	cmd := clitest.AsNobody(t, clitest.Script(t, need.Tool(t, "bash", "apt-get install bash"), `ulimit -u 10; exec $P run -- sh -c 'echo $0 $PERFAGENT_NODE; exit 9' job`))
	cmd.SysProcAttr.Credential.Uid = uint32(61_000 + os.Getpid()%1000) // nobody has other processes
	o := clitest.Perform(t, cmd)
	o.Want(t, 9)
	o.WantLine(t, "ulimit -u", "without being measured")
	if o.Out != "job 0\n" {
		t.Errorf("stdout %q", o.Out)
	}
	wantNothing(t, o.Dir)
}

// An ordinary user's directory that is not writable is no trouble either.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	cmd := clitest.AsNobody(t, clitest.Perfagent(t, "run", "--out", "/", "--", "sh", "-c", "exit 7"))
	tmp := clitest.OpenTemp(t)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	o := clitest.Perform(t, cmd)
	o.Want(t, 7)
	_, path := reportertest.Only(t, tmp)
	o.WantLine(t, path)
}

// Without /proc everything that is read there is missing, each with its reason.
func TestHostWithoutProc(t *testing.T) {
	cmd := insideCommand(t, "run", "--summary", "always", "--interval", "20ms", "--", "sh", "-c", "sleep 0.1; exit 7")
	cmd.Env = append(cmd.Env, "HOST_PROC=/nonexistent", "HOST_SYS=/nonexistent")
	o := cmd.perform(t)
	o.Want(t, 7)
	clitest.WantPrintable(t, o.Err)
	n := o.Report(t).Nodes["0"]
	reportertest.WantEveryMetric(t, n)
	for _, source := range []string{"cpu", "memory", "disk_io", "network"} {
		if why := reportertest.Reasons(n, source); !strings.Contains(why, "/nonexistent/") {
			t.Errorf("%s: why is %q in %v", source, why, n.Missing)
		}
	}
	if _, there := n.Metrics["job_cpu_seconds"]; !there || *n.Job.ExitCode != 7 || n.Metrics["max_t_disk_usage_percent"] == 0 {
		t.Errorf("the rest is not there: %v, job %+v", n.Metrics, n.Job)
	}
	if !strings.Contains(o.Err, "missing") || strings.Contains(o.Err, "NaN") {
		t.Errorf("summary: %s", o.Err)
	}
}

// What is there of /proc is read, what is damaged or absent is named.
func TestHostWithPartOfProc(t *testing.T) {
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
				clitest.Write(t, filepath.Join(proc, name), string(text), 0o644)
			}
			cmd := insideCommand(t, "run", "--summary", "always", "--interval", "20ms", "--", "sh", "-c", "sleep 0.1; exit 7")
			cmd.Env = append(cmd.Env, "HOST_PROC="+proc, "HOST_SYS=/nonexistent")
			o := cmd.perform(t)
			o.Want(t, 7)
			clitest.WantPrintable(t, o.Err)
			n := o.Report(t).Nodes["0"]
			reportertest.WantEveryMetric(t, n)
			for _, source := range []string{"cpu", "memory", "disk_io", "network"} {
				if got, want := reportertest.Reasons(n, source) != "", slices.Contains(c.missing, source); got != want {
					t.Errorf("%s: missing %v, want %v: %v", source, got, want, n.Missing)
				}
			}
			for _, m := range n.Missing {
				clitest.WantPrintable(t, m.Why)
			}
		})
	}
}
