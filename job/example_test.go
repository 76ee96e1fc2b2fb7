//go:build unix

package job_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/perfagent/perfagent/job"
)

// A library runs a command and gets its exit status and usage. The rest of the program is not affected: it may run
// other commands in the meantime.
func ExampleStart() {
	var out bytes.Buffer
	j, err := job.Start(job.Command{
		Args:   []string{"sh", "-c", "tr a-z A-Z; exit 3"},
		Stdin:  strings.NewReader("some work\n"),
		Stdout: &out,
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	status := j.Wait()
	fmt.Print(out.String())
	fmt.Println("exit code", status.ExitCode)
	fmt.Println("memory was used:", status.Usage.MaxRSS > 0)
	// Output:
	// SOME WORK
	// exit code 3
	// memory was used: true
}

func ExampleJob_Signal() {
	j, err := job.Start(job.Command{Args: []string{"sleep", "60"}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := j.Signal(syscall.SIGTERM); err != nil {
		fmt.Println(err)
	}

	status := j.Wait()
	fmt.Println(status.Signal, status.ExitCode)
	fmt.Println("done:", errors.Is(j.Signal(syscall.SIGTERM), os.ErrProcessDone))
	// Output:
	// SIGTERM 143
	// done: true
}

func ExampleStart_notFound() {
	_, err := job.Start(job.Command{Args: []string{"no-such-command"}}, nil)
	fmt.Println(errors.Is(err, job.ErrNotFound))
	fmt.Println(err)
	// Output:
	// true
	// run "no-such-command": command not found
}
