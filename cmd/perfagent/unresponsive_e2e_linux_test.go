//go:build e2e

package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// If neither the directory of the reports nor the temporary directory responds, the job runs, and a line reports that
// there is no report.
func TestE2E_Hang_JobRunsIfNoDirectoryResponds(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--summary", "never", "--out", hangingDir(t)+"/x", "--", "sh", "-c", "echo job; exit 7")
	cmd.Env = append(cmd.Env, "TMPDIR="+hangingDir(t))
	begin := time.Now()
	o := mustExit(t, 7, cmd)
	if took := time.Since(begin); o.Out != "job\n" || took > 4*diskPatience+noise {
		t.Errorf("stdout %q after %v, want \"job\\n\" within %v", o.Out, took, 4*diskPatience+noise)
	}
	o.WantLine(t, "no response within 5s", "nor can the temporary directory", "there will be no report file")
}

// If the directory of the reports begins to hang while the job runs, only time is lost: the report is in another
// directory.
func TestE2E_Hang_ReportGoesToAnotherDirectory(t *testing.T) {
	t.Parallel()
	cmd := clitest.Perfagent(t, "run", "--summary", "never", "--run-id", "x", "--", "sh", "-c", "echo ready; read go; exit 7")
	goOn, err := cmd.StdinPipe()
	check.Must(t, err)
	tmp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	clitest.MountFUSE(t, filepath.Join(cmd.Dir, "perfagent-out/x"))
	goOn.Close()
	o := mustEnd(l, 7)
	_, path := reportertest.ReadSingle(t, tmp)
	o.WantLine(t, "no response within 5s; the report is "+path)
}

// The last rank does not wait for the other reports if they have begun to hang.
func TestE2E_Hang_LastRankDoesNotWaitForOtherReports(t *testing.T) {
	t.Parallel()
	for what, says := range map[string]string{"": "the report is ", "node-0.rank-0.json": "their reports are kept"} {
		t.Run("hangs "+what, func(t *testing.T) {
			t.Parallel()
			s := newStep(t, 2)
			first := s.launch(0, "exit 0")
			cmd := s.command(1, "--summary", "never", "--", "sh", "-c", "echo up; read go; exit 7")
			cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
			last := launch(cmd, t)
			first.finish().Want(t, 0)

			clitest.MountFUSE(t, filepath.Join(s.out, what))
			begin := time.Now()
			o := last.finish()
			if took := time.Since(begin); took > 2*diskPatience+noise {
				t.Errorf("the last rank ended after %v, want at most %v", took, 2*diskPatience+noise)
			}
			o.Want(t, 7)
			wantContains(t, o.Err, says, "no response within 5s")
		})
	}
}
