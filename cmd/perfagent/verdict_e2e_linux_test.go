//go:build e2e

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
)

// timeout(1) is recognized by its name if it wraps perfagent, and by its exit code if it is the command of the job.
func TestE2E_Verdict_RecognizesTimeoutCommand(t *testing.T) {
	t.Parallel()
	// On a busy machine, perfagent or the job may take longer to get ready than the first time limits.
	limits := []string{"3", "20", "120"}
	var dir string
	for _, limit := range limits {
		o := clitest.RunCommand(t, clitest.Script(t, "sh", `timeout `+limit+` "$P" run --out out -- sh -c ">began; exec sleep 600"; exit 0`))
		if dir = o.Dir; clitest.Exists(filepath.Join(dir, "began")) {
			break
		}
	}
	r, _ := reportertest.ReadSingle(t, filepath.Join(dir, "out"))
	reportertest.WantEvidence(t, reportertest.WantVerdict(t, r, "time_limit", "SIGTERM from timeout"), map[string]any{"sender": "timeout", "signal": "SIGTERM"})
	reportertest.WantVerdict(t, clitest.Run(t, "run", "--", "timeout", "0.1", "sleep", "600").Report(t), "time_limit", "code 124")
	// Before its time is up, timeout passes on signals from other processes.
	o := clitest.RunCommand(t, clitest.Script(t, "sh", `timeout 1000 "$P" run --out out -- sh -c "touch began; exec sleep 600" &
while [ ! -e began ]; do sleep 0.01; done; kill $!; wait; exit 0`))
	r, _ = reportertest.ReadSingle(t, filepath.Join(o.Dir, "out"))
	reportertest.WantVerdict(t, r, "signal", "SIGTERM from timeout")
	stubborn := "trap '' TERM; >ready; while :; do sleep 0.05; done"
	for _, limit := range limits {
		if o = clitest.Run(t, "run", "--", "timeout", "-k", "0.1", limit, "sh", "-c", stubborn); clitest.Exists(filepath.Join(o.Dir, "ready")) {
			break
		}
	}
	reportertest.WantVerdict(t, o.Report(t), "time_limit", "SIGKILL")
}

// If a job removes the file that filled the file system, the samples still show that the file system was full. They do
// not show a reserve for root, but a tmpfs has none.
func TestE2E_Verdict_NamesDiskThatWasFull(t *testing.T) {
	t.Parallel()
	for name, uid := range map[string]uint32{"root": 0, "nobody": 65534} {
		t.Run(name, func(t *testing.T) {
			full := clitest.Mount(t, "size=1m,mode=777", 0)
			dir := t.TempDir()
			for up := dir; strings.Contains(up, "TestE2E_Verdict"); up = filepath.Dir(up) {
				check.Must(t, os.Chmod(up, 0o777))
			}
			cmd := clitest.Perfagent(t, "run", "--out", filepath.Join(dir, "perfagent-out"), "--interval", "100ms", "--disk-path", full, "--",
				"sh", "-c", "head -c 2m /dev/zero >file || { (cd "+dir+"; "+untilSampledAgain(10)+"); rm file; exit 5; }")
			cmd.Dir = full
			cmd.Env = append(cmd.Env, "TMPDIR="+full)
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
			mustExit(t, 5, cmd)
			r, _ := reportertest.ReadSingle(t, filepath.Join(dir, "perfagent-out"))
			reportertest.WantEvidence(t, reportertest.WantVerdict(t, r, "disk_full", "no room was left on the file system of "+full+" in the last samples"), map[string]any{"path": full})
		})
	}
}
