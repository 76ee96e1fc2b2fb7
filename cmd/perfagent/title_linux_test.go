package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
)

// awaitsTitle is a job that prints the command line of perfagent repeatedly, until the command line is final.
const awaitsTitle = `for i in $(seq 30000); do
	line=$(tr '\0' ' ' </proc/$PPID/cmdline); echo "$line"
	case $line in *"process $$ ") exit 7;; esac
	sleep 0.01
done`

// A search for a process by the job's arguments, such as secrets, finds only the job, even just after the start.
func TestTitle_SearchByArgumentsFindsOnlyJob(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "--run-id", "train.py"}, {"phase", "train.py"}, {"op", "--key", "train.py"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			o := mustRun(t, 7, append(args, "--", "sh", "-c", awaitsTitle, "train.py", "--password=opensesame")...)
			title := "perfagent: " + args[0]
			for line := range strings.Lines(o.Out) {
				if strings.TrimSpace(line) != title && !strings.HasPrefix(line, title+" of process ") {
					t.Errorf("command line %q, want %q with or without the process", line, title)
				}
			}
		})
	}
}

// The command lines of attach and sidecar contain no flags, such as a store's address with its password.
func TestTitle_AttachAndSidecarShowNoFlags(t *testing.T) {
	t.Parallel()
	job := exec.Command("sleep", "600")
	check.Must(t, job.Start())
	defer func() { _, _ = job.Process.Kill(), job.Wait() }()
	pid := strconv.Itoa(job.Process.Pid)

	for title, args := range map[string][]string{
		"perfagent attach " + pid: {"attach", "--tag", "name=train.py", pid},
		"perfagent sidecar":       {"sidecar", "--tag", "name=train.py"},
	} {
		l := clitest.StartProcess(t, clitest.Perfagent(t, args...))
		clitest.WaitUntil(t, "the command line is "+title, func() bool {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", l.Cmd.Process.Pid))
			return err == nil && strings.TrimRight(string(line), "\x00") == title
		})
		l.Signal(unix.SIGTERM)
		mustEnd(l, 0)
	}
}
