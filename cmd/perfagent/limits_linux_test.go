package main

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// underLimits runs a job under perfagent with limits set by bash's ulimit.
func underLimits(t *testing.T, limits, flags, job string) clitest.Outcome {
	t.Helper()
	script := limits + "; exec $P run --summary never " + flags + " -- " + job
	return clitest.RunCommand(t, clitest.Script(t, testenv.NeedsTool(t, "bash", "apt-get install bash"), script))
}

// Under every limit, the job keeps its limits and its exit code, and perfagent reports its own failures in a few lines.
func TestRun_JobRunsUnchangedUnderTightLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limits, show, want string
		most               int // maximum number of lines on stderr
		reported           bool
	}{
		{"ulimit -n 10", "ulimit -n", "10\n", 0, true},
		{"ulimit -n 9", "ulimit -n", "9\n", 2, false},
		{"ulimit -S -n 10", "ulimit -S -n", "10\n", 0, true},
		{"ulimit -f 0", "ulimit -f", "0\n", 2, false},
		{"ulimit -f 1", "ulimit -f", "2\n", 2, false},    // the unit of dash is half of bash's
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
				t.Errorf("stdout %q, want %q", o.Out, c.want)
			}
			clitest.WantLines(t, o.Err, 0, c.most)
			reports, _ := filepath.Glob(filepath.Join(o.Dir, "perfagent-out/*/*.json"))
			if c.reported {
				o.Report(t)
			} else if o.Err == "" && len(reports) == 0 {
				t.Error("stderr is empty and there is no report, want at least one of them")
			}
			if scraps, _ := filepath.Glob(filepath.Join(o.Dir, "perfagent-out/*/*.tmp")); len(scraps) > 0 {
				t.Errorf("temporary files %q are left, want none", scraps)
			}
		})
	}
}

// A file size limit ends the job with SIGXFSZ, as without perfagent.
func TestRun_FileSizeLimitEndsJobWithSIGXFSZ(t *testing.T) {
	t.Parallel()
	o := underLimits(t, "ulimit -f 1", "--summary never --out /proc/nowhere", "dd if=/dev/zero of=big bs=4096 count=1 status=none")
	o.Want(t, 128+int(unix.SIGXFSZ))
}

// If the process limit leaves no room for another process, the job runs unmeasured, and one line reports that. The
// limit is not 1 because a Go program needs a few threads.
func TestRun_WithoutRoomForAnotherProcess_RunsJobUnmeasured(t *testing.T) {
	script := `ulimit -u 10; exec $P run -- sh -c 'echo $0 $PERFAGENT_NODE; exit 9' job`
	o := mustExit(t, 9, clitest.AsLoneUser(t, clitest.Script(t, testenv.NeedsTool(t, "bash", "apt-get install bash"), script)))
	o.WantLine(t, "ulimit -u", "without being measured")
	if o.Out != "job 0\n" {
		t.Errorf("stdout %q, want \"job 0\\n\"", o.Out)
	}
	wantNothing(t, o.Dir)
}

// An unprivileged user in a directory that is not writable can run a job.
func TestRun_UnprivilegedUserInUnwritableDirectoryRunsJob(t *testing.T) {
	t.Parallel()
	cmd := clitest.AsNobody(t, clitest.Perfagent(t, "run", "--summary", "never", "--out", "/", "--", "sh", "-c", "exit 7"))
	tmp := clitest.OpenTemp(t)
	o := mustExit(t, 7, with(cmd, "TMPDIR="+tmp))
	_, path := reportertest.ReadSingle(t, tmp)
	o.WantLine(t, path)
}
