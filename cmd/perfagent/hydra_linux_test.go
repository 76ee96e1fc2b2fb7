package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
)

// hydraProxy is a helper that starts the command in its arguments as Hydra starts a rank, with one end of a socket pair
// as descriptor 3. It prints the number of reports when the last copy of the descriptor is closed, and how the command
// ended.
func hydraProxy() {
	clitest.LimitLifetime()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")

	limit := unix.Rlimit{}
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &limit)
	limit.Cur = limit.Max // the job may leave a core file, but perfagent must not
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit)

	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	theirs.Close()

	_, _ = io.Copy(io.Discard, ours)
	reports, _ := filepath.Glob("perfagent-out/*/*.json")
	_ = cmd.Wait()
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	clitest.Println(os.Stdout, "reports", len(reports),
		"code", ws.ExitStatus(), "signal", int(ws.Signal()), "core", ws.CoreDump())
}

// Under Hydra, perfagent keeps the descriptor open until it has written the report, and dies of the signal that killed
// its job. Otherwise, it exits with 128+n.
func TestRun_UnderHydra_DiesOfTheSignalThatKilledJob(t *testing.T) {
	t.Parallel()
	const segv, rank, fd, proxy = "kill -SEGV $$", "PMI_RANK=0", "PMI_FD=3", "hydra_pmi_proxy"
	for _, c := range []struct {
		name, program string
		env           []string
		end           string // last command of the job
		want          string
		reported      int // reports when the descriptor is closed; -1 = unpredictable
	}{
		{"segmentation fault", proxy, []string{rank, fd}, segv, "code -1 signal 11 core false", 1},
		{"killed", proxy, []string{rank, fd}, "kill -KILL $$", "code -1 signal 9 core false", 1},
		{"terminated", proxy, []string{rank, fd}, "kill -TERM $$", "code -1 signal 15 core false", 1},
		{"exit code", proxy, []string{rank, fd}, "exit 7", "code 7 signal -1 core false", 1},
		{"success", proxy, []string{rank, fd}, "exit 0", "code 0 signal -1 core false", 1},
		{"srun --mpi=pmi2", "slurmstepd", []string{rank, fd}, segv, "code 139 signal -1 core false", -1},
		{"no rank", proxy, []string{fd}, segv, "code 139 signal -1 core false", -1},
		{"another descriptor", proxy, []string{rank, "PMI_FD=2"}, segv, "code 139 signal -1 core false", -1},
		{"closed descriptor", proxy, []string{rank, "PMI_FD=77"}, segv, "code 139 signal -1 core false", -1},
		{"descriptor that is not a number", proxy, []string{rank, "PMI_FD=-x"}, segv, "code 139 signal -1 core false", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), c.program)
			check.Must(t, os.Symlink(os.Args[0], path))
			job := "[ -S /proc/$$/fd/3 ] || exit 99; exec 3>&-; " + c.end
			cmd := clitest.Command(t, path, clitest.Binary(t), "run", "--", "sh", "-c", job)
			o := clitest.RunCommand(t, with(with(cmd, c.env...), clitest.HelperEnv("hydra proxy")))

			reports, end, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(o.Out), "reports "), " ")
			if end != c.want {
				t.Errorf("ended with %q, want %q; stderr: %s", end, c.want, o.Err)
			}
			if c.reported >= 0 && reports != fmt.Sprint(c.reported) {
				t.Errorf("%s reports when the descriptor was closed, want %d", reports, c.reported)
			}

			if run := o.Report(t).Run; run.ExitCode == nil || run.Signal == "" && strings.HasPrefix(c.end, "kill") {
				t.Errorf("job ended by %q: run %+v, want an exit code, and a signal after a kill", c.end, run)
			}
		})
	}
}
