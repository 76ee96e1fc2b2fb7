package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/reportertest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// hangingDir returns a directory on a file system that never responds, like a mount of a dead file server.
func hangingDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	clitest.MountFUSE(t, dir)
	return dir
}

// wantPromptEnd sends TERM, and checks that perfagent ends promptly with the given exit code.
func wantPromptEnd(l *clitest.Process, code int) clitest.Outcome {
	l.T.Helper()
	begin := time.Now()
	l.Signal(syscall.SIGTERM)
	o := mustEnd(l, code)
	if took := time.Since(begin); took > noise {
		l.T.Errorf("perfagent ended %v after the signal, want at most %v", took, noise)
	}
	return o
}

// A hanging directory in PATH does not delay the job if it comes after the command's directory, as in a shell.
func TestHang_DirectoryLateInPATHDoesNotDelayJob(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run": {"run", "--", "sh", "-c", "sleep 1.5; trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"}, "sidecar": {"sidecar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Perfagent(t, append([]string{args[0], "--run-id", "x"}, args[1:]...)...)
			cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(testenv.NeedsTool(t, "sh", "a shell"))+":"+filepath.Dir(testenv.NeedsTool(t, "sleep", "coreutils"))+":"+hangingDir(t))
			l, code := clitest.StartProcess(t, cmd), 7
			if name == "run" {
				l.Expect("ready")
			} else {
				code = 0
				untilHas(t, filepath.Join(cmd.Dir, "perfagent-out/x/node-0.jsonl"), "\n", 3) // samples for two seconds
			}
			o := wantPromptEnd(l, code)
			wantContains(t, reportertest.Reasons(o.Report(t).Nodes["0"], "gpu"), "find nvidia-smi on the PATH")
		})
	}
}

// perfagent never waits for a disk on the thread that the kernel prefers for signals, so signals reach the job
// immediately. This holds even if nvidia-smi hangs in exec although a stat of the file did not hang.
func TestHang_SignalsReachJobImmediately(t *testing.T) {
	t.Parallel()
	hung := hangingDir(t)
	for name, interpreters := range map[string][]string{"search": nil, "exec": {"second"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			next := hung + "/interpreter"
			for _, script := range append(interpreters, "nvidia-smi") {
				next = clitest.Write(t, filepath.Join(bin, script), "#!"+next+"\n", 0o755)
			}
			for range 3 {
				cmd := clitest.Perfagent(t, "run", "--", "sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
				cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
				l := clitest.StartProcess(t, cmd)
				l.Expect("ready")
				time.Sleep(1500 * time.Millisecond) // the runtime has stopped the world by then, or tried to
				clitest.WaitUntil(t, "the first thread of perfagent does not wait for a disk", func() bool {
					return clitest.ProcessState(cmd.Process.Pid) != "D"
				})
				wantPromptEnd(l, 7)
			}
		})
	}
}

// A job in a hanging working directory starts and ends as without perfagent: /bin/false does not access the directory,
// and perfagent does not wait for it.
func TestHang_WorkingDirectoryDoesNotDelayJob(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	cmd := clitest.Script(t, "sh", `echo ready; read go; exec "$P" run --run-id x --out `+out+` -- /bin/false`)
	goOn, err := cmd.StdinPipe()
	check.Must(t, err)
	cmd.Env = append(cmd.Env, "PWD="+cmd.Dir)
	l := clitest.StartProcess(t, cmd)
	l.Expect("ready")
	clitest.MountFUSE(t, cmd.Dir)
	begin := time.Now()
	goOn.Close()
	mustEnd(l, 1)
	if took := time.Since(begin); took > noise {
		t.Errorf("perfagent took %v, want at most %v", took, noise)
	}
	if r := reportertest.ReadFile(t, filepath.Join(out, "x/node-0.json")); r.Run.Verdict == nil || r.Run.Verdict.Cause != "exited" {
		t.Errorf("verdict %+v, want cause exited", r.Run.Verdict)
	}
}

// diskPatience is how long perfagent waits for a hanging disk.
const diskPatience = 5 * time.Second

// If reading the files of a process in /proc hangs, as for a process that hangs in exec, only the metrics of the job
// are missing, and only while the process exists. To simulate this, a hanging file system is mounted over the process's
// directory in the mount namespace of perfagent and the job.
func TestHang_HangingProcessAffectsOnlyMetricsOfJob(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"for a while", "to the end"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fuse := clitest.OpenFUSE(t)
			defer fuse.Close() // pending accesses fail
			cmd := clitest.Perfagent(t, "run", "--run-id", "x", "--cgroup", "off", "--interval", "500ms", "--", "sh", "-c", `
				sleep 600 >/dev/null 2>&1 3<&- & c=$! d=/proc/$!
				mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 hangs $d || exit 9
				exec 3<&-; echo hangs $c; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done
				read x || exit 7; umount -l $d; echo gone; read x; kill $c; exit 7`)
			goOn, err := cmd.StdinPipe()
			check.Must(t, err)
			cmd.ExtraFiles = []*os.File{fuse}
			cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
			l := clitest.StartProcess(t, cmd)
			t.Cleanup(func() { clitest.LogThreads(t, cmd.Process.Pid) }) // samples once stopped for a reason not found
			pid, _ := strconv.Atoi(l.Field("hangs"))
			defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
			journal := filepath.Join(cmd.Dir, "perfagent-out/x/node-0.jsonl")
			untilExists(t, journal)
			early := strings.Count(clitest.Read(t, journal), `{"sample"`)
			more := func(n int) { untilHas(t, journal, "\n", n+strings.Count(clitest.Read(t, journal), "\n")) }
			more(8)
			if name == "for a while" {
				fuse.Close()
				fmt.Fprintln(goOn)
				l.Expect("gone")
				more(4)
			}
			begin := time.Now()
			goOn.Close()
			o := mustEnd(l, 7)
			if took := time.Since(begin); took > 2*time.Second+noise {
				t.Errorf("perfagent ended %v after the job, want at most %v", took, 2*time.Second+noise)
			}
			n := o.Report(t).Nodes["0"]
			wantContains(t, reportertest.Reasons(n, "job"), "read the job's processes: no response within 2s")
			if n.Job.UserSeconds < 0.05 || n.Job.CPUSeconds < n.Job.UserSeconds {
				t.Errorf("job %+v, want user_seconds of at least 0.05, and cpu_seconds no less", n.Job)
			}
			if _, told := n.Metrics["job_cpu_seconds"]; told != (name == "for a while") || n.Job.CPUAtLeast == told {
				t.Errorf("%s: job_cpu_seconds %v, job %+v, missing %q; want the metric for a while, and cpu_at_least to the end",
					name, n.Metrics["job_cpu_seconds"], n.Job, reportertest.Reasons(n, "job_cpu_seconds"))
			}
			known := func(key string) (count int) {
				for _, v := range n.Envelope[key].Mean {
					if !math.IsNaN(v) {
						count++
					}
				}
				return count
			}
			if host, job := known("cpu_pct_per_cpu_avg"), known("job_processes"); host < 8 || job > 2+early && name == "to the end" || job < 2 && name == "for a while" {
				t.Errorf("%s: %d samples of the host, want at least 8; %d of the job's processes: %v",
					name, host, job, n.Envelope["job_processes"])
			}
		})
	}
}
